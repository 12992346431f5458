//! How long calls took, as counts in fixed buckets.
//!
//! Fixed atomic buckets, and not an HDR histogram behind a lock: recording is two relaxed additions and never waits, also
//! when every core ends calls of the same route; a series takes 2 KB (an HDR histogram of two digits takes 13 KB, times
//! some thousand series); and every bound that Prometheus is told is an edge, so its counts are exact. The price:
//! a quantile is off by half a bucket at most, 7 %.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Upper edges of the buckets of one decade, in tenths of its first value.
const DECADE: [u64; 24] =
    [10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 25, 28, 30, 33, 36, 40, 45, 50, 55, 60, 65, 70, 80, 90];

/// From 1 us to 1 h and a little more: ten decades.
const DECADES: usize = 10;

/// Buckets with an upper edge; one more takes all that is longer.
const BUCKETS: usize = DECADE.len() * DECADES;

/// Upper edges (inclusive) in ns: 1 us, 1.1 us, ... 9000 s.
static EDGES: [u64; BUCKETS] = edges();

/// The bounds that Prometheus is told, in ns; each is an edge of a bucket.
pub const BOUNDS: [u64; 18] = [
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
    30_000_000_000,
    60_000_000_000,
];

const fn edges() -> [u64; BUCKETS] {
    let mut edges = [0; BUCKETS];
    let mut at = 0;
    let mut unit = 100;
    while at < BUCKETS {
        edges[at] = DECADE[at % DECADE.len()] * unit;
        at += 1;
        if at.is_multiple_of(DECADE.len()) {
            unit *= 10;
        }
    }
    edges
}

/// A histogram that many threads write without waiting.
#[derive(Debug)]
pub struct Latency {
    counts: [AtomicU64; BUCKETS + 1],
    sum_ns: AtomicU64,
}

impl Default for Latency {
    fn default() -> Self {
        Self { counts: [const { AtomicU64::new(0) }; BUCKETS + 1], sum_ns: AtomicU64::new(0) }
    }
}

impl Latency {
    /// Counts one call.
    pub fn record(&self, took: Duration) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        if let Some(count) = self.counts.get(EDGES.partition_point(|edge| *edge < ns)) {
            count.fetch_add(1, Relaxed);
        }
        self.sum_ns.fetch_add(ns, Relaxed);
    }

    /// The counts as they are now.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            counts: self.counts.iter().map(|c| c.load(Relaxed)).collect(),
            sum_ns: self.sum_ns.load(Relaxed),
        }
    }
}

/// Counts that stand still.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    counts: Vec<u64>,
    sum_ns: u64,
}

impl Snapshot {
    /// Calls counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Their times together.
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum_ns)
    }

    /// The time within which the share `q` (0 to 1) of all calls ended, to the middle of its bucket; None without calls.
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        let total = self.count();
        let rank = ((q.clamp(0.0, 1.0) * total as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let at = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        let below = at.checked_sub(1).and_then(|below| EDGES.get(below)).copied().unwrap_or(0);
        let upper = EDGES.get(at).copied().unwrap_or(below);
        Some(Duration::from_nanos(below.midpoint(upper)))
    }

    /// Calls in each of the buckets that end at [`BOUNDS`], and at last those that took longer.
    pub fn per_bound(&self) -> [u64; BOUNDS.len() + 1] {
        let mut sums = [0; BOUNDS.len() + 1];
        for (at, count) in self.counts.iter().enumerate() {
            let edge = EDGES.get(at).copied().unwrap_or(u64::MAX);
            if let Some(sum) = sums.get_mut(BOUNDS.partition_point(|bound| *bound < edge)) {
                *sum += count;
            }
        }
        sums
    }

    /// The buckets that are not empty: upper edge in us (None: longer than all), and calls.
    pub fn filled(&self) -> impl Iterator<Item = (Option<f64>, u64)> + '_ {
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(at, count)| (EDGES.get(at).map(|ns| *ns as f64 / 1e3), *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bound_is_an_edge_and_edges_rise() {
        assert!(BOUNDS.iter().all(|bound| EDGES.contains(bound)));
        assert!(EDGES.is_sorted_by(|a, b| a < b));
        assert!(EDGES[BUCKETS - 1] >= 3_600_000_000_000);
    }

    #[test]
    fn a_bound_counts_what_took_exactly_so_long() {
        let latency = Latency::default();
        latency.record(Duration::from_micros(100));
        latency.record(Duration::from_nanos(100_001));
        latency.record(Duration::from_secs(61));
        latency.record(Duration::MAX);
        let bounds = latency.snapshot().per_bound();
        assert_eq!((bounds[0], bounds[1], bounds[18]), (1, 1, 2));
    }

    #[test]
    fn quantiles_are_within_seven_percent() {
        let latency = Latency::default();
        for us in 1..=10_000 {
            latency.record(Duration::from_micros(us));
        }
        let snapshot = latency.snapshot();
        assert_eq!(snapshot.count(), 10_000);
        for (q, want) in [(0.5, 5e-3), (0.99, 9.9e-3), (0.001, 10e-6)] {
            let got = snapshot.quantile(q).expect("there are calls").as_secs_f64();
            assert!((got / want - 1.0).abs() < 0.07, "{q}: {got}");
        }
        assert_eq!(Latency::default().snapshot().quantile(0.5), None);
    }
}
