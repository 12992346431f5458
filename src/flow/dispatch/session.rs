//! What an endpoint speaks.

use super::{Params, Upstream};
use muxgate_rpc::events::Events;
use muxgate_rpc::{Failure, Request, Response, Serve, Status, mux, thrift};
use muxgate_wire::mux::client::ClientConfig;
use muxgate_wire::mux::handshake::{Compression, Offer};
use muxgate_wire::mux::limits::Limits;
use std::net::SocketAddr;
use std::sync::Arc;

/// A service answers the handshake itself, while the kernel answers a connection: it gets so many times as long.
const HANDSHAKE: u32 = 5;

/// Calls in flight on the one session of an endpoint: many callers share it, and none of them may fill it within its own
/// limit.
const MAX_IN_FLIGHT: usize = 262_144;

/// Tags that rest before they are used again.
const TAG_REST: usize = 256;

/// One Mux session, or a pool of plain connections.
pub enum Session {
    Mux(mux::Client),
    Framed(thrift::Client),
}

impl Session {
    pub fn new(address: SocketAddr, params: &Params, events: Arc<dyn Events>) -> Self {
        match params.upstream {
            Upstream::ThriftMux => {
                let session = ClientConfig {
                    handshake_timeout: params.connect * HANDSHAKE,
                    max_in_flight: MAX_IN_FLIGHT,
                    tag_rest: TAG_REST,
                    offer: Offer { compression: Compression::both(params.compression), ..Offer::default() },
                    limits: Limits::DEFAULT.with_message_bytes(params.max_frame),
                    ..ClientConfig::default()
                };
                let params = mux::ClientParams {
                    address,
                    connect: params.connect,
                    max_frame: params.max_frame,
                    declared_fails: params.declared_fails,
                    session,
                    upgrade: None,
                };
                Self::Mux(mux::Client::new(params, events))
            }
            Upstream::Framed | Upstream::TTwitter => {
                let params = thrift::ClientParams {
                    address,
                    ttwitter: params.upstream == Upstream::TTwitter,
                    connect: params.connect,
                    max_size: params.pool.max_size,
                    max_waiters: params.pool.max_waiters,
                    idle: params.pool.idle,
                    max_frame: params.max_frame,
                    declared_fails: params.declared_fails,
                };
                Self::Framed(thrift::Client::new(params, events))
            }
        }
    }
}

impl Serve for Session {
    async fn call(&self, request: &mut Request) -> Result<Response, Failure> {
        match self {
            Self::Mux(client) => client.call(request).await,
            Self::Framed(client) => client.call(request).await,
        }
    }

    fn status(&self) -> Status {
        match self {
            Self::Mux(client) => client.status(),
            Self::Framed(client) => client.status(),
        }
    }
}
