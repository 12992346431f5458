//! Transformers, as in linkerd: they stand between a namer and the table, and change where its names lead.
//!
//! | kind | what becomes of a set |
//! |---|---|
//! | `io.l5d.port` | each address with this port |
//! | `io.l5d.localhost` | those on this host |
//! | `io.l5d.specificHost` | those on that host |
//! | `io.l5d.k8s.localnode` | those in the subnet of this pod |
//! | `io.l5d.k8s.daemonset` | each address by the gateways in its subnet |
//! | `io.l5d.replace` | another name |
//! | `io.l5d.const` | another name, also if there is none |
//!
//! A set whose addresses change gets an id of its own, `/%/<kind>/...` in front of the old one, so that it shares no connections and
//! no failure marks with it. A set that has no address left is negative: fallback works behind it (naming spec, section 9).

mod change;
mod namer;

#[cfg(test)]
mod tests;

pub use change::{DEFAULT_BITS, Subnet};
pub use namer::Transformed;

use super::namer::Namer;
use super::namers::configured::Env;
use super::namers::k8s;
use super::source::Discovered;
use change::Change;
use muxgate_wire::name::Path;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// One transformer, as it is configured.
#[derive(Clone, Debug, PartialEq)]
pub enum Transformer {
    /// `io.l5d.port`.
    Port(u16),
    /// `io.l5d.localhost`.
    Localhost,
    /// `io.l5d.specificHost`.
    SpecificHost(IpAddr),
    /// `io.l5d.k8s.localnode`: the subnet of this pod.
    LocalNode(Subnet),
    /// `io.l5d.k8s.daemonset`: the gateways are the endpoints of a service of Kubernetes, one in each node's subnet.
    DaemonSet {
        /// Who knows them.
        api: Box<k8s::Params>,
        /// `/<namespace>/<port>/<service>`.
        gateways: Path,
        /// Bits of the subnets.
        bits: u8,
    },
    /// `io.l5d.replace`.
    Replace(Path),
    /// `io.l5d.const`.
    Const(Path),
}

impl Transformer {
    /// Puts the transformer in front of a namer. Must be called on a runtime.
    ///
    /// # Errors
    /// Files that cannot be used.
    pub fn before(&self, inner: Arc<dyn Namer>, env: &Env) -> Result<Arc<dyn Namer>, String> {
        let change = match self {
            Self::Port(port) => Change::port(*port),
            Self::Localhost => Change::localhost(),
            Self::SpecificHost(host) => Change::host(*host),
            Self::LocalNode(subnet) => Change::local_node(*subnet),
            Self::DaemonSet { api, gateways, bits } => {
                let source = k8s::K8s::new(api).map_err(|error| error.text)?;
                let namer = Discovered::new(Path::default(), source, env);
                Change::gateways(namer.lookup(gateways), gateways, *bits)
            }
            Self::Replace(path) => Change::Replace(path.clone()),
            Self::Const(path) => Change::Const(path.clone()),
        };
        Ok(Arc::new(Transformed::new(inner, change, env.hosts.runtime().clone())))
    }
}

/// As in "names below /#/x are ..., then ...".
impl fmt::Display for Transformer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port(port) => write!(f, "with port {port}"),
            Self::Localhost => f.write_str("those on this host"),
            Self::SpecificHost(host) => write!(f, "those on {host}"),
            Self::LocalNode(subnet) => write!(f, "those in {subnet}"),
            Self::DaemonSet { gateways, bits, .. } => write!(f, "by {gateways} in the same /{bits}"),
            Self::Replace(path) => write!(f, "replaced by {path}"),
            Self::Const(path) => write!(f, "always {path}"),
        }
    }
}
