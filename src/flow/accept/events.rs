//! What sessions report, as the listener's numbers.

use crate::observe::ListenerStats;
use muxgate_rpc::events::Events;
use std::sync::Arc;

/// Counts for one listener.
pub struct Counted(pub Arc<ListenerStats>);

impl Events for Counted {
    fn decode_error(&self, cause: &'static str) {
        self.0.decode_errors.add_one(cause);
    }

    fn limited(&self, cause: &'static str) {
        self.0.limited.add_one(cause);
    }
}
