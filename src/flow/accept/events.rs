//! What sessions report, as the listener's numbers.

use crate::observe::ListenerStats;
use muxgate_rpc::events::Events;
use muxgate_rpc::tls::{Cause, TlsError};
use std::net::SocketAddr;
use std::sync::Arc;

/// Counts for one listener.
pub struct Counted(pub Arc<ListenerStats>);

impl Events for Counted {
    fn decode_error(&self, cause: &'static str) {
        self.0.decode_errors.add_one(cause);
    }

    fn tls_failed(&self, peer: Option<SocketAddr>, error: &TlsError) {
        self.0.tls_failures.add_one(error.cause().name());
        let listener = &*self.0.label;
        match error.cause() {
            // It went away, or sleeps: nobody's mistake.
            Cause::Closed | Cause::Slow => tracing::debug!(listener, ?peer, %error, "no TLS"),
            _ => tracing::info!(listener, ?peer, %error, "TLS handshake failed"),
        }
    }

    fn limited(&self, cause: &'static str) {
        self.0.limited.add_one(cause);
    }
}
