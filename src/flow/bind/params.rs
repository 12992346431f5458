//! What can be set about a service, by the prefix of its name.

use std::time::Duration;

/// Settings of a service.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// Bounds all attempts of a call together (linkerd's `totalTimeoutMs`); none by default.
    pub total: Option<Duration>,
    /// Pays for every attempt beyond the first.
    pub budget: Budget,
    /// Which failures are tried again, and when.
    pub retries: Retries,
    /// How long a call waits for its name to be known (linkerd's `bindingTimeoutMs`).
    pub binding: Duration,
}

/// Which failures are tried again, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retries {
    /// Linkerd's `responseClassifier`.
    pub classifier: Classifier,
    /// Linkerd's `retries.backoff`.
    pub backoff: Backoff,
}

/// What the failures of a service mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Classifier {
    /// Nothing is known: a failure may have been done in part, and is not repeated.
    #[default]
    NonRetryableFailures,
    /// All of its methods may be done twice: every failure may be repeated.
    RetryableFailures,
}

/// Pauses between attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backoff {
    /// Always the same.
    Constant(Duration),
    /// By chance, growing.
    Jittered {
        /// The least.
        min: Duration,
        /// The longest.
        max: Duration,
    },
}

impl Default for Backoff {
    fn default() -> Self {
        Self::Jittered { min: Duration::from_millis(10), max: Duration::from_millis(1000) }
    }
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
        Self {
            total: None,
            budget: Budget::default(),
            retries: Retries::default(),
            binding: Duration::from_secs(10),
        }
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self { percent: 0.2, min_per_sec: 10, ttl: Duration::from_secs(10) }
    }
}
