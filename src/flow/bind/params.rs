//! What can be set about a service, by the prefix of its name.

use std::time::Duration;

/// Settings of a service.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// Bounds all attempts of a call together (linkerd's `totalTimeoutMs`); none by default.
    pub total: Option<Duration>,
    /// Pays for every attempt beyond the first.
    pub budget: Budget,
    /// How long a call waits for its name to be known (linkerd's `bindingTimeoutMs`).
    pub binding: Duration,
}

/// Linkerd's `retries.budget`.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    /// `percentCanRetry`: share of calls that may be retried, 0.2 = 20 %.
    pub percent: f64,
    /// `minRetriesPerSec`: allowed whatever the traffic.
    pub min_per_sec: u32,
    /// `ttlSecs`: the window over which calls count.
    pub ttl: Duration,
}

impl Default for Params {
    fn default() -> Self {
        Self { total: None, budget: Budget::default(), binding: Duration::from_secs(10) }
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self { percent: 0.2, min_per_sec: 10, ttl: Duration::from_secs(10) }
    }
}
