//! What can be set.

use crate::outside::http;
use muxgate_wire::name::Path;
use std::fmt;

/// Where etcd listens for its clients.
pub const PORT: u16 = 2379;

/// Where services are, if nothing else is said.
pub const PATH_PREFIX: &str = "/services";

/// Settings of the etcd namer.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// `host` and `port`, or `addresses`, and `tls`: members of one cluster. One is asked at a time.
    pub nodes: Vec<http::Params>,
    /// `pathPrefix`: the folder in which each folder is a service.
    pub path_prefix: Path,
}

impl Params {
    /// What the keys of all members begin with.
    pub(super) fn prefix(&self) -> Vec<u8> {
        let mut prefix = vec![b'/'];
        for element in self.path_prefix.raw_elements() {
            prefix.extend_from_slice(&element);
            prefix.push(b'/');
        }
        prefix
    }
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes: Vec<_> = self.nodes.iter().map(|node| node.base.as_str()).collect();
        write!(f, "services below {} in etcd at {}", self.path_prefix, nodes.join(", "))
    }
}
