//! Thrift over a socket: a pool of connections towards services, a session towards callers.

mod client;
mod connection;
mod pool;
mod server;
mod transport;

pub use client::{Client, ClientParams};
pub use server::{Caller, Framing, MAX_AT_ONCE, MAX_ONEWAYS, ServerParams, serve};
pub use transport::Transport;

/// Bytes asked for by one read: most calls and replies are far smaller.
pub(crate) const READ_CHUNK: usize = 32 << 10;
