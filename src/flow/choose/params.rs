//! What can be set about the choice of endpoints, by the prefix of the bound id.

use std::time::Duration;

/// Settings of a cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Params {
    /// How two candidates are compared.
    pub balancer: Balancer,
}

/// The load that power of two choices compares.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Balancer {
    /// Calls in flight (linkerd's `p2c`).
    #[default]
    LeastLoaded,
    /// Latency that jumps up at once and fades over `decay`, times calls in flight (linkerd's `ewma`).
    PeakEwma {
        /// linkerd's `decayTimeMs`, 10 s.
        decay: Duration,
    },
}
