//! The numbers of a namer that watches a source.

use super::{Counter, Gauge};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Says how old the oldest answer in use is.
type Age = Box<dyn Fn() -> Option<Duration> + Send + Sync>;

/// Numbers of one namer. Names below it have none of their own: strangers can invent them.
pub struct DiscoveryStats {
    /// The namer's prefix, such as `/#/io.l5d.serversets`.
    pub label: Arc<str>,
    /// What is watched.
    pub subjects: Gauge,
    /// Of that, what cannot be asked.
    pub outages: Gauge,
    /// Times that a source could not go on.
    pub failures: Counter,
    /// Times that everything was asked for anew without need.
    pub resyncs: Counter,
    /// Times that a source was asked whether it is there.
    pub checks: Counter,
    /// Times that a name lost its members over an outage, which was doubted.
    pub doubts: Counter,
    /// Answers taken from disk.
    pub restored: Counter,
    age: OnceLock<Age>,
}

impl DiscoveryStats {
    pub(super) fn new(label: Arc<str>) -> Self {
        Self {
            label,
            subjects: Gauge::default(),
            outages: Gauge::default(),
            failures: Counter::default(),
            resyncs: Counter::default(),
            checks: Counter::default(),
            doubts: Counter::default(),
            restored: Counter::default(),
            age: OnceLock::new(),
        }
    }

    /// From now on the age of the oldest answer is asked for here.
    pub fn age_from(&self, age: impl Fn() -> Option<Duration> + Send + Sync + 'static) {
        // The first namer of a prefix is the only one.
        let _ = self.age.set(Box::new(age));
    }

    /// How old the oldest answer is: since its source was last heard of.
    pub fn oldest(&self) -> Option<Duration> {
        self.age.get().and_then(|age| age())
    }
}

impl fmt::Debug for DiscoveryStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiscoveryStats").field("label", &self.label).finish_non_exhaustive()
    }
}
