//! What can be set on a listener.

use super::overrides::Overrides;
use super::{CallLimits, Trust};
use bytes::Bytes;
use muxgate_rpc::tls::ServerTls;
use muxgate_wire::mux::handshake::{CompressionLevel, TlsLevel};
use muxgate_wire::thrift;
use std::net::SocketAddr;
use std::time::Duration;

/// What the connections of a listener speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// What their first bytes say.
    #[default]
    Detect,
    /// Mux.
    ThriftMux,
    /// Thrift in frames, TTwitter too.
    Framed,
    /// Thrift messages back to back.
    Buffered,
    /// Thrift in THeader frames.
    Header,
}

/// A listener's TLS.
#[derive(Clone, Debug, PartialEq)]
pub struct Tls {
    /// Certificates.
    pub server: ServerTls,
    /// `Off`: every connection is encrypted from its first byte. Else some may be, and Mux callers that begin in clear are
    /// told to encrypt by the handshake; with `Required` plain Thrift in clear is refused.
    pub opportunistic: TlsLevel,
}

/// Settings of one listener.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// The label in logs and metrics.
    pub name: String,
    /// Where to listen.
    pub address: SocketAddr,
    /// What connections speak; those that speak something else are closed.
    pub protocol: Protocol,
    /// What calls are encoded in; others are refused. None: either.
    pub thrift_protocol: Option<thrift::Protocol>,
    /// Methods that get no reply, whatever their messages say.
    pub oneway_methods: Vec<Bytes>,
    /// Encrypts connections; none for a plain listener.
    pub tls: Option<Tls>,
    /// Largest frame taken, in bytes without its length prefix. Apache Thrift's default.
    pub max_frame: usize,
    /// Connections held at once; more are closed at once, and counted.
    pub max_connections: usize,
    /// Connections held at once for one address; more are closed at once, and counted. None by default: callers often share
    /// an address, or all live on the gateway's own host.
    pub max_per_peer: Option<usize>,
    /// Calls in flight on one connection. Above it those by Mux are nacked; plain ones wait unread, also above
    /// [`MAX_AT_ONCE`](muxgate_rpc::thrift::MAX_AT_ONCE).
    pub max_in_flight: usize,
    /// Unwritten reply bytes held for one connection; above it nothing more is read from that peer until it reads.
    pub max_queued: usize,
    /// Time for a peer to finish its handshake, or a frame it has begun, and for a queued reply to make progress.
    pub stall: Duration,
    /// Whether what Mux callers send and are sent may be compressed.
    pub compression: CompressionLevel,
    /// A connection with nothing in flight for so long is closed; none by default.
    pub idle: Option<Duration>,
    /// A connection older than this is asked to go (Mux: Tdrain), or closed between two calls (plain); none by default. Each
    /// connection's own time is up to a fifth shorter, so that not all callers come back at once.
    pub life: Option<Duration>,
    /// Who calls here.
    pub trust: Trust,
    /// Who may override what by a dtab of the call; none: everybody everything.
    pub overrides: Option<Overrides>,
    /// What one call may bring.
    pub limits: CallLimits,
}

impl Params {
    /// Defaults for a listener of this name and address.
    pub fn new(name: impl Into<String>, address: SocketAddr) -> Self {
        Self {
            name: name.into(),
            address,
            protocol: Protocol::default(),
            thrift_protocol: None,
            oneway_methods: Vec::new(),
            tls: None,
            max_frame: 16_384_000,
            max_connections: 10_000,
            max_per_peer: None,
            max_in_flight: 16_384,
            max_queued: 16 << 20,
            stall: Duration::from_secs(10),
            compression: CompressionLevel::Off,
            idle: None,
            life: None,
            trust: Trust::Inside,
            overrides: None,
            limits: CallLimits::default(),
        }
    }
}
