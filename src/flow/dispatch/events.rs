//! What sessions and accrual report, as the endpoint's numbers.

use super::accrual;
use crate::observe::EndpointStats;
use muxgate_rpc::events::Events;
use muxgate_rpc::tls::TlsError;
use muxgate_wire::name::Path;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Counts for one endpoint, and logs what happens to it.
pub struct Counted {
    pub stats: Arc<EndpointStats>,
    pub cluster: Path,
    pub address: SocketAddr,
    /// A failed TLS handshake was logged, and no connection has been made since.
    told: AtomicBool,
}

impl Counted {
    pub fn new(stats: Arc<EndpointStats>, cluster: Path, address: SocketAddr) -> Self {
        Self { stats, cluster, address, told: AtomicBool::new(false) }
    }
}

impl Events for Counted {
    fn opened(&self) {
        self.stats.connects.add_one();
        if self.told.load(Ordering::Relaxed) {
            self.told.store(false, Ordering::Relaxed);
        }
    }

    fn tls_failed(&self, _: Option<SocketAddr>, error: &TlsError) {
        self.stats.tls_failures.add_one(error.cause().name());
        // Every call may try again: once is enough until it has worked.
        if !self.told.swap(true, Ordering::Relaxed) {
            let (cluster, endpoint) = (self.cluster.as_str(), self.address);
            tracing::warn!(cluster, %endpoint, %error, "TLS handshake failed");
        }
    }

    fn idle(&self, change: i64) {
        self.stats.idle.add(change);
    }

    fn abandoned(&self) {
        self.stats.abandoned.add_one();
    }

    fn discarded(&self) {
        self.stats.discarded.add_one();
    }
}

impl accrual::Events for Counted {
    fn removed(&self, wait: Duration) {
        self.stats.removals.add_one();
        let (cluster, endpoint) = (self.cluster.as_str(), self.address);
        let seconds = format_args!("{:.1}", wait.as_secs_f64());
        tracing::warn!(cluster, %endpoint, %seconds, "endpoint marked dead");
    }

    fn probed(&self) {
        self.stats.probes.add_one();
    }

    fn revived(&self) {
        self.stats.revivals.add_one();
        tracing::info!(cluster = self.cluster.as_str(), endpoint = %self.address, "endpoint is back");
    }
}
