//! Thrift messages as bytes: which protocol, which method, what kind of reply, and the headers that TTwitter adds.
//!
//! In come slices or shared `Bytes`, out come offsets and small values. Nothing here copies a body, reads a clock or
//! opens a socket. Every length is compared with the bytes that are there before it is used.

pub mod binary;
pub mod compact;
pub mod cursor;
mod error;
pub mod exception;
pub mod framing;
mod head;
pub mod reply;
pub mod seqid;
pub mod skip;
pub mod theader;
pub mod translate;
pub mod ttwitter;
mod types;
mod walk;

pub use cursor::Cursor;
pub use error::{ThriftError, Why};
pub use exception::ApplicationExceptionType;
pub use head::{MAX_NAME, MessageHead, peek, peek_partial, write_head};
pub use reply::{ReplyClass, classify};
pub use skip::MAX_DEPTH;
pub use types::{Entries, Field, Items, Read, Type, Write};
pub use walk::{MAX_MESSAGE, Walk};

use std::fmt;

/// How values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Fixed widths, big-endian.
    Binary,
    /// Varints.
    Compact,
}

/// How a message header is written: a protocol, and for binary whether the version is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// Binary with a version word; what everyone writes today.
    Strict,
    /// Binary without one.
    Old,
    /// Compact.
    Compact,
}

impl Form {
    /// The protocol of the struct behind such a header.
    pub fn protocol(self) -> Protocol {
        match self {
            Self::Strict | Self::Old => Protocol::Binary,
            Self::Compact => Protocol::Compact,
        }
    }
}

impl From<Protocol> for Form {
    fn from(protocol: Protocol) -> Self {
        match protocol {
            Protocol::Binary => Self::Strict,
            Protocol::Compact => Self::Compact,
        }
    }
}

/// The type of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A call that waits for a reply.
    Call = 1,
    /// A result or a declared exception.
    Reply = 2,
    /// A TApplicationException.
    Exception = 3,
    /// A call that nobody answers.
    Oneway = 4,
}

impl Kind {
    /// From the number on the wire; 0 and 5 upwards are not assigned.
    #[inline]
    pub fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::Call,
            2 => Self::Reply,
            3 => Self::Exception,
            4 => Self::Oneway,
            _ => return None,
        })
    }

    /// The number on the wire.
    #[inline]
    pub fn code(self) -> u8 {
        self as u8
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Call => "CALL",
            Self::Reply => "REPLY",
            Self::Exception => "EXCEPTION",
            Self::Oneway => "ONEWAY",
        })
    }
}
