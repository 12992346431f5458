//! One connection to a framed Thrift service: one call at a time.

use super::READ_CHUNK;
use crate::bridge;
use crate::io::{Io, ReadBuffer, frame, write_all};
use crate::{Failure, Flags, Request, Why};
use bytes::{Buf, Bytes, BytesMut};
use muxgate_wire::thrift::{Protocol, framing, peek, ttwitter};
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
    /// A oneway call was sent: some servers answer it with an empty frame (thriftmux spec, section 5).
    oneway_sent: bool,
    /// Since when no call is on it.
    pub(super) idle_since: Instant,
}

impl<T: Io> Connection<T> {
    pub(super) fn new(io: T, max_frame: usize) -> Self {
        let read = ReadBuffer::new(READ_CHUNK);
        Self { io, read, max_frame, upgraded: false, oneway_sent: false, idle_since: Instant::now() }
    }

    /// Offers the TTwitter upgrade. A service that refuses it is called plainly from then on.
    pub(super) async fn upgrade(&mut self) -> Result<(), Failure> {
        let mut call = BytesMut::new();
        ttwitter::write_upgrade_call(HEADER_PROTOCOL, &mut call);
        self.write(&[], &call.freeze()).await?;
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
        let header = match self.upgraded {
            true => bridge::ttwitter_header(request, HEADER_PROTOCOL)?,
            false => BytesMut::new(),
        };
        self.write(&header, request.body.bytes()).await?;
        if request.body.is_oneway() {
            self.oneway_sent = true;
            return Ok((Vec::new(), Bytes::new()));
        }
        let mut reply = self.read_reply().await?;
        let contexts = if self.upgraded { strip_header(&mut reply)? } else { Vec::new() };
        match (peek(&reply), request.body.head()) {
            (Ok(head), Some(sent)) if head.seqid != sent.seqid => Err(bad_reply(format!(
                "the service answered sequence id {} to call {}",
                head.seqid, sent.seqid
            ))),
            (Ok(_), _) => Ok((contexts, reply)),
            (Err(error), _) => Err(bad_reply(format!("the service's reply is not Thrift: {error}"))),
        }
    }

    /// A frame that is not cut off before the peer has all of it cannot have been executed: whatever goes wrong here,
    /// nothing was done.
    async fn write(&mut self, header: &[u8], body: &Bytes) -> Result<(), Failure> {
        let len = u32::try_from(header.len() + body.len())
            .map_err(|_| Failure::new(Why::BadRequest, "the call is too long for a frame"))?;
        let mut frame = frame(&[&len.to_be_bytes(), header], body.clone());
        write_all(&mut self.io, &mut frame).await.map_err(|error| {
            Failure::new(Why::ConnectionLost, format!("the call could not be written: {error}"))
                .with(Flags::RETRYABLE.with(Flags::REJECTED))
        })
    }

    async fn read_reply(&mut self) -> Result<Bytes, Failure> {
        loop {
            let frame = self.read_frame().await?;
            if !(frame.is_empty() && self.oneway_sent) {
                return Ok(frame);
            }
        }
    }

    async fn read_frame(&mut self) -> Result<Bytes, Failure> {
        loop {
            match framing::next_frame(self.read.bytes_mut(), self.max_frame) {
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

fn strip_header(reply: &mut Bytes) -> Result<Vec<(Bytes, Bytes)>, Failure> {
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
