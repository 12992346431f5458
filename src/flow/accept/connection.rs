//! One connection: find out what it speaks, then serve it as that.

use super::secure;
use super::spoken::{How, Verdict, judge};
use super::{Params, Trust};
use futures_util::future::Either;
use muxgate_rpc::events::Events;
use muxgate_rpc::io::{Io, ReadBuffer};
use muxgate_rpc::life::jittered;
use muxgate_rpc::{Drain, Peer, Pressure, Rules, Serve};
use muxgate_rpc::{mux, thrift};
use muxgate_wire::mux::handshake::{Compression, Offer};
use muxgate_wire::mux::limits::Limits;
use muxgate_wire::mux::server::ServerConfig;
use std::future::{pending, poll_fn, ready};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
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
    pub fn new(params: Params, service: S, events: Arc<dyn Events>, pressure: Pressure) -> Self {
        let limits = Limits { destination_only: params.trust == Trust::Outside, ..params.limits.to_wire() };
        let session = ServerConfig {
            handshake_timeout: params.stall,
            max_in_flight: params.max_in_flight,
            max_queued_bytes: params.max_queued,
            offer: Offer { compression: Compression::both(params.compression), ..Offer::default() },
            limits: Limits { partial_idle: params.stall, ..limits.with_message_bytes(params.max_frame) },
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
            pressure,
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
                max_nesting: params.limits.nesting,
                limits,
                rules,
                ..thrift::ServerParams::new(params.max_frame, params.stall, params.idle)
            },
            params,
        }
    }

    /// Serves one connection to its end.
    pub async fn serve<T: Io>(&self, io: T, peer: SocketAddr) {
        match self.params.life {
            None => self.session(io, peer, &self.drain).await,
            // Boxed, so that connections without such a limit do not carry the room for this.
            Some(life) => Box::pin(self.serve_for(io, peer, jittered(life))).await,
        }
    }

    /// A connection that has grown old is drained as if its listener were, but alone: a Mux caller gets a Tdrain and is served
    /// to the end, a plain one is closed between two calls.
    async fn serve_for<T: Io>(&self, io: T, peer: SocketAddr, life: Duration) {
        let drain = Drain::default();
        let old = async {
            if timeout(life, self.drain.begun()).await.is_err() {
                self.events.limited("life_time");
            }
            drain.begin();
            pending().await
        };
        tokio::select! {
            () = self.session(io, peer, &drain) => {}
            () = old => {}
        }
    }

    async fn session<T: Io>(&self, mut io: T, peer: SocketAddr, drain: &Drain) {
        let mut read = ReadBuffer::new(FIRST_READ);
        let Some(verdict) = self.first_bytes(&mut io, &mut read, drain).await else { return };
        match &self.params.tls {
            None => self.speak(verdict, io, read, Some(peer).into(), &self.mux, drain).await,
            // Boxed, so that plain connections do not carry the room for this.
            Some(tls) => Box::pin(self.encrypted(tls, verdict, io, read, peer, drain)).await,
        }
    }

    /// Serves a connection that speaks this. What it is given goes straight to where it stays: an idle connection keeps
    /// nothing twice.
    pub(super) fn speak<'a, T: Io>(
        &'a self,
        verdict: Verdict,
        io: T,
        read: ReadBuffer,
        peer: Peer,
        mux: &'a mux::ServerParams,
        drain: &'a Drain,
    ) -> impl Future<Output = ()> + Send + 'a {
        // Boxed, so that an idle plain connection does not carry the room for this.
        let other: Pin<Box<dyn Future<Output = ()> + Send + 'a>> = match verdict {
            Verdict::Serve(How::Thrift(framing)) => {
                let caller = thrift::Caller { io, read, framing, peer };
                let events = &*self.events;
                return Either::Left(thrift::serve(caller, &self.service, &self.thrift, drain, events));
            }
            Verdict::Serve(How::Mux) => {
                let (service, events) = (Arc::clone(&self.service), Arc::clone(&self.events));
                Box::pin(mux::serve(io, read, peer, service, mux, drain, events))
            }
            Verdict::Refuse(cause) => {
                self.refuse(&peer, cause);
                Box::pin(ready(()))
            }
            Verdict::Tls => {
                self.refuse(&peer, "tls");
                Box::pin(ready(()))
            }
            Verdict::More => Box::pin(ready(())),
        };
        Either::Right(other)
    }

    fn refuse(&self, peer: &Peer, cause: &'static str) {
        tracing::debug!(peer = ?peer.address, cause, "connection refused");
        self.events.decode_error(cause);
    }

    /// Reads until the protocol is known. A peer that says nothing may take its time, up to the idle limit; one that has
    /// begun to speak may not.
    pub(super) async fn first_bytes<T: Io>(
        &self,
        io: &mut T,
        read: &mut ReadBuffer,
        drain: &Drain,
    ) -> Option<Verdict> {
        let mut drain = drain.watch();
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
            Some(idle) => match timeout(idle, first).await {
                Ok(first) => first,
                Err(_) => {
                    self.events.limited("idle_time");
                    return None;
                }
            },
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
