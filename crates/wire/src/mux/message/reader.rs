//! A cursor over a message body that knows at which byte it is.

use super::super::limits::Limits;
use crate::pairs::{MAX_STR16, Pairs, PairsError};
use bytes::Bytes;
use std::fmt;

/// What is wrong with a message body; offsets count from the first byte after the tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageError {
    /// The body ends before or inside this field.
    Short {
        /// Field.
        what: &'static str,
        /// Offset of the field.
        at: usize,
    },
    /// A length or count that Finagle would read as a negative number.
    Negative {
        /// Field.
        what: &'static str,
        /// Offset of the field.
        at: usize,
    },
    /// Well formed so far, but more than we accept ([`Limits`]).
    Limit {
        /// Field.
        what: &'static str,
        /// Offset of the field.
        at: usize,
    },
    /// A reply status other than OK, ERROR, NACK.
    Status(u8),
    /// A Treq trace id that is not 24 bytes long.
    TraceLength {
        /// Its length.
        len: usize,
        /// Offset of the value.
        at: usize,
    },
    /// A message type that does not exist.
    Type(i8),
}

impl MessageError {
    /// Whether the message was refused for its size and not for being wrong.
    pub fn is_limit(&self) -> bool {
        matches!(self, Self::Limit { .. })
    }
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short { what, at } => write!(f, "message ends early: {what} at byte {at}"),
            Self::Negative { what, at } => write!(f, "{what} at byte {at} is above {MAX_STR16}"),
            Self::Limit { what, at } => write!(f, "{what} at byte {at}: more than is accepted"),
            Self::Status(status) => write!(f, "reply status {status} at byte 0"),
            Self::TraceLength { len, at } => write!(f, "trace id of {len} bytes at byte {at}"),
            Self::Type(kind) => write!(f, "unknown message type {kind}"),
        }
    }
}

impl std::error::Error for MessageError {}

pub(super) struct Reader {
    rest: Bytes,
    at: usize,
}

type Read<T> = Result<T, MessageError>;

impl Reader {
    pub(super) fn new(body: Bytes) -> Self {
        Self { rest: body, at: 0 }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn rest(self) -> Bytes {
        self.rest
    }

    pub(super) fn take(&mut self, len: usize, what: &'static str) -> Read<Bytes> {
        if len > self.rest.len() {
            return Err(MessageError::Short { what, at: self.at });
        }
        self.at += len;
        Ok(self.rest.split_to(len))
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Read<[u8; N]> {
        let Some(&array) = self.rest.first_chunk() else {
            return Err(MessageError::Short { what, at: self.at });
        };
        bytes::Buf::advance(&mut self.rest, N);
        self.at += N;
        Ok(array)
    }

    pub(super) fn u8(&mut self, what: &'static str) -> Read<u8> {
        self.array(what).map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self, what: &'static str) -> Read<u16> {
        self.array(what).map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self, what: &'static str) -> Read<u32> {
        self.array(what).map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self, what: &'static str) -> Read<u64> {
        self.array(what).map(u64::from_be_bytes)
    }

    pub(super) fn str16(&mut self, what: &'static str, max: usize) -> Read<Bytes> {
        let at = self.at;
        let len = usize::from(self.u16(what)?);
        if len > MAX_STR16 {
            return Err(MessageError::Negative { what, at });
        }
        let text = self.take(len, what).map_err(|_| MessageError::Short { what, at })?;
        if len > max { Err(MessageError::Limit { what, at }) } else { Ok(text) }
    }

    pub(super) fn pairs(&mut self, what: &'static str, max: usize, max_bytes: usize) -> Read<Pairs> {
        let at = self.at;
        let count = self.u16(what)?;
        if usize::from(count) > MAX_STR16 {
            return Err(MessageError::Negative { what, at });
        }
        let pairs = Pairs::take(count, &mut self.rest).map_err(|error| match error {
            PairsError::Truncated(offset) => MessageError::Short { what, at: self.at + offset },
            PairsError::TooLong(offset) => MessageError::Negative { what, at: self.at + offset },
            PairsError::TooMany => MessageError::Negative { what, at },
        })?;
        self.at += pairs.region().len();
        if pairs.len() > max || pairs.region().len() > max_bytes {
            return Err(MessageError::Limit { what, at });
        }
        Ok(pairs)
    }

    pub(super) fn contexts(&mut self, limits: &Limits) -> Read<Pairs> {
        self.pairs("contexts", limits.contexts, limits.context_bytes)
    }
}
