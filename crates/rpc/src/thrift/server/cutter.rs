//! Cuts what was read into messages.

use super::Framing;
use super::asked::{Reply, refuse_header_frame};
use crate::Payload;
use crate::bridge::{Refusal, no_kind};
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
    pub last_words: Option<Reply>,
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
                    // Also of elements there can only be more than the limit has room for.
                    Why::PastEnd { .. } | Why::TooMany { .. } => ("message_too_long", true),
                    Why::TooDeep { .. } => ("nesting", true),
                    Why::NameTooLong(_) => ("method_name", true),
                    Why::UnknownKind(_) => ("no_call", false),
                    _ => ("thrift", false),
                };
                let text = match cause {
                    "message_too_long" => format!("the call is longer than maxFrameBytes ({})", self.max),
                    _ => error.to_string(),
                };
                Err(Lost { cause, is_limit, last_words: last_words(read, self.max, &text) })
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
                let content = read.get(LENGTH_BYTES..).unwrap_or_default();
                let text = error.to_string();
                let last_words = match self.framing {
                    Framing::Header => refuse_header_frame(content, &text),
                    _ => last_words(content, i32::MAX as usize, &text),
                };
                Lost { cause: "frame_too_long", is_limit: true, last_words }
            }
        }
    }
}

/// A refusal of the message that begins with these bytes, if its head can be read and somebody waits for an answer.
fn last_words(message: &[u8], limit: usize, text: &str) -> Option<Reply> {
    let refusal = match peek_partial(message, limit) {
        Ok(head) if head.kind == Kind::Call => {
            let call = Payload::peeked(Bytes::copy_from_slice(message.get(..head.body_at)?), head);
            Refusal { call, kind: ApplicationExceptionType::ProtocolError, text: text.to_owned() }
        }
        Ok(_) => return None,
        // What has no version and no type is not likely to be a message.
        Err(_) if message.first() == Some(&0) => return None,
        Err(error) => no_kind(message, error).ok()?,
    };
    Some(Reply::plain(refusal.to_exception()))
}
