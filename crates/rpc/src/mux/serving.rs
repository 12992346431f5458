//! A session for a caller: the socket on one side, tasks that answer calls on the other.

mod calls;
mod leases;
mod times;

use super::causes::{bound, refusal};
use super::params::ServerParams;
use super::stream::{Change, Stream, Switch, Upgrade};
use super::{Clock, READ_CHUNK, READS_A_TURN, WRITE_CHUNK, WRITES_A_TURN, give_way};
use crate::drain::Drain;
use crate::events::Events;
use crate::io::{Io, ReadBuffer, poll_write};
use crate::pressure::Pressure;
use crate::request::Discarded;
use crate::tls::{Identity, TlsError, tls_error};
use crate::{Peer, Rules, Serve};
use bytes::Buf;
use futures_util::task::AtomicWaker;
use muxgate_wire::mux::frame::{self, FrameError};
use muxgate_wire::mux::handshake::HandshakeError;
use muxgate_wire::mux::outbox::Staged;
use muxgate_wire::mux::server::{Refusal, ServerEvent, ServerSession};
use muxgate_wire::mux::session::SessionError;
use parking_lot::Mutex;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::AsyncWrite;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

/// How to stop a call, and where to leave the reason.
struct Running {
    task: AbortHandle,
    discarded: Discarded,
}

/// The session of one connection, shared with the tasks of its calls.
pub(super) struct Session {
    machine: Mutex<ServerSession<Running>>,
    wake: AtomicWaker,
    clock: Clock,
    peer: Option<SocketAddr>,
    /// Who the caller is, once it has shown a certificate.
    identity: OnceLock<Arc<Identity>>,
    /// Bytes of requests that are being answered.
    in_progress: AtomicUsize,
    max_in_progress: usize,
}

impl Session {
    pub(super) fn new(params: &ServerParams, peer: Peer) -> Self {
        Self {
            machine: Mutex::new(ServerSession::new(params.session.clone())),
            wake: AtomicWaker::new(),
            clock: Clock::start(),
            peer: peer.address,
            identity: peer.identity.map_or_else(OnceLock::new, OnceLock::from),
            in_progress: AtomicUsize::new(0),
            max_in_progress: params.max_queued,
        }
    }

    /// Cancels all calls when it is dropped.
    pub(super) fn abort_on_drop(self: &Arc<Self>) -> impl Drop + use<> {
        Abort(Arc::clone(self))
    }

    pub(super) async fn serve<T: Io, S: Serve>(self: &Arc<Self>, mut socket: Socket<T, S>, drain: &Drain) {
        let mut drained = drain.watch();
        let mut draining = false;
        let mut refusals = socket.pressure.watch();
        let _ = self.machine.lock().tick(self.clock.now());
        let mut timer = pin!(sleep_until(self.clock.at(Duration::ZERO)));
        poll_fn(|cx| {
            self.wake.register(cx.waker());
            if !draining && drained.poll(cx).is_ready() {
                draining = true;
                socket.drain(self);
            }
            if refusals.poll(cx) {
                socket.stay_away(&mut self.machine.lock(), self.clock.now());
            }
            loop {
                if socket.turn(self, cx).is_ready() {
                    return Poll::Ready(());
                }
                let Some(due) = socket.due(self) else { return Poll::Pending };
                if timer.deadline() != due {
                    timer.as_mut().reset(due);
                }
                if timer.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                if !socket.on_time(self, cx) {
                    return Poll::Ready(());
                }
            }
        })
        .await;
    }
}

struct Abort(Arc<Session>);

impl Drop for Abort {
    fn drop(&mut self) {
        let running: Vec<_> = self.0.machine.lock().take_all().collect();
        for (_, call) in running {
            if let Some(call) = call {
                call.task.abort();
            }
        }
    }
}

/// What the connection's own task owns.
pub(super) struct Socket<T, S> {
    io: Stream<T>,
    switch: Switch,
    upgrade: Option<Arc<dyn Upgrade>>,
    read: ReadBuffer,
    staged: Staged,
    /// Something was written that the stream may still hold.
    unflushed: bool,
    service: Arc<S>,
    events: Arc<dyn Events>,
    rules: Rules,
    max_frame: u32,
    stall: Duration,
    idle: Option<Duration>,
    /// The caller sends no more.
    ended: bool,
    /// When it said so.
    ended_at: Instant,
    /// Since when the caller has taken nothing although there is something to take.
    blocked_since: Option<Instant>,
    pressure: Pressure,
    max_in_flight: usize,
    /// The caller was told to stay away (a lease of 0); then it is seen whether it may come back.
    away_until: Option<Instant>,
    /// The caller was asked for no more calls.
    draining: bool,
    /// Until when it is waited for the caller's word that it has heard.
    hears_until: Option<Instant>,
    /// When something last came in or went out.
    last_active: Instant,
    /// Since when a frame is there of which the rest is missing.
    partial_since: Option<Instant>,
}

impl<T: Io, S: Serve> Socket<T, S> {
    pub(super) fn new(
        io: T,
        mut read: ReadBuffer,
        service: Arc<S>,
        params: &ServerParams,
        events: Arc<dyn Events>,
    ) -> Self {
        read.set_largest(READ_CHUNK);
        Self {
            io: Stream::Plain(io),
            switch: Switch::No,
            upgrade: params.upgrade.clone(),
            read,
            staged: Staged::default(),
            unflushed: false,
            service,
            events,
            rules: params.rules.clone(),
            max_frame: u32::try_from(params.max_frame).unwrap_or(u32::MAX),
            stall: params.stall,
            idle: params.idle,
            pressure: params.pressure.clone(),
            max_in_flight: params.session.max_in_flight,
            away_until: None,
            draining: false,
            hears_until: None,
            ended: false,
            ended_at: Instant::now(),
            blocked_since: None,
            last_active: Instant::now(),
            partial_since: None,
        }
    }

    /// Reads and writes until the socket gives and takes no more. Ready: the connection is over.
    fn turn(&mut self, session: &Arc<Session>, cx: &mut Context<'_>) -> Poll<()> {
        // What detection has read already comes first.
        if !self.read.bytes().is_empty() && !self.switch.is_due() && self.handle_frames(session).is_err() {
            return self.last_words(session, cx);
        }
        let (mut reads, mut writes) = (0, 0);
        loop {
            let Ok(more) = self.poll_write(session, cx) else { return Poll::Ready(()) };
            if self.switch.is_due() && !more {
                if ready!(self.poll_switch(session, cx)).is_err() {
                    return Poll::Ready(());
                }
                continue;
            }
            if reads == READS_A_TURN || writes == WRITES_A_TURN {
                give_way(cx);
                return Poll::Pending;
            }
            if !self.ended && !self.switch.is_due() {
                let missing = frame::needed(self.read.bytes());
                match self.read.poll_fill(&mut self.io, cx, missing) {
                    Poll::Ready(Ok(0)) => {
                        self.ended = true;
                        // Its rest will never come, but what was asked before it is answered.
                        self.partial_since = None;
                        self.last_active = Instant::now();
                        self.ended_at = self.last_active;
                    }
                    Poll::Ready(Ok(_)) => {
                        reads += 1;
                        if self.handle_frames(session).is_err() {
                            return self.last_words(session, cx);
                        }
                        continue;
                    }
                    Poll::Ready(Err(_)) => return Poll::Ready(()),
                    Poll::Pending => {}
                }
            }
            if more {
                writes += 1;
                continue;
            }
            return self.rest(session);
        }
    }

    /// Goes over to the stream that was agreed upon, once the Rinit is written. Err: the connection is over.
    fn poll_switch(&mut self, session: &Arc<Session>, cx: &mut Context<'_>) -> Poll<Result<(), ()>> {
        if session.machine.lock().is_drained() {
            return Poll::Ready(Err(()));
        }
        if let Switch::Agreed(agreed) = self.switch {
            if self.staged.has_remaining() || self.unflushed {
                return Poll::Pending;
            }
            if agreed.tls && self.upgrade.is_none() {
                return Poll::Ready(Err(()));
            }
            let change = Change {
                tls: self.upgrade.clone().filter(|_| agreed.tls),
                decompress: agreed.compressed.requests,
                compress: agreed.compressed.responses,
            };
            self.io.change(self.read.take(), change);
            self.switch = Switch::Changing;
        }
        match ready!(self.io.poll_changed(cx)) {
            Ok(Some(identity)) => drop(session.identity.set(Arc::new(identity))),
            Ok(None) => {}
            Err(error) => {
                tracing::debug!(peer = ?session.peer, %error, "TLS did not begin");
                match tls_error(&error) {
                    Some(error) => self.events.tls_failed(session.peer, error),
                    None => self.events.decode_error("tls"),
                }
                return Poll::Ready(Err(()));
            }
        }
        self.switch = Switch::No;
        self.last_active = Instant::now();
        session.machine.lock().switched();
        Poll::Ready(Ok(()))
    }

    /// Nothing more to do now: is there anything to wait for?
    fn rest(&mut self, session: &Arc<Session>) -> Poll<()> {
        let machine = session.machine.lock();
        let written = machine.outbox().is_empty() && self.blocked_since.is_none();
        let quiet = machine.in_flight() == 0 && written;
        if quiet {
            self.read.release();
        }
        match (machine.is_drained() && written) || (self.ended && quiet) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    /// The session is broken: writes the Rerr that may say why, as far as the socket takes it.
    fn last_words(&mut self, session: &Arc<Session>, cx: &mut Context<'_>) -> Poll<()> {
        let _ = self.poll_write(session, cx);
        Poll::Ready(())
    }

    /// Writes what there is, or its share of it: true when more could be written at once.
    fn poll_write(&mut self, session: &Arc<Session>, cx: &mut Context<'_>) -> Result<bool, ()> {
        let mut written = 0;
        while written < WRITE_CHUNK {
            if !self.staged.has_remaining() {
                session.machine.lock().outbox_mut().hand_out(&mut self.staged);
            }
            if !self.staged.has_remaining() {
                return self.poll_flush(cx).map(|()| false);
            }
            match poll_write(&mut self.io, cx, &mut self.staged) {
                Poll::Ready(Ok(count @ 1..)) => {
                    written += count;
                    self.unflushed = true;
                    self.blocked_since = None;
                }
                Poll::Ready(_) => return Err(()),
                Poll::Pending => {
                    self.blocked_since.get_or_insert_with(Instant::now);
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Sees to it that nothing of what was written stays in a stream that buffers.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Result<(), ()> {
        if self.unflushed {
            match Pin::new(&mut self.io).poll_flush(cx) {
                Poll::Ready(Ok(())) => self.unflushed = false,
                Poll::Ready(Err(_)) => return Err(()),
                Poll::Pending => {
                    self.blocked_since.get_or_insert_with(Instant::now);
                    return Ok(());
                }
            }
        }
        self.blocked_since = None;
        Ok(())
    }

    fn handle_frames(&mut self, session: &Arc<Session>) -> Result<(), ()> {
        let now = Instant::now();
        self.last_active = now;
        let mut machine = session.machine.lock();
        loop {
            let frame = match frame::next_frame(self.read.bytes_mut(), self.max_frame) {
                Ok(Some(frame)) => frame,
                Ok(None) if self.read.bytes().is_empty() => {
                    self.partial_since = None;
                    return Ok(());
                }
                Ok(None) => {
                    self.partial_since.get_or_insert(now);
                    return Ok(());
                }
                Err(FrameError::TooLong { .. }) => {
                    self.events.limited("frame_too_long");
                    return Err(());
                }
                Err(FrameError::TooShort { .. }) => {
                    self.events.decode_error("frame");
                    return Err(());
                }
            };
            self.partial_since = None;
            match machine.receive(frame, now - session.clock.0) {
                Ok(ServerEvent::Dispatch { call, request }) => {
                    self.start(session, &mut machine, call, request, now);
                }
                Ok(ServerEvent::Discarded { token: Some(running), why, .. }) => {
                    let _ = running.discarded.set(why);
                    running.task.abort();
                }
                Ok(ServerEvent::Established(agreed)) if agreed.switches() => {
                    self.switch = Switch::Agreed(agreed);
                    return Ok(());
                }
                Ok(ServerEvent::Refused { why, .. }) => {
                    self.events.limited(refusal(&why));
                    if matches!(why, Refusal::InFlight | Refusal::Queued) {
                        self.stay_away(&mut machine, session.clock.now());
                    }
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::debug!(peer = ?session.peer, %error, "a Mux session broke");
                    match (bound(&error), &error) {
                        (Some(cause), _) => self.events.limited(cause),
                        (None, SessionError::Handshake(HandshakeError::Tls)) => {
                            self.events.tls_failed(session.peer, &TlsError::not_agreed());
                        }
                        (None, _) => self.events.decode_error("session"),
                    }
                    return Err(());
                }
            }
        }
    }
}
