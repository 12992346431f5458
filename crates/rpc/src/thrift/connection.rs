//! One connection to a Thrift service: one call at a time, whatever stands around the messages.

mod buffered;
mod framed;
mod header;

use super::{READ_CHUNK, Transport};
use crate::io::{Io, ReadBuffer, frame, write_all};
use crate::{Failure, Flags, Payload, Request, Why};
use bytes::{Bytes, BytesMut};
use muxgate_wire::thrift::{MessageHead, framing, peek, seqid};
use std::task::{Context, Poll, Waker};
use tokio::time::Instant;

/// An open connection with no call on it, or with exactly one.
pub(super) struct Connection<T> {
    io: T,
    read: ReadBuffer,
    transport: Transport,
    max_frame: usize,
    /// The service took the TTwitter upgrade: requests and replies have headers, in this protocol.
    upgraded: Option<muxgate_wire::thrift::Protocol>,
    /// Numbers calls that have no number: a reply too many must not pass for the answer to a later call.
    serial: u32,
    /// A oneway call was sent: some servers answer it with an empty frame (thriftmux spec, section 5).
    oneway_sent: bool,
    /// The number of the last oneway call: a service that does not know that nobody waits may answer it in full.
    unwanted: Option<i32>,
    /// Since when no call is on it.
    pub(super) idle_since: Instant,
    /// When it takes no more calls; none for never.
    pub(super) ends: Option<Instant>,
}

/// Refuses a call that could not be sent, before a connection is lent to it.
pub(super) fn check(call: &Payload, transport: Transport) -> Result<(), Failure> {
    if call.head().is_none() {
        let text = "the call's body is not a Thrift message, and the service speaks nothing else";
        return Err(Failure::new(Why::BadRequest, text));
    }
    match transport {
        Transport::Buffered => buffered::check_end(call),
        Transport::Framed | Transport::TTwitter(_) | Transport::Header => Ok(()),
    }
}

/// Reply contexts and the reply message.
type Answer = (Vec<(Bytes, Bytes)>, Bytes);

impl<T: Io> Connection<T> {
    pub(super) fn new(io: T, transport: Transport, max_frame: usize) -> Self {
        Self {
            io,
            read: ReadBuffer::new(READ_CHUNK),
            transport,
            max_frame,
            upgraded: None,
            serial: 0,
            oneway_sent: false,
            unwanted: None,
            idle_since: Instant::now(),
            ends: None,
        }
    }

    fn is_framed(&self) -> bool {
        self.transport != Transport::Buffered
    }

    /// Sends one call and waits for its reply; a oneway call is done when it is written.
    ///
    /// Dropping the future leaves the connection in an unknown state: it must not be used again.
    pub(super) async fn exchange(&mut self, request: &Request) -> Result<Answer, Failure> {
        let Some(head) = request.body.head() else {
            return Err(Failure::new(Why::BadRequest, "the call is not a Thrift message"));
        };
        let ours = self.number(head);
        self.send(request, head, ours).await?;
        if request.body.is_oneway() {
            self.oneway_sent = true;
            self.unwanted = Some(ours);
            return Ok((Vec::new(), Bytes::new()));
        }
        let (contexts, mut reply) = loop {
            let (contexts, reply) = match self.transport {
                Transport::Framed | Transport::TTwitter(_) => self.framed_reply().await?,
                Transport::Buffered => (Vec::new(), self.buffered_reply().await?),
                Transport::Header => return self.header_reply(head, ours).await,
            };
            let is_unwanted = self.unwanted.is_some()
                && peek(&reply).is_ok_and(|answer| self.answers_unwanted(answer.seqid, ours));
            if !is_unwanted {
                break (contexts, reply);
            }
        };
        if ours != head.seqid {
            give_back(&mut reply, ours, head.seqid)?;
        }
        Ok((contexts, reply.freeze()))
    }

    /// Whether a reply is not that to the call `ours`, but to the oneway call before it.
    fn answers_unwanted(&mut self, seqid: i32, ours: i32) -> bool {
        seqid != ours && self.unwanted.take_if(|unwanted| *unwanted == seqid).is_some()
    }

    /// The sequence id that a call goes out with. Callers that number their calls keep their numbers. Many do not, and call
    /// everything 0: those calls are numbered here.
    fn number(&mut self, head: &MessageHead) -> i32 {
        if head.seqid != 0 {
            return head.seqid;
        }
        self.serial = self.serial.wrapping_add(1);
        seqid::in_place_of(head, self.serial)
    }

    async fn send(&mut self, request: &Request, head: &MessageHead, ours: i32) -> Result<(), Failure> {
        let mut front = match self.transport {
            Transport::Framed | Transport::TTwitter(_) => self.ttwitter_header(request)?,
            Transport::Header => self.theader(request, head, ours)?,
            Transport::Buffered => BytesMut::new(),
        };
        let message = request.body.bytes();
        let mut rest = message.clone();
        if ours != head.seqid {
            let start = front.len();
            front.extend_from_slice(message.get(..head.body_at).unwrap_or_default());
            seqid::replace(front.get_mut(start..).unwrap_or_default(), head, ours);
            rest = message.slice(head.body_at..);
        }
        match self.is_framed() {
            true => self.write_frame(&front, rest).await,
            false => self.write(&[&front], rest).await,
        }
    }

    async fn write_frame(&mut self, front: &[u8], body: Bytes) -> Result<(), Failure> {
        let len = framing::prefix(front.len() + body.len())
            .map_err(|_| Failure::new(Why::BadRequest, "the call is too long for a frame"))?;
        self.write(&[&len, front], body).await
    }

    /// A call of which the peer never has the last byte cannot have been executed, with a frame around it or without:
    /// whatever goes wrong here, nothing was done.
    async fn write(&mut self, front: &[&[u8]], body: Bytes) -> Result<(), Failure> {
        let mut bytes = frame(front, body);
        write_all(&mut self.io, &mut bytes).await.map_err(|error| {
            Failure::new(Why::ConnectionLost, format!("the call could not be written: {error}"))
                .with(Flags::RETRYABLE.with(Flags::REJECTED))
        })
    }

    /// Whether its life time is over.
    pub(super) fn is_old(&self, now: Instant) -> bool {
        self.ends.is_some_and(|at| at <= now)
    }

    /// The same, for those who do not have the time at hand: it is looked at only if there is a life time.
    pub(super) fn has_grown_old(&self) -> bool {
        self.ends.is_some() && self.is_old(Instant::now())
    }

    /// Whether all that the peer has sent so far was asked for. Reads nothing.
    pub(super) fn is_settled(&mut self) -> bool {
        if !self.read.bytes().is_empty() {
            self.skip_empty_frames();
        }
        self.read.bytes().is_empty()
    }

    /// Whether the peer has neither closed the connection nor sent anything unasked. Does not wait.
    pub(super) fn is_clean(&mut self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        match self.read.poll_fill(&mut self.io, &mut cx, 0) {
            Poll::Pending => {}
            Poll::Ready(Ok(count)) if count > 0 => {}
            Poll::Ready(_) => return false,
        }
        self.is_settled()
    }

    /// Gives memory back: no call is on it now.
    pub(super) fn release(&mut self) {
        self.read.release();
    }
}

/// Gives a reply its caller's sequence id back, if it is the reply to the call that was numbered `ours`.
fn give_back(reply: &mut [u8], ours: i32, theirs: i32) -> Result<(), Failure> {
    let head =
        peek(reply).map_err(|error| bad_reply(format!("the service's reply is not Thrift: {error}")))?;
    if head.seqid != ours {
        return Err(bad_reply(format!("the service answered sequence id {} to call {ours}", head.seqid)));
    }
    match seqid::replace(reply, &head, theirs) {
        true => Ok(()),
        false => Err(bad_reply("the service wrote the sequence id in an odd form".into())),
    }
}

fn bad_reply(text: String) -> Failure {
    Failure::new(Why::BadReply, text)
}

fn lost(text: impl Into<std::borrow::Cow<'static, str>>) -> Failure {
    Failure::new(Why::ConnectionLost, text)
}

#[cfg(test)]
mod tests;
