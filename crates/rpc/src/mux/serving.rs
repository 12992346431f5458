//! A session for a caller: the socket on one side, tasks that answer calls on the other.

mod leases;

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
use crate::{Failure, Peer, Request, Response, Rules, Serve, Why, bridge};
use bytes::{Buf, Bytes};
use futures_util::task::AtomicWaker;
use muxgate_wire::mux::frame::{self, FrameError};
use muxgate_wire::mux::handshake::HandshakeError;
use muxgate_wire::mux::message::Status;
use muxgate_wire::mux::outbox::Staged;
use muxgate_wire::mux::server::{Refusal, Request as MuxRequest, ServerEvent, ServerSession};
use muxgate_wire::mux::session::{Call, SessionError};
use muxgate_wire::pairs::Pairs;
use parking_lot::Mutex;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::AsyncWrite;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

/// A caller that sends no more may be gone altogether, which a socket tells only who tries to write. So often it is tried.
const PROBE_EVERY: Duration = Duration::from_secs(1);

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

    /// Answers a call; the socket's task is woken by the first of a batch only.
    fn reply(&self, call: Call, result: Result<Response, Failure>) {
        let mut machine = self.machine.lock();
        let idle = machine.outbox().is_empty();
        answer(&mut machine, call, result);
        drop(machine);
        if idle {
            self.wake.wake();
        }
    }
}

/// Writes an answer into the outbox in the form that Mux has for it.
fn answer(machine: &mut ServerSession<Running>, call: Call, result: Result<Response, Failure>) {
    match result {
        Ok(Response { contexts, body, .. }) => {
            machine.reply(
                call,
                Status::Ok,
                |out| contexts.iter().for_each(|(key, value)| out.put(key, value)),
                body,
            );
        }
        Err(failure) => {
            let status = if failure.is_retryable() { Status::Nack } else { Status::Error };
            machine.reply(
                call,
                status,
                |out| {
                    if let Some(flags) = bridge::mux_failure(&failure) {
                        out.put_failure(flags);
                    }
                    failure.contexts().iter().for_each(|(key, value)| out.put(key, value));
                },
                Bytes::from(failure.to_string()),
            );
        }
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

/// Bytes that count as in progress until this is dropped.
struct InProgress {
    session: Arc<Session>,
    bytes: usize,
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.session.in_progress.fetch_sub(self.bytes, Ordering::Relaxed);
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

    /// Starts the task that answers a call. The lock that is held keeps its answer back until the call is recorded.
    fn start(
        &mut self,
        session: &Arc<Session>,
        machine: &mut ServerSession<Running>,
        call: Call,
        request: MuxRequest,
        now: Instant,
    ) {
        let built = build(request, session.peer, now).and_then(|mut request| {
            self.rules.apply(&mut request.body)?;
            Ok(request)
        });
        let mut request = match built {
            Ok(request) => request,
            Err(failure) => {
                self.events.decode_error("dispatch");
                return answer(machine, call, Err(failure));
            }
        };
        let bytes = request.body.bytes().len();
        let held = session.in_progress.fetch_add(bytes, Ordering::Relaxed) + bytes;
        // Replies that the caller does not take count too: they are what its calls become.
        if held + machine.outbox().queued_bytes() > session.max_in_progress {
            session.in_progress.fetch_sub(bytes, Ordering::Relaxed);
            self.events.limited("bytes_in_progress");
            self.stay_away(machine, session.clock.now());
            let failure =
                Failure::new(Why::Overload, "too many bytes of calls in progress on the connection");
            return answer(machine, call, Err(failure));
        }
        let discarded = Discarded::default();
        request.local.discarded = Some(Arc::clone(&discarded));
        request.local.identity = session.identity.get().cloned();
        let in_progress = InProgress { session: Arc::clone(session), bytes };
        let service = Arc::clone(&self.service);
        // Boxed, since the runtime would move what is large several times before it is at its place.
        let task = tokio::spawn(Box::pin(async move {
            let result = service.call(&mut request).await;
            in_progress.session.reply(call, result);
        }));
        machine.accept(call, Running { task: task.abort_handle(), discarded });
    }

    /// The next moment at which something is due.
    fn due(&self, session: &Session) -> Option<Instant> {
        let machine = session.machine.lock();
        let idle = self.idle.filter(|_| machine.in_flight() == 0).map(|idle| self.last_active + idle);
        let stall =
            self.blocked_since.into_iter().chain(self.partial_since).min().map(|since| since + self.stall);
        let tick = machine.next_tick().map(|at| session.clock.at(at));
        let probe = self.ended.then(|| self.last_active + PROBE_EVERY);
        [idle, stall, tick, probe, self.away_until, self.hears_until].into_iter().flatten().min()
    }

    /// Something is due; false ends the connection.
    fn on_time(&mut self, session: &Session, cx: &mut Context<'_>) -> bool {
        let now = Instant::now();
        if self.ended && self.last_active + PROBE_EVERY <= now {
            self.last_active = now;
            let reset = matches!(Pin::new(&mut self.io).poll_write(cx, &[]), Poll::Ready(Err(_)));
            // It may have closed only its half, or be gone: it is waited for, but not for ever.
            if reset || self.ended_at + self.stall <= now {
                return false;
            }
        }
        if self.blocked_since.is_some_and(|since| since + self.stall <= now) {
            self.events.limited("slow_reader");
            return false;
        }
        if self.partial_since.is_some_and(|since| since + self.stall <= now) {
            self.events.limited("slow_frame");
            return false;
        }
        if self.idle.is_some_and(|idle| self.last_active + idle <= now) {
            self.events.limited("idle_time");
            self.drain(session);
            // Once is enough: what remains is the caller's turn, or the drain limit.
            self.idle = None;
        }
        let mut machine = session.machine.lock();
        if self.away_until.is_some_and(|until| until <= now) {
            self.may_come_back(session, &mut machine, now);
        }
        if self.hears_until.is_some_and(|until| until <= now) {
            self.hears_until = None;
            // Some callers never say so; they get nacks from now on, and the connection ends with its last call.
            if machine.stop_waiting() {
                self.events.limited("unheard_drain");
            }
        }
        if let Err(error) = machine.tick(session.clock.now()) {
            self.events.limited(bound(&error).unwrap_or("slow_handshake"));
            return false;
        }
        true
    }
}

fn build(request: MuxRequest, peer: Option<SocketAddr>, now: Instant) -> Result<Request, Failure> {
    match request {
        MuxRequest::Tdispatch(dispatch) => {
            bridge::from_tdispatch(&dispatch.contexts, dispatch.dst, dispatch.dtab, dispatch.body, peer, now)
        }
        MuxRequest::Treq(treq) => {
            let mut request = bridge::from_tdispatch(
                &Pairs::default(),
                Bytes::new(),
                Pairs::default(),
                treq.body,
                peer,
                now,
            )?;
            request.ctx.trace = treq.trace;
            Ok(request)
        }
    }
}
