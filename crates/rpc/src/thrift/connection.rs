//! One connection to a framed Thrift service: one call at a time.

use super::READ_CHUNK;
use crate::bridge;
use crate::io::{Io, ReadBuffer, frame, write_all};
use crate::{Failure, Flags, Request, Why};
use bytes::{Buf, Bytes, BytesMut};
use muxgate_wire::thrift::{MessageHead, Protocol, framing, peek, seqid, ttwitter};
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, Waker};
use tokio::time::Instant;

/// What TTwitter's headers are written in: Finagle's default, and the only form most servers of it speak.
const HEADER_PROTOCOL: Protocol = Protocol::Binary;

/// An open connection with no call on it, or with exactly one.
pub(super) struct Connection<T> {
    io: T,
    read: ReadBuffer,
    max_frame: usize,
    /// The service took the TTwitter upgrade: requests and replies have headers.
    upgraded: bool,
    /// Numbers calls that have no number: a reply too many must not pass for the answer to a later call.
    serial: u32,
    /// A oneway call was sent: some servers answer it with an empty frame (thriftmux spec, section 5).
    oneway_sent: bool,
    /// Since when no call is on it.
    pub(super) idle_since: Instant,
}

impl<T: Io> Connection<T> {
    pub(super) fn new(io: T, max_frame: usize) -> Self {
        let read = ReadBuffer::new(READ_CHUNK);
        Self {
            io,
            read,
            max_frame,
            upgraded: false,
            serial: 0,
            oneway_sent: false,
            idle_since: Instant::now(),
        }
    }

    /// Offers the TTwitter upgrade. A service that refuses it is called plainly from then on.
    pub(super) async fn upgrade(&mut self) -> Result<(), Failure> {
        let mut call = BytesMut::new();
        ttwitter::write_upgrade_call(HEADER_PROTOCOL, &mut call);
        self.write(&[], call.freeze()).await?;
        let reply = self.read_frame().await?;
        self.upgraded = ttwitter::upgrade_accepted(&reply)
            .map_err(|error| bad_reply(format!("the answer to the upgrade is not Thrift: {error}")))?;
        Ok(())
    }

    /// Sends one call and waits for its reply; a oneway call is done when it is written.
    ///
    /// Dropping the future leaves the connection in an unknown state: it must not be used again.
    pub(super) async fn exchange(
        &mut self,
        request: &Request,
    ) -> Result<(Vec<(Bytes, Bytes)>, Bytes), Failure> {
        let mut header = match self.upgraded {
            true => bridge::ttwitter_header(request, HEADER_PROTOCOL)?,
            false => BytesMut::new(),
        };
        let Some(head) = request.body.head() else {
            return Err(Failure::new(Why::BadRequest, "the call is not a Thrift message"));
        };
        let ours = self.number(head);
        let message = request.body.bytes();
        if ours == head.seqid {
            self.write(&header, message.clone()).await?;
        } else {
            let start = header.len();
            header.extend_from_slice(message.get(..head.body_at).unwrap_or_default());
            seqid::replace(header.get_mut(start..).unwrap_or_default(), head, ours);
            self.write(&header, message.slice(head.body_at..)).await?;
        }
        if request.body.is_oneway() {
            self.oneway_sent = true;
            return Ok((Vec::new(), Bytes::new()));
        }
        let mut reply = self.read_reply().await?;
        let contexts = if self.upgraded { strip_header(&mut reply)? } else { Vec::new() };
        if ours != head.seqid {
            give_back(&mut reply, ours, head.seqid)?;
        }
        Ok((contexts, reply.freeze()))
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

    /// A frame that is not cut off before the peer has all of it cannot have been executed: whatever goes wrong here,
    /// nothing was done.
    async fn write(&mut self, header: &[u8], body: Bytes) -> Result<(), Failure> {
        let len = u32::try_from(header.len() + body.len())
            .map_err(|_| Failure::new(Why::BadRequest, "the call is too long for a frame"))?;
        let mut frame = frame(&[&len.to_be_bytes(), header], body);
        write_all(&mut self.io, &mut frame).await.map_err(|error| {
            Failure::new(Why::ConnectionLost, format!("the call could not be written: {error}"))
                .with(Flags::RETRYABLE.with(Flags::REJECTED))
        })
    }

    async fn read_reply(&mut self) -> Result<BytesMut, Failure> {
        loop {
            let frame = self.read_frame().await?;
            if !(frame.is_empty() && self.oneway_sent) {
                return Ok(frame);
            }
        }
    }

    async fn read_frame(&mut self) -> Result<BytesMut, Failure> {
        loop {
            match framing::next_frame_mut(self.read.bytes_mut(), self.max_frame) {
                Ok(Some(frame)) => return Ok(frame),
                Ok(None) => {}
                Err(error) => return Err(bad_reply(format!("the service sent a {error}"))),
            }
            let missing = framing::needed(self.read.bytes(), self.max_frame);
            match poll_fn(|cx| self.read.poll_fill(&mut self.io, cx, missing)).await {
                Ok(0) => return Err(lost("the service closed the connection before it answered")),
                Ok(_) => {}
                Err(error) => return Err(lost(format!("the connection broke before the answer: {error}"))),
            }
        }
    }

    /// Whether the peer has neither closed the connection nor sent anything unasked. Does not wait.
    pub(super) fn is_clean(&mut self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        match self.read.poll_fill(&mut self.io, &mut cx, 0) {
            Poll::Pending => {}
            Poll::Ready(Ok(count)) if count > 0 => self.skip_empty_frames(),
            Poll::Ready(_) => return false,
        }
        let clean = self.read.bytes().is_empty();
        self.read.release();
        clean
    }

    fn skip_empty_frames(&mut self) {
        while self.oneway_sent && self.read.bytes().starts_with(&[0; 4]) {
            self.read.bytes_mut().advance(4);
        }
    }
}

/// Gives a reply its caller's sequence id back, if it is the reply to the call that was numbered `ours`.
fn give_back(reply: &mut BytesMut, ours: i32, theirs: i32) -> Result<(), Failure> {
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

fn strip_header(reply: &mut BytesMut) -> Result<Vec<(Bytes, Bytes)>, Failure> {
    let (header, at) = ttwitter::ResponseHeader::decode(HEADER_PROTOCOL, reply)
        .map_err(|error| bad_reply(format!("the reply's TTwitter header cannot be read: {error}")))?;
    reply.advance(at);
    Ok(header.contexts.iter().collect())
}

fn bad_reply(text: String) -> Failure {
    Failure::new(Why::BadReply, text)
}

fn lost(text: impl Into<std::borrow::Cow<'static, str>>) -> Failure {
    Failure::new(Why::ConnectionLost, text)
}

/// Told apart only in the text: a refused connection, a time-out, no route.
pub(super) fn connect_failure(error: &io::Error) -> Failure {
    Failure::new(Why::Connect, format!("cannot connect: {error}"))
}
