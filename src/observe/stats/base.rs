//! Numbers of the base table that is followed in a store.

use super::Counter;
use parking_lot::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// How the table and its stores are.
#[derive(Debug, Default)]
pub struct TableStats {
    /// Times that another table was taken into use.
    pub changes: Counter,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    heard: Option<Instant>,
    outage: Option<Instant>,
}

impl TableStats {
    /// A store gave a sign of life.
    pub fn heard(&self) {
        let mut state = self.state.lock();
        state.heard = Some(Instant::now());
        state.outage = None;
    }

    /// From now on, no store can be followed.
    pub fn lost(&self) {
        self.state.lock().outage.get_or_insert_with(Instant::now);
    }

    /// Time since a store was heard of.
    pub fn age(&self) -> Option<Duration> {
        self.state.lock().heard.map(|heard| heard.elapsed())
    }

    /// How long no store could be followed; zero while one is.
    pub fn outage(&self) -> Duration {
        self.state.lock().outage.map_or(Duration::ZERO, |since| since.elapsed())
    }
}
