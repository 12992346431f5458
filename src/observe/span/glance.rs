//! A glance at traces that nobody has decided about: a few a second, for our own pages.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::time::Instant;

/// One trace is looked at in so many milliseconds.
const EVERY_MS: u64 = 100;

/// Says yes to the first call after each pause. Costs one atomic read while it says no.
#[derive(Debug, Default)]
pub struct Glance {
    origin: OnceLock<Instant>,
    /// Milliseconds from the origin to the next yes.
    next: AtomicU64,
}

impl Glance {
    /// Whether to look at a call that came at `now`.
    pub fn at(&self, now: Instant) -> bool {
        let origin = *self.origin.get_or_init(|| now);
        let now = u64::try_from(now.saturating_duration_since(origin).as_millis()).unwrap_or(u64::MAX);
        let next = self.next.load(Relaxed);
        now >= next && self.next.compare_exchange(next, now + EVERY_MS, Relaxed, Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn looks_at_a_few_a_second() {
        let glance = Glance::default();
        let start = Instant::now();
        let looked = (0..10_000).filter(|ms| glance.at(start + Duration::from_millis(*ms)));
        assert_eq!(looked.count(), 100);
    }
}
