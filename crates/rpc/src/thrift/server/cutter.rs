//! Cuts what was read into messages.

use super::Framing;
use crate::Payload;
use crate::bridge::Refusal;
use bytes::{Bytes, BytesMut};
use muxgate_wire::thrift::framing::{self, FrameError, LENGTH_BYTES};
use muxgate_wire::thrift::{ApplicationExceptionType, Kind, ThriftError, Walk, Why, peek_partial};

/// Finds the ends of messages. What a message without a length needs is kept from one look to the next.
pub(super) struct Cutter {
    framing: Framing,
    max: usize,
    nesting: usize,
    walk: Option<Box<Walk>>,
    /// Bytes that the message being walked surely lacks.
    missing: usize,
}

/// The stream cannot be cut any more.
pub(super) struct Lost {
    /// For counting, from a closed list.
    pub cause: &'static str,
    /// Whether it is a limit that was exceeded, and not the protocol that was broken.
    pub is_limit: bool,
    /// What its caller is told, if it can be told which call it is.
    pub last_words: Option<Bytes>,
}

impl Cutter {
    pub(super) fn new(framing: Framing, max: usize, nesting: usize) -> Self {
        let walk = (framing == Framing::Buffered).then(|| Box::new(Walk::within(max, nesting)));
        Self { framing, max, nesting, walk, missing: 0 }
    }

    /// Takes the next message (the content of a frame) from the front of what was read. `None`: it is not all there.
    pub(super) fn next(&mut self, read: &mut BytesMut) -> Result<Option<Bytes>, Lost> {
        let Some(walk) = &mut self.walk else {
            return framing::next_frame(read, self.max).map_err(|error| self.lost_frame(error, read));
        };
        match walk.advance(read) {
            Ok((_, len)) => {
                **walk = Walk::within(self.max, self.nesting);
                Ok(Some(read.split_to(len).freeze()))
            }
            Err(ThriftError { why: Why::Incomplete { more }, .. }) => {
                self.missing = more;
                Ok(None)
            }
            Err(error) => {
                let (cause, is_limit) = match error.why {
                    Why::PastEnd { .. } => ("message_too_long", true),
                    Why::TooDeep => ("nesting", true),
                    Why::NameTooLong(_) => ("method_name", true),
                    _ => ("thrift", false),
                };
                Err(Lost { cause, is_limit, last_words: last_words(read, self.max, &error.to_string()) })
            }
        }
    }

    /// How many bytes the message that has begun surely lacks.
    pub(super) fn missing(&self, read: &[u8]) -> usize {
        match self.walk {
            Some(_) => self.missing,
            None => framing::needed(read, self.max),
        }
    }

    fn lost_frame(&self, error: FrameError, read: &[u8]) -> Lost {
        match error {
            FrameError::Negative(_) => Lost { cause: "negative_length", is_limit: false, last_words: None },
            FrameError::TooLong { .. } => {
                let message = read.get(LENGTH_BYTES..).filter(|_| self.framing == Framing::Framed);
                let text = error.to_string();
                let last_words = message.and_then(|message| last_words(message, i32::MAX as usize, &text));
                Lost { cause: "frame_too_long", is_limit: true, last_words }
            }
        }
    }
}

/// A refusal of the message that begins with these bytes, if its head can be read and somebody waits for an answer.
fn last_words(message: &[u8], limit: usize, text: &str) -> Option<Bytes> {
    let head = peek_partial(message, limit).ok().filter(|head| head.kind == Kind::Call)?;
    let call = Payload::peeked(Bytes::copy_from_slice(message.get(..head.body_at)?), head);
    Some(
        Refusal { call, kind: ApplicationExceptionType::ProtocolError, text: text.to_owned() }.to_exception(),
    )
}
