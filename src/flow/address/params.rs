//! What can be set about names of calls.

use muxgate_wire::name::Path;

/// How a listener's calls are named.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// Put in front of every name: `/svc` by default.
    pub prefix: Path,
    /// The name of calls that bring no destination, below the prefix: the listener's name by default.
    pub default: Path,
    /// Adds the method as last element (linkerd's `thriftMethodInDst`).
    pub method_in_dst: bool,
}
