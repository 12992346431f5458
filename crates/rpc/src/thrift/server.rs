//! A plain Thrift caller's connection: framed (upgraded to TTwitter when it asks), unframed, or in THeader frames.
//!
//! ```text
//!            message          all replies written
//!  ┌─► idle ───────► calling ───────────────┐
//!  │    │ drain, end   │ reset: calls dropped│
//!  │    ▼              ▼                     │
//!  │  closed ◄──────────                     │
//!  └─────────────────────────────────────────┘
//! ```
//!
//! One call runs in the connection's own task. Those that its caller sends without waiting run beside it, in a bounded
//! line, and are answered in the order of the calls; beyond the bound, not reading is the back pressure. An end of input
//! is not the same as "I am gone": what was asked before it is answered. Only a reset cancels calls.

mod asked;
mod cutter;
mod line;
#[cfg(test)]
mod tests;
mod wait;
mod write;

use crate::drain::{Drain, DrainWatch};
use crate::events::Events;
use crate::io::{Io, ReadBuffer};
use crate::{Peer, Request, Rules, Serve};
use asked::{Envelope, Reader, Reply, Settled};
use bytes::Bytes;
use cutter::{Cutter, Lost};
use line::Line;
use muxgate_wire::mux::limits::Limits;
use muxgate_wire::thrift::MAX_DEPTH;
use std::future::{Future, Pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Oneway calls of one listener that go on while their connections do something else. Beyond it a connection waits for its
/// own.
pub const MAX_ONEWAYS: usize = 4096;

/// Calls of one connection that run at once, at most; more wait unread.
pub const MAX_AT_ONCE: usize = 64;

/// How messages are told apart on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Each has its length in front.
    Framed,
    /// They follow each other without lengths: the end of each is found by walking it.
    Buffered,
    /// Each has its length and a header in front.
    Header,
}

/// Settings of a caller's connection.
#[derive(Clone, Debug)]
pub struct ServerParams {
    /// Largest message taken, in bytes.
    pub max_frame: usize,
    /// Time for a message that has begun to be read whole, and for a reply to make progress.
    pub stall: Duration,
    /// A connection without a call is closed after this time.
    pub idle: Option<Duration>,
    /// Bounds of what a request's header brings.
    pub limits: Limits,
    /// Deepest nesting of messages that have to be walked: those without frames. [`MAX_DEPTH`] at most.
    pub max_nesting: usize,
    /// Shared by all connections of a listener: [`MAX_ONEWAYS`] oneway calls go on beside what their connections do.
    pub oneways: Arc<Semaphore>,
    /// Calls that run at once; [`MAX_AT_ONCE`] at most.
    pub max_at_once: usize,
    /// Above so many bytes of calls that run and of replies that wait for their turn, no further call is begun.
    pub max_held: usize,
    /// Rules for the calls.
    pub rules: Rules,
}

impl ServerParams {
    /// Settings with these limits of size and time, and the defaults for the rest.
    pub fn new(max_frame: usize, stall: Duration, idle: Option<Duration>) -> Self {
        Self {
            max_frame,
            stall,
            idle,
            limits: Limits::DEFAULT,
            max_nesting: MAX_DEPTH,
            oneways: Arc::new(Semaphore::new(MAX_ONEWAYS)),
            max_at_once: MAX_AT_ONCE,
            max_held: 16 << 20,
            rules: Rules::default(),
        }
    }
}

/// A caller's connection as it was found.
#[derive(Debug)]
pub struct Caller<T> {
    /// The socket.
    pub io: T,
    /// What was read of it to find out what it speaks.
    pub read: ReadBuffer,
    /// What it speaks.
    pub framing: Framing,
    /// Who it is.
    pub peer: Peer,
}

/// Serves one connection until the caller leaves, breaks the protocol, or `drain` begins and no call is left.
pub async fn serve<T: Io>(
    caller: Caller<T>,
    service: &Arc<impl Serve>,
    params: &ServerParams,
    drain: &Drain,
    events: &dyn Events,
) {
    let Caller { io, read, framing, peer } = caller;
    let mut session = Session {
        io,
        read,
        ended: false,
        lost: false,
        cutter: Cutter::new(framing, params.max_frame, params.max_nesting),
        reader: Reader::new(framing, peer, params, events),
        line: None,
        service,
        framing,
        params,
        events,
    };
    let mut drain = drain.watch();
    while session.turn(&mut drain).await.is_some() {}
}

struct Session<'a, T, S> {
    io: T,
    read: ReadBuffer,
    /// The caller sends no more.
    ended: bool,
    /// Where the next message begins is not known any more, or what the caller speaks.
    lost: bool,
    cutter: Cutter,
    reader: Reader<'a>,
    /// Calls that were sent behind the one that runs in this task.
    line: Option<Box<Line>>,
    service: &'a Arc<S>,
    framing: Framing,
    params: &'a ServerParams,
    events: &'a dyn Events,
}

impl<T: Io, S: Serve> Session<'_, T, S> {
    /// One call and its answer, in most cases; none when the connection is to be closed.
    async fn turn(&mut self, drain: &mut DrainWatch) -> Option<()> {
        if self.line.is_some() {
            let answer = self.wait(None::<Pin<&mut Pending<Option<Reply>>>>).await?;
            if self.line.as_ref().is_some_and(|line| line.is_empty()) {
                self.line = None;
            }
            return self.give(answer).await;
        }
        let message = self.next_message(drain).await?;
        match self.reader.read(message) {
            Ok((request, _)) if request.body.is_oneway() => {
                let mut request = Some(request);
                poll_fn(|cx| {
                    if let Some(request) = request.take() {
                        self.fire(request, cx);
                    }
                    Poll::Ready(Some(()))
                })
                .await
            }
            Ok((request, envelope)) => {
                let mut call = pin!(call(self.service, request, envelope));
                let answer = self.wait(Some(call.as_mut())).await?;
                self.give(answer).await
            }
            Err(settled) => self.settle(settled).await,
        }
    }

    async fn settle(&mut self, settled: Settled) -> Option<()> {
        match settled {
            Settled::Answer(reply) => self.give(Some(reply)).await,
            Settled::Nothing => Some(()),
            Settled::Lost => None,
        }
    }

    /// Writes a reply, if there is one to write.
    async fn give(&mut self, reply: Option<Reply>) -> Option<()> {
        match reply {
            Some(reply) => self.write(reply).await,
            None => Some(()),
        }
    }

    /// The next message, or none when the connection is to be closed.
    async fn next_message(&mut self, drain: &mut DrainWatch) -> Option<Bytes> {
        if let Some(ready) = self.buffered_message().await {
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
            if let Some(ready) = self.buffered_message().await {
                return ready;
            }
        }
        match timeout(self.params.stall, self.rest_of_message()).await {
            Ok(message) => message,
            Err(_) => {
                self.events.limited("slow_frame");
                None
            }
        }
    }

    /// `Some(None)`: there will be none any more.
    async fn buffered_message(&mut self) -> Option<Option<Bytes>> {
        if self.lost {
            return Some(None);
        }
        match self.cutter.next(self.read.bytes_mut()) {
            Ok(Some(message)) => Some(Some(message)),
            Ok(None) if self.ended => Some(None),
            Ok(None) => None,
            Err(lost) => {
                if let Some(reply) = self.lose(lost) {
                    let _ = self.write(reply).await;
                }
                Some(None)
            }
        }
    }

    /// Notes that nothing more can be read, and gives what is still to be said.
    fn lose(&mut self, lost: Lost) -> Option<Reply> {
        match lost.is_limit {
            true => self.events.limited(lost.cause),
            false => self.events.decode_error(lost.cause),
        }
        self.lost = true;
        lost.last_words
    }

    async fn rest_of_message(&mut self) -> Option<Bytes> {
        loop {
            let missing = self.cutter.missing(self.read.bytes());
            let filled = poll_fn(|cx| self.read.poll_fill(&mut self.io, cx, missing)).await;
            self.ended |= !matches!(filled, Ok(1..));
            if let Some(ready) = self.buffered_message().await {
                return ready;
            }
        }
    }
}

/// Makes a call, and puts what comes of it into the form of its caller; none for one that has no reply.
#[expect(clippy::manual_async_fn, reason = "an async function would have room for the request twice")]
fn call<S: Serve>(
    service: &Arc<S>,
    mut request: Request,
    envelope: Envelope,
) -> impl Future<Output = Option<Reply>> + Send {
    async move {
        let asked = request.body.clone();
        let result = service.call(&mut request).await;
        Reply::of(result, &asked, envelope)
    }
}
