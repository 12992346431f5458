//! What can be set about an endpoint, by the prefix of the bound id.

use muxgate_rpc::tls::ClientTls;
use muxgate_wire::mux::handshake::{CompressionLevel, TlsLevel};
use muxgate_wire::thrift::Protocol;
use std::time::Duration;

/// Settings of a cluster's endpoints.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// What the services speak.
    pub upstream: Upstream,
    /// The Thrift protocol the services speak: calls in another are translated. None passes calls on as they come.
    pub protocol: Option<Protocol>,
    /// Takes the service's part off the name of a method (`Service:method`).
    pub strip_service: bool,
    /// Encrypts connections; none for plain ones.
    pub tls: Option<Tls>,
    /// Bounds one attempt (linkerd's `requestAttemptTimeoutMs`); none by default.
    pub attempt: Option<Duration>,
    /// Time to connect, TLS handshake included; a Mux handshake may take five times as long.
    pub connect: Duration,
    /// When an endpoint is marked dead; none switches it off.
    pub accrual: Option<Accrual>,
    /// Connections to each plain Thrift endpoint.
    pub pool: Pool,
    /// Whether a declared exception counts as a failure of the call.
    pub declared_fails: bool,
    /// Largest reply taken, in bytes.
    pub max_frame: usize,
    /// Whether what is sent to and by Mux services may be compressed.
    pub compression: CompressionLevel,
}

/// TLS towards the endpoints of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Tls {
    /// Certificates, and the name that is asked for.
    pub client: ClientTls,
    /// `Off`: every connection is encrypted from its first byte. Else a Mux session begins in clear, and its handshake says
    /// whether TLS follows.
    pub opportunistic: TlsLevel,
}

/// What a service speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Upstream {
    /// Mux with Thrift bodies: one session an endpoint.
    #[default]
    ThriftMux,
    /// Framed Thrift: a pool of connections, one call at a time on each.
    Framed,
    /// Framed Thrift that is offered the TTwitter upgrade on every new connection.
    TTwitter,
    /// Messages without frames; a pool too.
    Buffered,
    /// THeader; a pool too.
    Header,
}

/// Failure accrual by consecutive failures (linkerd's `io.l5d.consecutiveFailures`).
#[derive(Clone, Debug, PartialEq)]
pub struct Accrual {
    /// So many in a row mark an endpoint dead.
    pub failures: u32,
    /// First time out of choice; doubles, with jitter, each time the probe call fails.
    pub min_backoff: Duration,
    /// Longest time out of choice.
    pub max_backoff: Duration,
}

/// Linkerd's `hostConnectionPool`.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// `maxSize`: connections to one endpoint at once.
    pub max_size: usize,
    /// `maxWaiters`: calls that wait for a connection; more are refused.
    pub max_waiters: usize,
    /// `idleTimeMs`: an unused connection is closed after it.
    pub idle: Duration,
    /// `lifeTimeMs`: a connection older than this, pooled or Mux, is replaced by another and closed once its calls are answered;
    /// none by default.
    pub life: Option<Duration>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            upstream: Upstream::default(),
            protocol: None,
            strip_service: false,
            tls: None,
            attempt: None,
            connect: Duration::from_secs(1),
            accrual: Some(Accrual::default()),
            pool: Pool::default(),
            declared_fails: false,
            max_frame: 16_384_000,
            compression: CompressionLevel::Off,
        }
    }
}

impl Default for Accrual {
    fn default() -> Self {
        Self { failures: 5, min_backoff: Duration::from_secs(5), max_backoff: Duration::from_secs(300) }
    }
}

impl Default for Pool {
    fn default() -> Self {
        Self { max_size: 1024, max_waiters: 1024, idle: Duration::from_secs(60), life: None }
    }
}
