//! What an endpoint speaks.

use super::{Params, Upstream};
use muxgate_rpc::events::Events;
use muxgate_rpc::tls::ClientTls;
use muxgate_rpc::{Failure, Request, Response, Serve, Status, mux, thrift};
use muxgate_wire::mux::client::ClientConfig;
use muxgate_wire::mux::handshake::{Compression, Offer, TlsLevel};
use muxgate_wire::mux::limits::{Limits, MAX_QUEUED_BYTES};
use muxgate_wire::thrift::Protocol;
use std::net::SocketAddr;
use std::sync::Arc;

/// A service answers the handshake itself, while the kernel answers a connection: it gets so many times as long.
const HANDSHAKE: u32 = 5;

/// Calls in flight on the one session of an endpoint: many callers share it, and none of them may fill it within its own
/// limit.
const MAX_IN_FLIGHT: usize = 262_144;

/// So many messages of the largest size have room in what waits to be written: one of them must not make others be refused.
const LARGEST_QUEUED: usize = 4;

/// Tags that rest before they are used again.
const TAG_REST: usize = 256;

/// What stands around the messages of a plain service.
fn transport(params: &Params) -> thrift::Transport {
    match params.upstream {
        Upstream::Buffered => thrift::Transport::Buffered,
        Upstream::Header => thrift::Transport::Header,
        // Binary is Finagle's default, and the only protocol of the header that most servers of it speak.
        Upstream::TTwitter => thrift::Transport::TTwitter(params.protocol.unwrap_or(Protocol::Binary)),
        Upstream::ThriftMux | Upstream::Framed => thrift::Transport::Framed,
    }
}

/// What encrypts connections from their first byte. Only the handshake of Mux can agree on TLS: where there is none, nothing
/// that is to be encrypted may begin in clear.
fn from_the_start(params: &Params) -> Option<ClientTls> {
    let tls = params.tls.as_ref()?;
    let agreed_later = params.upstream == Upstream::ThriftMux && tls.opportunistic != TlsLevel::Off;
    (!agreed_later).then(|| tls.client.clone())
}

/// One Mux session, or a pool of plain connections.
#[expect(
    clippy::large_enum_variant,
    reason = "one for each endpoint: a hop less for each call is worth the room"
)]
pub enum Session {
    Mux(mux::Client),
    Plain(thrift::Client),
}

impl Session {
    pub fn new(address: SocketAddr, params: &Params, events: Arc<dyn Events>) -> Self {
        match params.upstream {
            Upstream::ThriftMux => {
                let in_clear = params.tls.as_ref().filter(|tls| tls.opportunistic != TlsLevel::Off);
                let mut session = ClientConfig {
                    handshake_timeout: params.connect * HANDSHAKE,
                    max_in_flight: MAX_IN_FLIGHT,
                    max_queued_bytes: MAX_QUEUED_BYTES.max(params.max_frame.saturating_mul(LARGEST_QUEUED)),
                    tag_rest: TAG_REST,
                    offer: Offer { compression: Compression::both(params.compression), ..Offer::default() },
                    limits: Limits::DEFAULT.with_message_bytes(params.max_frame),
                    ..ClientConfig::default()
                };
                if let Some(tls) = in_clear {
                    session.offer.tls = tls.opportunistic;
                }
                let params = mux::ClientParams {
                    address,
                    tls: from_the_start(params),
                    connect: params.connect,
                    max_frame: params.max_frame,
                    declared_fails: params.declared_fails,
                    life: params.pool.life,
                    session,
                    upgrade: in_clear.map(|tls| Arc::new(tls.client.clone()) as _),
                };
                Self::Mux(mux::Client::new(params, events))
            }
            Upstream::Framed | Upstream::TTwitter | Upstream::Buffered | Upstream::Header => {
                let params = thrift::ClientParams {
                    address,
                    transport: transport(params),
                    tls: from_the_start(params),
                    connect: params.connect,
                    max_size: params.pool.max_size,
                    max_waiters: params.pool.max_waiters,
                    idle: params.pool.idle,
                    life: params.pool.life,
                    max_frame: params.max_frame,
                    declared_fails: params.declared_fails,
                };
                Self::Plain(thrift::Client::new(params, events))
            }
        }
    }
}

impl Serve for Session {
    async fn call(&self, request: &mut Request) -> Result<Response, Failure> {
        match self {
            Self::Mux(client) => client.call(request).await,
            Self::Plain(client) => client.call(request).await,
        }
    }

    fn status(&self) -> Status {
        match self {
            Self::Mux(client) => client.status(),
            Self::Plain(client) => client.status(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Tls;
    use super::*;
    use muxgate_rpc::tls::{ClientFiles, LOOK_EVERY, Trust, Versions};

    #[tokio::test]
    async fn only_mux_may_begin_in_clear_and_agree_on_tls() {
        let files = ClientFiles { trust: Trust::Anybody, certificate: None, versions: Versions::All };
        let client = ClientTls::start(files, LOOK_EVERY, Arc::new(())).expect("no files");
        let encrypts = |upstream, opportunistic| {
            let tls = Some(Tls { client: client.clone(), opportunistic });
            from_the_start(&Params { upstream, tls, ..Params::default() }).is_some()
        };
        let plain = [Upstream::Framed, Upstream::TTwitter, Upstream::Buffered, Upstream::Header];
        for level in [TlsLevel::Off, TlsLevel::Desired, TlsLevel::Required] {
            for upstream in plain {
                assert!(encrypts(upstream, level), "{upstream:?} {level:?}");
            }
            assert_eq!(encrypts(Upstream::ThriftMux, level), level == TlsLevel::Off, "{level:?}");
        }
        assert!(from_the_start(&Params::default()).is_none());
    }
}
