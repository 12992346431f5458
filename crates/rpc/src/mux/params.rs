//! What can be set on a caller's Mux connection.

use super::stream::Upgrade;
use crate::{Pressure, Rules};
use muxgate_wire::mux::server::ServerConfig;
use std::sync::Arc;
use std::time::Duration;

/// Settings of a caller's connection.
#[derive(Clone, Debug)]
pub struct ServerParams {
    /// Largest frame taken, in bytes.
    pub max_frame: usize,
    /// Bytes of requests in progress for one connection; more are nacked. The same bound holds for unwritten replies.
    pub max_queued: usize,
    /// A caller that takes none of its replies for so long is cut off.
    pub stall: Duration,
    /// A connection with nothing in flight for so long is drained.
    pub idle: Option<Duration>,
    /// Rules for the calls.
    pub rules: Rules,
    /// Settings of the session: handshake, limits.
    pub session: ServerConfig,
    /// What the listener takes at once: when it is too much, callers are told to stay away for a while.
    pub pressure: Pressure,
    /// Begins TLS when the handshake says so. To be there if the session's offer says that TLS may begin.
    pub upgrade: Option<Arc<dyn Upgrade>>,
}
