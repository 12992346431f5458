//! What sessions and accrual report, as the endpoint's numbers.

use super::accrual;
use crate::observe::EndpointStats;
use muxgate_rpc::events::Events;
use std::sync::Arc;
use std::time::Duration;

/// Counts for one endpoint.
pub struct Counted(pub Arc<EndpointStats>);

impl Events for Counted {
    fn opened(&self) {
        self.0.connects.add_one();
    }

    fn idle(&self, change: i64) {
        self.0.idle.add(change);
    }

    fn abandoned(&self) {
        self.0.abandoned.add_one();
    }

    fn discarded(&self) {
        self.0.discarded.add_one();
    }
}

impl accrual::Events for Counted {
    fn removed(&self, wait: Duration) {
        self.0.removals.add_one();
        tracing::warn!(
            cluster = &*self.0.cluster,
            endpoint = self.0.address.map(tracing::field::display),
            seconds = wait.as_secs_f64(),
            "endpoint marked dead"
        );
    }

    fn probed(&self) {
        self.0.probes.add_one();
    }

    fn revived(&self) {
        self.0.revivals.add_one();
        tracing::info!(
            cluster = &*self.0.cluster,
            endpoint = self.0.address.map(tracing::field::display),
            "endpoint is back"
        );
    }
}
