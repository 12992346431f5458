//! Waiting for what nothing announces, such as a number on a page.

use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// How long is waited.
pub const LIMIT: Duration = Duration::from_secs(30);
/// Between two looks.
const POLL: Duration = Duration::from_millis(10);

/// Looks again and again until there is something.
///
/// # Panics
/// With `what`, if there is nothing in time.
pub async fn until<T, F: Future<Output = Option<T>>>(what: &str, mut look: impl FnMut() -> F) -> T {
    let end = Instant::now() + LIMIT;
    let mut ticks = interval(POLL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < end, "waited for {what}: not within {LIMIT:?}");
    }
}
