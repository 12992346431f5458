//! A plain Thrift caller's connection: framed binary or compact, upgraded to TTwitter when it asks.
//!
//! ```text
//!            frame            reply written
//!  ┌─► idle ───────► calling ───────────────┐
//!  │    │ drain, end   │ reset: call dropped │
//!  │    ▼              ▼                     │
//!  │  closed ◄──────────                     │
//!  └─────────────────────────────────────────┘
//! ```
//!
//! One call at a time, answered in order; not reading is the back pressure. An end of input is not the same as "I am
//! gone": what was asked before it is answered. Only a reset cancels the call.

use crate::drain::{Drain, DrainWatch};
use crate::events::Events;
use crate::io::{Io, ReadBuffer, frame, poll_write_all};
use crate::{Failure, Payload, Request, Response, Serve, bridge};
use bytes::{Buf, Bytes, BytesMut};
use futures_util::poll;
use muxgate_wire::mux::limits::Limits;
use muxgate_wire::thrift::{Protocol, framing, peek, ttwitter};
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, Sleep, sleep, timeout};

/// How often a caller that is not read from is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Oneway calls of one listener that go on while their connections do something else. Beyond it a connection waits for its
/// own.
pub const MAX_ONEWAYS: usize = 4096;

/// Bytes of later requests that are taken in while a call is in progress.
const READ_AHEAD: usize = super::READ_CHUNK;

/// Settings of a caller's connection.
#[derive(Clone, Debug)]
pub struct ServerParams {
    /// Largest request taken, in bytes.
    pub max_frame: usize,
    /// Time for a frame that has begun to be read whole, and for a reply to make progress.
    pub stall: Duration,
    /// A connection without a call is closed after this time.
    pub idle: Option<Duration>,
    /// Bounds of what a request's header brings.
    pub limits: Limits,
    /// Shared by all connections of a listener: [`MAX_ONEWAYS`] oneway calls go on beside what their connections do.
    pub oneways: Arc<Semaphore>,
}

/// Serves one connection until the caller leaves, breaks the protocol, or `drain` begins and no call is left.
pub async fn serve<T: Io>(
    io: T,
    read: ReadBuffer,
    peer: Option<SocketAddr>,
    service: &Arc<impl Serve>,
    params: &ServerParams,
    drain: &Drain,
    events: &dyn Events,
) {
    let mut drain = drain.watch();
    let mut session = Session { io, read, ended: false, upgraded: None, first: true, peer, params, events };
    while let Some(frame) = session.next_frame(&mut drain).await {
        if session.answer(frame, service).await.is_none() {
            return;
        }
    }
}

struct Session<'a, T> {
    io: T,
    read: ReadBuffer,
    /// The caller sends no more.
    ended: bool,
    /// The protocol of TTwitter's headers, once upgraded.
    upgraded: Option<Protocol>,
    /// No frame has come yet: only now the upgrade call is one.
    first: bool,
    peer: Option<SocketAddr>,
    params: &'a ServerParams,
    events: &'a dyn Events,
}

impl<T: Io> Session<'_, T> {
    /// The next request, or none when the connection is to be closed.
    async fn next_frame(&mut self, drain: &mut DrainWatch) -> Option<Bytes> {
        if let Some(ready) = self.buffered_frame() {
            return ready;
        }
        if self.read.bytes().is_empty() {
            let idle = self.params.idle;
            let fill = poll_fn(|cx| {
                if drain.poll(cx).is_ready() {
                    return Poll::Ready(Ok(0));
                }
                let polled = self.read.poll_fill(&mut self.io, cx, 0);
                if polled.is_pending() {
                    self.read.release();
                }
                polled
            });
            let filled = match idle {
                Some(idle) => timeout(idle, fill).await.unwrap_or_else(|_| {
                    self.events.limited("idle_time");
                    Ok(0)
                }),
                None => fill.await,
            };
            self.ended |= !matches!(filled, Ok(1..));
            if let Some(ready) = self.buffered_frame() {
                return ready;
            }
        }
        match timeout(self.params.stall, self.rest_of_frame()).await {
            Ok(frame) => frame,
            Err(_) => {
                self.events.limited("slow_frame");
                None
            }
        }
    }

    /// `Some(None)`: the stream is lost.
    fn buffered_frame(&mut self) -> Option<Option<Bytes>> {
        match framing::next_frame(self.read.bytes_mut(), self.params.max_frame) {
            Ok(Some(frame)) => Some(Some(frame)),
            Ok(None) if self.ended => Some(None),
            Ok(None) => None,
            Err(error) => {
                match error {
                    framing::FrameError::Negative(_) => self.events.decode_error("negative_length"),
                    framing::FrameError::TooLong { .. } => self.events.limited("frame_too_long"),
                }
                Some(None)
            }
        }
    }

    async fn rest_of_frame(&mut self) -> Option<Bytes> {
        loop {
            let missing = framing::needed(self.read.bytes(), self.params.max_frame);
            let filled = poll_fn(|cx| self.read.poll_fill(&mut self.io, cx, missing)).await;
            self.ended |= !matches!(filled, Ok(1..));
            if let Some(ready) = self.buffered_frame() {
                return ready;
            }
        }
    }

    /// Answers one request; none when the connection is to be closed.
    async fn answer(&mut self, frame: Bytes, service: &Arc<impl Serve>) -> Option<()> {
        let first = std::mem::replace(&mut self.first, false);
        if first && let Some((protocol, reply)) = upgrade_reply(&frame) {
            self.write(reply).await?;
            self.upgraded = Some(protocol);
            return Some(());
        }
        let read = match self.upgraded {
            Some(protocol) => bridge::from_ttwitter(frame, protocol, &self.params.limits, self.peer),
            None => bridge::from_thrift(frame, self.peer).map(Ok),
        };
        let mut request = match read {
            Ok(Ok(request)) => request,
            Ok(Err((payload, failure))) => return self.refuse(&payload, &failure).await,
            Err(_) => {
                self.events.decode_error("thrift");
                return None;
            }
        };
        if request.body.is_oneway() {
            self.fire(request, service).await;
            return Some(());
        }
        let payload = request.body.clone();
        match self.watch(service.call(&mut request)).await? {
            Ok(Response { body, .. }) => self.write(body).await,
            Err(failure) => self.refuse(&payload, &failure).await,
        }
    }

    /// Nobody waits for a oneway call, nor is it of interest whether its caller is still there. It is begun before the next
    /// call of the connection is, and then goes on beside it: a Mux service may take its time to acknowledge it.
    async fn fire(&self, mut request: Request, service: &Arc<impl Serve>) {
        let room = Arc::clone(&self.params.oneways).try_acquire_owned();
        let service = Arc::clone(service);
        let mut call = Box::pin(async move {
            let _ = service.call(&mut request).await;
        });
        match room {
            Ok(room) if poll!(&mut call).is_pending() => {
                tokio::spawn(async move {
                    call.await;
                    drop(room);
                });
            }
            Ok(_) => {}
            Err(_) => call.await,
        }
    }

    async fn refuse(&mut self, call: &Payload, failure: &Failure) -> Option<()> {
        if call.is_oneway() {
            return Some(());
        }
        self.write(bridge::exception(call, failure)).await
    }

    /// Waits for the answer and, meanwhile, reads ahead a little: a reset shows itself there, and drops the call. A caller
    /// that sends no more may have closed only its half, or be gone: it is waited for, but not for ever.
    async fn watch(
        &mut self,
        call: impl Future<Output = Result<Response, Failure>>,
    ) -> Option<Result<Response, Failure>> {
        let mut call = pin!(call);
        let mut look = pin!(None::<Sleep>);
        let mut deaf_since = None;
        let answer = poll_fn(|cx| {
            if let Poll::Ready(answer) = call.as_mut().poll(cx) {
                return Poll::Ready(Some(answer));
            }
            while !self.ended && self.read.bytes().len() < READ_AHEAD {
                match self.read.poll_fill(&mut self.io, cx, 0) {
                    Poll::Ready(Ok(0)) => self.ended = true,
                    Poll::Ready(Ok(_)) => {}
                    Poll::Ready(Err(_)) => return Poll::Ready(None),
                    Poll::Pending => return Poll::Pending,
                }
            }
            // Nothing is read any more: look now and then whether the caller is still there.
            let since = *deaf_since.get_or_insert_with(Instant::now);
            loop {
                if look.is_none() {
                    look.set(Some(sleep(LOOK_EVERY)));
                }
                let due = look.as_mut().as_pin_mut().is_some_and(|timer| timer.poll(cx).is_ready());
                if !due {
                    return Poll::Pending;
                }
                look.set(None);
                let reset = matches!(Pin::new(&mut self.io).poll_write(cx, &[]), Poll::Ready(Err(_)));
                if reset || (self.ended && since.elapsed() >= self.params.stall) {
                    return Poll::Ready(None);
                }
            }
        });
        let answer = answer.await;
        if answer.is_none() {
            self.events.abandoned();
        }
        answer
    }

    /// Writes one frame; none when the caller does not take it.
    async fn write(&mut self, body: Bytes) -> Option<()> {
        let mut header = BytesMut::new();
        if self.upgraded.is_some() {
            ttwitter::ResponseHeader::write_empty(&mut header);
        }
        let len = u32::try_from(header.len() + body.len()).ok()?;
        let mut frame = frame(&[&len.to_be_bytes(), &header], body);
        loop {
            // The timer is made only if the socket does not take all at once.
            let before = frame.remaining();
            let mut stalled = pin!(sleep_after_first_poll(self.params.stall));
            let written = poll_fn(|cx| match poll_write_all(&mut self.io, cx, &mut frame) {
                Poll::Ready(written) => Poll::Ready(written.map(|()| true)),
                Poll::Pending => stalled.as_mut().poll(cx).map(|()| Ok(false)),
            });
            match written.await {
                Ok(true) => return Some(()),
                Ok(false) if frame.remaining() < before => {}
                Ok(false) => {
                    self.events.limited("slow_reader");
                    return None;
                }
                Err(_) => return None,
            }
        }
    }
}

/// A timer that costs nothing until it is waited for.
async fn sleep_after_first_poll(time: Duration) {
    sleep(time).await;
}

/// The answer to an upgrade call; none for any other message.
fn upgrade_reply(frame: &Bytes) -> Option<(Protocol, Bytes)> {
    let head = peek(frame).ok().filter(|head| ttwitter::is_upgrade_call(head, frame))?;
    let mut reply = BytesMut::new();
    ttwitter::write_upgrade_reply(head.form(), &mut reply);
    Some((head.protocol, reply.freeze()))
}
