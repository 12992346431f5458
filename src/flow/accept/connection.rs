//! One connection: find out what it speaks, then serve it as that.

use super::Params;
use super::secure;
use super::spoken::{How, Verdict, judge};
use muxgate_rpc::events::Events;
use muxgate_rpc::io::{Io, ReadBuffer};
use muxgate_rpc::{Drain, Peer, Rules, Serve};
use muxgate_rpc::{mux, thrift};
use muxgate_wire::mux::limits::Limits;
use muxgate_wire::mux::server::ServerConfig;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use tokio::time::timeout;

/// Bytes asked for by a read, at most, until the protocol is known.
pub(super) const FIRST_READ: usize = 4 << 10;

/// What all connections of a listener share.
pub struct Shared<S> {
    pub service: Arc<S>,
    pub events: Arc<dyn Events>,
    pub drain: Drain,
    pub mux: mux::ServerParams,
    /// The same for connections that are encrypted already: there is nothing to agree upon any more.
    pub mux_in_tls: mux::ServerParams,
    pub thrift: thrift::ServerParams,
    pub(super) params: Params,
}

impl<S: Serve> Shared<S> {
    pub fn new(params: Params, service: S, events: Arc<dyn Events>) -> Self {
        let session = ServerConfig {
            handshake_timeout: params.stall,
            max_in_flight: params.max_in_flight,
            max_queued_bytes: params.max_queued,
            limits: Limits::DEFAULT.with_message_bytes(params.max_frame),
            ..ServerConfig::default()
        };
        let rules = Rules::new(params.thrift_protocol, params.oneway_methods.iter().cloned());
        let mux_in_tls = mux::ServerParams {
            max_frame: params.max_frame,
            max_queued: params.max_queued,
            stall: params.stall,
            idle: params.idle,
            rules: rules.clone(),
            session,
            upgrade: None,
        };
        Self {
            service: Arc::new(service),
            events,
            drain: Drain::default(),
            mux: secure::in_clear(&mux_in_tls, params.tls.as_ref()),
            mux_in_tls,
            thrift: thrift::ServerParams {
                max_at_once: params.max_in_flight.min(thrift::MAX_AT_ONCE),
                max_held: params.max_queued,
                rules,
                ..thrift::ServerParams::new(params.max_frame, params.stall, params.idle)
            },
            params,
        }
    }

    /// Serves one connection to its end.
    pub async fn serve<T: Io>(&self, mut io: T, peer: SocketAddr) {
        let mut read = ReadBuffer::new(FIRST_READ);
        let Some(verdict) = self.first_bytes(&mut io, &mut read).await else { return };
        match &self.params.tls {
            None => self.speak(verdict, io, read, Some(peer).into(), &self.mux).await,
            // Boxed, so that plain connections do not carry the room for this.
            Some(tls) => Box::pin(self.encrypted(tls, verdict, io, read, peer)).await,
        }
    }

    /// Serves a connection that speaks this.
    pub(super) async fn speak<T: Io>(
        &self,
        verdict: Verdict,
        io: T,
        read: ReadBuffer,
        peer: Peer,
        mux: &mux::ServerParams,
    ) {
        match verdict {
            Verdict::Serve(How::Mux) => {
                // Boxed, so that an idle plain connection does not carry the room for this.
                let service = Arc::clone(&self.service);
                let events = Arc::clone(&self.events);
                Box::pin(mux::serve(io, read, peer, service, mux, &self.drain, events)).await;
            }
            Verdict::Serve(How::Thrift(framing)) => {
                let caller = thrift::Caller { io, read, framing, peer };
                thrift::serve(caller, &self.service, &self.thrift, &self.drain, &*self.events).await;
            }
            Verdict::Refuse(cause) => self.refuse(peer, cause),
            Verdict::Tls => self.refuse(peer, "tls"),
            Verdict::More => {}
        }
    }

    fn refuse(&self, peer: Peer, cause: &'static str) {
        tracing::debug!(peer = ?peer.address, cause, "connection refused");
        self.events.decode_error(cause);
    }

    /// Reads until the protocol is known. A peer that says nothing may take its time, up to the idle limit; one that has
    /// begun to speak may not.
    pub(super) async fn first_bytes<T: Io>(&self, io: &mut T, read: &mut ReadBuffer) -> Option<Verdict> {
        let mut drain = self.drain.watch();
        let first = poll_fn(|cx| {
            if drain.poll(cx).is_ready() {
                return Poll::Ready(Ok(0));
            }
            let polled = read.poll_fill(io, cx, 0);
            if polled.is_pending() {
                read.release();
            }
            polled
        });
        let first = match self.params.idle {
            Some(idle) => timeout(idle, first).await.ok()?,
            None => first.await,
        };
        if !matches!(first, Ok(1..)) {
            return None;
        }
        let rest = async {
            loop {
                match judge(self.params.protocol, read.bytes(), self.params.max_frame) {
                    Verdict::More => {}
                    known => return Some(known),
                }
                let more = poll_fn(|cx| read.poll_fill(io, cx, 0)).await;
                if !matches!(more, Ok(1..)) {
                    return None;
                }
            }
        };
        timeout(self.params.stall, rest).await.unwrap_or_else(|_| {
            self.events.limited("slow_first_bytes");
            None
        })
    }
}
