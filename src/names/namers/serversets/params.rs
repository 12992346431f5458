//! What can be set.

use crate::outside::zk;
use std::fmt;

/// Settings of the server set namer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// The ensemble.
    pub zk: zk::Params,
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "server sets in ZooKeeper at {}", self.zk)
    }
}
