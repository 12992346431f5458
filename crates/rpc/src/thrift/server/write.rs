//! Writing replies.

use super::asked::{Envelope, Reply};
use super::{Framing, Session};
use crate::io::{Io, frame, poll_write_all};
use crate::{Serve, headers};
use bytes::buf::Chain;
use bytes::{Buf, Bytes, BytesMut};
use muxgate_wire::thrift::framing::prefix;
use muxgate_wire::thrift::{ApplicationExceptionType, ThriftError, Walk, exception, peek, theader, ttwitter};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use tokio::time::sleep;

impl<T: Io, S: Serve> Session<'_, T, S> {
    /// Writes one reply; none when the caller does not take it.
    pub(super) async fn write(&mut self, reply: Reply) -> Option<()> {
        let mut bytes = on_the_wire(self.framing, reply)?;
        loop {
            // The timer is made only if the socket does not take all at once.
            let before = bytes.remaining();
            let mut stalled = pin!(sleep_after_first_poll(self.params.stall));
            let written = poll_fn(|cx| match poll_write_all(&mut self.io, cx, &mut bytes) {
                Poll::Ready(written) => Poll::Ready(written.map(|()| true)),
                Poll::Pending => {
                    if let Some(line) = &mut self.line {
                        line.drive(cx);
                    }
                    stalled.as_mut().poll(cx).map(|()| Ok(false))
                }
            });
            match written.await {
                Ok(true) => return Some(()),
                Ok(false) if bytes.remaining() < before => {}
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

/// A reply as its caller's framing has it; none if it is too long for a frame.
fn on_the_wire(framing: Framing, reply: Reply) -> Option<Chain<BytesMut, Bytes>> {
    let Reply { envelope, contexts, body } = reply;
    let (header, body) = match envelope {
        Envelope::Plain if framing == Framing::Buffered => {
            return Some(frame(&[], whole_message(body)));
        }
        Envelope::Plain => (BytesMut::new(), body),
        Envelope::TTwitter => {
            let mut header = BytesMut::new();
            ttwitter::ResponseHeader::write_empty(&mut header);
            (header, body)
        }
        Envelope::THeader { seqid, protocol, zlib } => {
            let info = headers::reply_to_info(&contexts);
            let header = theader::Header { flags: 0, seqid, protocol, zlib, info };
            theader::encode(&header, body).ok()?
        }
    };
    let length = prefix(header.len() + body.len()).ok()?;
    Some(frame(&[&length, &header], body))
}

/// Without frames a reply must end where its struct ends: one that does not would be taken for something else, and so would
/// all that follow. Its caller is told instead.
fn whole_message(body: Bytes) -> Bytes {
    let text = match Walk::new(body.len()).advance(&body) {
        Ok((_, len)) if len == body.len() => return body,
        Ok((_, len)) => {
            format!("the service's reply goes on behind its end, at byte {len} of {}", body.len())
        }
        Err(ThriftError { at, why }) => format!("the service's reply cannot be read: {why} at byte {at}"),
    };
    peek(&body).map_or_else(
        |_| Bytes::new(),
        |head| {
            let (name, kind) = (head.name_in(&body), ApplicationExceptionType::InternalError);
            exception::to_bytes(head.form(), name, head.seqid, kind, &text)
        },
    )
}
