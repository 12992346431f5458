//! What can be set on a caller's Mux connection.

use crate::Rules;
use muxgate_wire::mux::server::ServerConfig;
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
}
