//! What sessions tell whoever counts. The session knows nothing of metrics.

use crate::tls::TlsError;
use std::net::SocketAddr;

/// Things worth counting on one side's connections. Every method does nothing by default.
pub trait Events: Send + Sync + 'static {
    /// A connection was made (upstream) or taken (downstream).
    fn opened(&self) {}
    /// A connection ended.
    fn closed(&self) {}
    /// A connection could not be made.
    fn connect_failed(&self) {}
    /// The number of pooled connections without a call changed by so much.
    fn idle(&self, _change: i64) {}
    /// A call was given up with its answer still to come.
    fn abandoned(&self) {}
    /// The service was told to forget a call (Tdiscarded).
    fn discarded(&self) {}
    /// Bytes that are not the protocol; `cause` is from a closed list.
    fn decode_error(&self, _cause: &'static str) {}
    /// A peer was refused or cut off for a limit; `cause` is from a closed list.
    fn limited(&self, _cause: &'static str) {}
    /// A TLS handshake failed, or was not even begun. The peer's address is told where the counter cannot know it.
    fn tls_failed(&self, _peer: Option<SocketAddr>, _error: &TlsError) {}
    /// An answer came for a call that nobody waits for.
    fn late_reply(&self) {}
}

/// Counts nothing.
#[derive(Clone, Copy, Debug)]
pub struct Uncounted;

impl Events for Uncounted {}
