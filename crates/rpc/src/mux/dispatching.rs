//! A session towards a service: the calls on one side, the socket on the other.

use super::client::ClientParams;
use super::stream::{Change, Stream, Switch, Upgrade};
use super::{Clock, READ_CHUNK, READS_A_TURN, WRITE_CHUNK, WRITES_A_TURN, give_way};
use crate::events::Events;
use crate::io::{Io, ReadBuffer, poll_write};
use crate::tls::{TlsError, tls_error};
use crate::{Failure, Flags, Request, Why, bridge};
use bytes::Bytes;
use futures_util::task::AtomicWaker;
use muxgate_wire::mux::client::{CallFailure, ClientSession, DispatchHead, Event, Refused, SessionStatus};
use muxgate_wire::mux::handshake::HandshakeError;
use muxgate_wire::mux::message::{Rdispatch, Status as MuxStatus};
use muxgate_wire::mux::outbox::Staged;
use muxgate_wire::mux::session::{Call, SessionError};
use muxgate_wire::mux::{context, frame};
use parking_lot::Mutex;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::AsyncWrite;
use tokio::sync::oneshot;
use tokio::time::{Sleep, sleep_until};

/// What a call waits for.
type Token = oneshot::Sender<Result<Rdispatch, Failure>>;

/// Reason sent with a Tdiscarded when the caller gave none.
const GAVE_UP: &[u8] = b"the caller gave up";

/// An open session. Calls hold it; its socket is owned by a task that ends with the session.
pub(super) struct Session {
    machine: Mutex<ClientSession<Token>>,
    wake: AtomicWaker,
    clock: Clock,
    retired: AtomicBool,
    events: Arc<dyn Events>,
}

impl Session {
    /// Begins a session on a new connection and starts the task that serves it.
    pub(super) fn start<T: Io>(io: T, params: &ClientParams, events: Arc<dyn Events>) -> Arc<Self> {
        let session = Arc::new(Self {
            machine: Mutex::new(ClientSession::new(params.session.clone())),
            wake: AtomicWaker::new(),
            clock: Clock::start(),
            retired: AtomicBool::new(false),
            events: Arc::clone(&events),
        });
        let served = Arc::clone(&session);
        let socket = Socket {
            io: Stream::Plain(io),
            switch: Switch::No,
            upgrade: params.upgrade.clone(),
            read: ReadBuffer::new(READ_CHUNK),
            staged: Staged::default(),
            unflushed: false,
            arrived: Vec::new(),
            max_frame: u32::try_from(params.max_frame).unwrap_or(u32::MAX),
            events: Arc::clone(&events),
        };
        tokio::spawn(async move {
            events.opened();
            let end = served.serve(socket).await;
            served.finish(&end);
            events.closed();
        });
        session
    }

    pub(super) fn status(&self) -> SessionStatus {
        let machine = self.machine.lock();
        // Reading the clock costs more than all the rest, and only a lease needs it.
        let now = if machine.has_lease() { self.clock.now() } else { Duration::ZERO };
        machine.status(now)
    }

    /// Sends one call and waits for its answer. Dropping the future takes the call back, or tells the service.
    pub(super) async fn dispatch(&self, request: &Request) -> Result<Rdispatch, Failure> {
        let (give, mut take) = oneshot::channel();
        let call = self.send(request, give)?;
        let mut guard = Guard { session: self, call: Some(call), request };
        let answer = (&mut take).await;
        guard.call = None;
        answer.unwrap_or_else(|_| Err(lost("the session ended")))
    }

    fn send(&self, request: &Request, token: Token) -> Result<Call, Failure> {
        let dtab = bridge::mux_dtab(&request.dtab);
        let head = DispatchHead {
            contexts: |out: &mut context::ContextWriter<'_>| {
                bridge::write_contexts(&request.ctx, request.local.attempt, out);
            },
            dst: if request.dst.is_empty() { b"" } else { request.dst.as_bytes() },
            dtab: &dtab,
        };
        let mut machine = self.machine.lock();
        let idle = machine.outbox().is_empty();
        let sent = machine.dispatch(token, head, request.body.bytes().clone());
        drop(machine);
        match sent {
            Ok(call) => {
                if idle {
                    self.wake.wake();
                }
                Ok(call)
            }
            Err((_, refused)) => Err(refusal(refused)),
        }
    }

    fn cancel(&self, call: Call, reason: &[u8]) {
        let mut machine = self.machine.lock();
        let idle = machine.outbox().is_empty();
        let told = machine.counts().discards;
        let token = machine.cancel(call, reason);
        let is_told = machine.counts().discards > told;
        drop(machine);
        drop(token);
        if is_told {
            self.events.discarded();
        }
        if idle {
            self.wake.wake();
        }
    }

    /// Ends the session once nothing is in flight: its endpoint is not needed any more.
    pub(super) fn retire(&self) {
        self.retired.store(true, Ordering::Relaxed);
        self.wake.wake();
    }

    /// Whether it only answers what it has: a new session is to take the next call.
    pub(super) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Relaxed)
    }

    async fn serve<T: Io>(&self, mut socket: Socket<T>) -> SessionError {
        let first = self.machine.lock().tick(self.clock.now());
        let mut next = match first {
            Ok(next) => next,
            Err(error) => return error,
        };
        let mut timer = pin!(sleep_until(self.clock.at(next.unwrap_or_default())));
        poll_fn(|cx| {
            self.wake.register(cx.waker());
            let polled = self.turn(&mut socket, cx);
            if polled.is_ready() {
                return polled;
            }
            self.poll_timer(timer.as_mut(), &mut next, cx)
        })
        .await
    }

    fn poll_timer(
        &self,
        mut timer: Pin<&mut Sleep>,
        next: &mut Option<Duration>,
        cx: &mut Context<'_>,
    ) -> Poll<SessionError> {
        loop {
            let due = self.machine.lock().next_tick();
            if due != *next {
                *next = due;
                if let Some(at) = due {
                    timer.as_mut().reset(self.clock.at(at));
                }
            }
            if next.is_none() || timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            match self.machine.lock().tick(self.clock.now()) {
                Ok(_) => {}
                Err(error) => return Poll::Ready(error),
            }
            // A tick may have queued a ping: the next turn writes it.
            cx.waker().wake_by_ref();
        }
    }

    /// Writes and reads until the socket takes and gives no more. Ready: the session is over.
    fn turn<T: Io>(&self, socket: &mut Socket<T>, cx: &mut Context<'_>) -> Poll<SessionError> {
        let (mut reads, mut writes) = (0, 0);
        loop {
            let Ok(more) = socket.poll_write(self, cx) else { return Poll::Ready(SessionError::Closed) };
            if more && socket.switch.is_due() {
                continue;
            }
            if socket.switch.is_due() {
                if let Err(error) = ready!(socket.poll_switch(self, cx)) {
                    return Poll::Ready(error);
                }
                continue;
            }
            if reads == READS_A_TURN || writes == WRITES_A_TURN {
                give_way(cx);
                return Poll::Pending;
            }
            match socket.poll_read(self, cx) {
                Poll::Ready(Ok(())) => reads += 1,
                Poll::Ready(Err(error)) => {
                    let _ = socket.poll_write(self, cx);
                    return Poll::Ready(error);
                }
                Poll::Pending if more => writes += 1,
                Poll::Pending => {
                    let mut machine = self.machine.lock();
                    if !machine.outbox().is_empty() && !socket.blocked() {
                        continue;
                    }
                    if machine.in_flight() == 0 {
                        socket.read.release();
                        let over = machine.status(self.clock.now()) == SessionStatus::Closed;
                        if over || self.retired.load(Ordering::Relaxed) {
                            machine.take_all();
                            return Poll::Ready(SessionError::Closed);
                        }
                    }
                    return Poll::Pending;
                }
            }
        }
    }

    fn finish(&self, error: &SessionError) {
        let unfinished = self.machine.lock().take_all();
        for call in unfinished {
            let text = format!("the session to the service ended: {error}");
            let failure = match error {
                // There never was a session.
                SessionError::Handshake(HandshakeError::Tls) | SessionError::Switch(_) => {
                    Failure::new(Why::Connect, text)
                }
                _ => lost(text),
            };
            let failure = match call.written {
                true => failure,
                // None of it was written: nothing was done.
                false => failure.with(Flags::RETRYABLE.with(Flags::REJECTED)),
            };
            let _ = call.token.send(Err(failure));
        }
    }
}

/// What the task owns.
struct Socket<T> {
    io: Stream<T>,
    switch: Switch,
    upgrade: Option<Arc<dyn Upgrade>>,
    read: ReadBuffer,
    staged: Staged,
    /// Something was written that the stream may still hold.
    unflushed: bool,
    arrived: Vec<(Token, Result<Rdispatch, Failure>)>,
    max_frame: u32,
    events: Arc<dyn Events>,
}

impl<T: Io> Socket<T> {
    /// The last write did not take all.
    fn blocked(&self) -> bool {
        bytes::Buf::has_remaining(&self.staged)
    }

    /// Goes over to the stream that was agreed upon, once all that belongs to the old one is written.
    fn poll_switch(&mut self, session: &Session, cx: &mut Context<'_>) -> Poll<Result<(), SessionError>> {
        if let Switch::Agreed(agreed) = self.switch {
            if self.blocked() || self.unflushed {
                return Poll::Pending;
            }
            if agreed.tls && self.upgrade.is_none() {
                return Poll::Ready(Err(SessionError::Switch("TLS is not set up".into())));
            }
            let change = Change {
                tls: self.upgrade.clone().filter(|_| agreed.tls),
                decompress: agreed.compressed.responses,
                compress: agreed.compressed.requests,
            };
            self.io.change(self.read.take(), change);
            self.switch = Switch::Changing;
        }
        if let Err(error) = ready!(self.io.poll_changed(cx)) {
            self.events.connect_failed();
            if let Some(error) = tls_error(&error) {
                self.events.tls_failed(None, error);
            }
            return Poll::Ready(Err(SessionError::Switch(error.to_string())));
        }
        self.switch = Switch::No;
        session.machine.lock().switched(session.clock.now());
        Poll::Ready(Ok(()))
    }

    /// Writes what there is, or its share of it: true when more could be written at once.
    fn poll_write(&mut self, session: &Session, cx: &mut Context<'_>) -> Result<bool, ()> {
        let mut written = 0;
        while written < WRITE_CHUNK {
            if !self.blocked() {
                session.machine.lock().outbox_mut().hand_out(&mut self.staged);
            }
            if !self.blocked() {
                return self.poll_flush(cx).map(|()| false);
            }
            match poll_write(&mut self.io, cx, &mut self.staged) {
                Poll::Ready(Ok(count @ 1..)) => {
                    written += count;
                    self.unflushed = true;
                }
                Poll::Ready(_) => return Err(()),
                Poll::Pending => return Ok(false),
            }
        }
        Ok(true)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Result<(), ()> {
        if self.unflushed {
            match Pin::new(&mut self.io).poll_flush(cx) {
                Poll::Ready(Ok(())) => self.unflushed = false,
                Poll::Ready(Err(_)) => return Err(()),
                Poll::Pending => {}
            }
        }
        Ok(())
    }

    /// Reads once and handles all whole frames. Ready(Ok): there may be more.
    fn poll_read(&mut self, session: &Session, cx: &mut Context<'_>) -> Poll<Result<(), SessionError>> {
        let missing = frame::needed(self.read.bytes());
        match self.read.poll_fill(&mut self.io, cx, missing) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(1..)) => {}
            Poll::Ready(_) => return Poll::Ready(Err(SessionError::Closed)),
        }
        let handled = self.handle_frames(session);
        for (token, answer) in self.arrived.drain(..) {
            if token.send(answer).is_err() {
                self.events.late_reply();
            }
        }
        Poll::Ready(handled)
    }

    fn handle_frames(&mut self, session: &Session) -> Result<(), SessionError> {
        let now = session.clock.now();
        let mut machine = session.machine.lock();
        loop {
            let frame = match frame::next_frame(self.read.bytes_mut(), self.max_frame) {
                Ok(Some(frame)) => frame,
                Ok(None) => return Ok(()),
                Err(_) => {
                    self.events.decode_error("frame");
                    return Err(SessionError::Closed);
                }
            };
            match machine.receive(frame, now) {
                Ok(Some(Event::Replied { token, reply })) => self.arrived.push((token, Ok(reply))),
                Ok(Some(Event::Established(agreed))) if agreed.switches() => {
                    self.switch = Switch::Agreed(agreed);
                    return Ok(());
                }
                Ok(Some(Event::Failed { token, why })) => self.arrived.push((token, Err(call_failure(why)))),
                Ok(_) => {}
                Err(error) => {
                    match error {
                        SessionError::Handshake(HandshakeError::Tls) => {
                            self.events.connect_failed();
                            self.events.tls_failed(None, &TlsError::not_agreed());
                        }
                        _ => self.events.decode_error("session"),
                    }
                    return Err(error);
                }
            }
        }
    }
}

/// Takes a call back when its future is dropped.
struct Guard<'a> {
    session: &'a Session,
    call: Option<Call>,
    request: &'a Request,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if let Some(call) = self.call {
            let reason = self.request.local.discarded.as_ref().and_then(|reason| reason.get());
            self.session.cancel(call, reason.map_or(GAVE_UP, Bytes::as_ref));
        }
    }
}

fn lost(text: impl Into<std::borrow::Cow<'static, str>>) -> Failure {
    Failure::new(Why::ConnectionLost, text)
}

/// Nothing of a refused call was written: it may go elsewhere, unless it cannot be written at all.
fn refusal(refused: Refused) -> Failure {
    match refused {
        Refused::Encode(_) => Failure::new(Why::BadRequest, refused.to_string()),
        Refused::Closed | Refused::Draining => Failure::new(Why::ConnectionLost, refused.to_string())
            .with(Flags::RETRYABLE.with(Flags::REJECTED)),
        Refused::InFlight | Refused::Handshake | Refused::Queued => {
            Failure::new(Why::Overload, refused.to_string())
        }
    }
}

fn call_failure(why: CallFailure) -> Failure {
    match why {
        CallFailure::Rerr(text) => Failure::new(Why::Upstream, String::from_utf8_lossy(&text).into_owned()),
        CallFailure::Unexpected(kind) => {
            Failure::new(Why::BadReply, format!("the service answered with a message of type {kind}"))
        }
        CallFailure::TooLarge => Failure::new(Why::BadReply, "the reply is larger than is taken"),
    }
}

/// What an Rdispatch means for a call (mux spec, section 14).
pub(super) fn judge(reply: Rdispatch) -> Result<(Vec<(Bytes, Bytes)>, Bytes), Failure> {
    let told = context::MuxFailure::find(&reply.contexts).map(|flags| Flags::from_mux(flags.0));
    let contexts: Vec<_> = match reply.contexts.is_empty() {
        true => Vec::new(),
        false => reply.contexts.iter().filter(|(key, _)| key != context::MUX_FAILURE).collect(),
    };
    let failure = match reply.status {
        MuxStatus::Ok => return Ok((contexts, reply.body)),
        MuxStatus::Nack => Failure::new(Why::Nack, "the service refused the call (nack)"),
        MuxStatus::Error => Failure::new(Why::Upstream, String::from_utf8_lossy(&reply.body).into_owned()),
    };
    // The flags that come with it replace what the status alone would mean.
    let failure = match told {
        Some(flags) => failure.with_exactly(flags),
        None => failure,
    };
    Err(failure.with_contexts(contexts))
}
