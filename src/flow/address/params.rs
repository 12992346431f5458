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
    /// Names calls without a destination after the service in their method (`Service:method`), if it has one; the method is
    /// then what stands behind the colon.
    pub service_in_dst: bool,
}
