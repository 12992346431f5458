//! A Mux caller's connection: many calls at once, each a task of its own.

use super::params::ServerParams;
use super::serving::{Session, Socket};
use crate::drain::Drain;
use crate::events::Events;
use crate::io::{Io, ReadBuffer};
use crate::{Peer, Serve};
use std::sync::Arc;

/// Serves one connection until the caller leaves, breaks the protocol, or `drain` begins and the drain has come to
/// its end. An end of input is not the same as "I am gone": what was asked before it is answered. A reset, or dropping
/// this future, cancels all calls of the connection.
pub async fn serve<T: Io, S: Serve>(
    io: T,
    read: ReadBuffer,
    peer: impl Into<Peer>,
    service: Arc<S>,
    params: &ServerParams,
    drain: &Drain,
    events: Arc<dyn Events>,
) {
    let session = Arc::new(Session::new(params, peer.into()));
    // However this future ends, no call outlives its connection.
    let _guard = session.abort_on_drop();
    let socket = Socket::new(io, read, service, params, events);
    session.serve(socket, drain).await;
}
