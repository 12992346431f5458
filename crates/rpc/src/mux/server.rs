//! A Mux caller's connection: many calls at once, each a task of its own.

use super::serving::{Session, Socket};
use crate::Serve;
use crate::drain::Drain;
use crate::events::Events;
use crate::io::{Io, ReadBuffer};
use muxgate_wire::mux::server::ServerConfig;
use std::net::SocketAddr;
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
    /// Settings of the session: handshake, limits.
    pub session: ServerConfig,
}

/// Serves one connection until the caller leaves, breaks the protocol, or `drain` begins and the drain has come to
/// its end. An end of input is not the same as "I am gone": what was asked before it is answered. A reset, or dropping
/// this future, cancels all calls of the connection.
pub async fn serve<T: Io, S: Serve>(
    io: T,
    read: ReadBuffer,
    peer: Option<SocketAddr>,
    service: Arc<S>,
    params: &ServerParams,
    drain: &Drain,
    events: Arc<dyn Events>,
) {
    let session = Arc::new(Session::new(params, peer));
    // However this future ends, no call outlives its connection.
    let _guard = session.abort_on_drop();
    let socket = Socket::new(io, read, service, params, events);
    session.serve(socket, drain).await;
}
