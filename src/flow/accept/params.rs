//! What can be set on a listener.

use muxgate_wire::mux::handshake::CompressionLevel;
use std::net::SocketAddr;
use std::time::Duration;

/// Settings of one listener.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// The label in logs and metrics.
    pub name: String,
    /// Where to listen.
    pub address: SocketAddr,
    /// Largest frame taken, in bytes without its length prefix. Apache Thrift's default.
    pub max_frame: usize,
    /// Connections held at once; more are closed at once, and counted.
    pub max_connections: usize,
    /// Calls in flight on one Mux connection; more are nacked.
    pub max_in_flight: usize,
    /// Unwritten reply bytes held for one connection; above it nothing more is read from that peer until it reads.
    pub max_queued: usize,
    /// Time for a peer to finish its handshake, or a frame it has begun, and for a queued reply to make progress.
    pub stall: Duration,
    /// Whether what Mux callers send and are sent may be compressed.
    pub compression: CompressionLevel,
    /// A connection with nothing in flight for so long is closed; none by default.
    pub idle: Option<Duration>,
}

impl Params {
    /// Defaults for a listener of this name and address.
    pub fn new(name: impl Into<String>, address: SocketAddr) -> Self {
        Self {
            name: name.into(),
            address,
            max_frame: 16_384_000,
            max_connections: 10_000,
            max_in_flight: 16_384,
            max_queued: 16 << 20,
            stall: Duration::from_secs(10),
            compression: CompressionLevel::Off,
            idle: None,
        }
    }
}
