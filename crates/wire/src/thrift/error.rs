//! Why bytes are not (yet) Thrift: one error type for every reader in this module.

use std::fmt;

/// A refusal, with the place in the message where it was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThriftError {
    /// Byte offset from the start of the slice that was given to the reader.
    pub at: usize,
    /// What is wrong there.
    pub why: Why,
}

/// What a reader refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// More bytes may make this right: at least `more` of them. Only readers of a part of a message say this.
    Incomplete {
        /// Bytes that are surely missing.
        more: usize,
    },
    /// A value needs more bytes than the message can have left.
    PastEnd {
        /// Bytes the value claims or needs.
        wanted: usize,
        /// Bytes that are left for it.
        left: usize,
    },
    /// The first byte starts neither binary nor compact.
    NotThrift(u8),
    /// Binary: the first word has the top bit but is not `8001xxxx`. Compact: the version is not 1.
    BadVersion(u32),
    /// A message type other than 1 to 4.
    UnknownKind(u8),
    /// A message of a known type where it has no business, for example a CALL as a reply.
    WrongKind(super::Kind),
    /// A method name over [`MAX_NAME`](super::MAX_NAME) bytes.
    NameTooLong(usize),
    /// A length or count below zero.
    Negative(i32),
    /// A field or element type code that the protocol does not assign.
    UnknownType(u8),
    /// Another type than the struct at hand declares for it.
    WrongType(super::Type),
    /// A varint that does not fit the 32 or 64 bits it stands for.
    LongVarint,
    /// An integer or field id outside the range of its type.
    OutOfRange(i64),
    /// More elements than the bytes that are left can hold, or than a limit allows.
    TooMany {
        /// The count claimed.
        count: usize,
        /// The most that is possible here.
        most: usize,
    },
    /// A string longer than a limit allows.
    TooLong {
        /// The length found.
        len: usize,
        /// The most that is allowed.
        most: usize,
    },
    /// Containers nested deeper than a limit, [`MAX_DEPTH`](super::MAX_DEPTH) at most, allows.
    TooDeep {
        /// The most levels that are allowed.
        most: usize,
    },
    /// What is made of the message has more bytes than a limit allows.
    OverLimit {
        /// The most that is allowed.
        most: usize,
    },
    /// Bytes behind the end.
    Trailing {
        /// How many.
        left: usize,
    },
    /// A frame that should be a THeader begins with something else.
    NotTHeader(u16),
    /// A THeader frame's header section is longer than it can be.
    HeaderTooLong {
        /// The length found, in bytes.
        len: usize,
        /// The most that is possible.
        most: usize,
    },
    /// A THeader frame's message is in a protocol other than binary and compact.
    UnknownProtocol(u32),
    /// A THeader frame's message went through a transform other than zlib.
    UnknownTransform(u32),
    /// A compressed message that is not one whole zlib stream.
    BadZlib,
}

impl ThriftError {
    /// Whether more bytes could still turn the input into a valid message.
    pub fn is_incomplete(&self) -> bool {
        matches!(self.why, Why::Incomplete { .. })
    }

    #[cold]
    pub(super) fn new(at: usize, why: Why) -> Self {
        Self { at, why }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Incomplete { more } => write!(f, "at least {more} more bytes are needed"),
            Self::PastEnd { wanted, left } => write!(f, "{wanted} bytes are needed and {left} are left"),
            Self::NotThrift(byte) => write!(f, "a message cannot begin with byte 0x{byte:02x}"),
            Self::BadVersion(word) => write!(f, "unknown version 0x{word:x}"),
            Self::UnknownKind(kind) => write!(f, "unknown message type {kind}"),
            Self::WrongKind(kind) => write!(f, "a message of type {kind} is not expected here"),
            Self::NameTooLong(len) => write!(f, "method name of {len} bytes (at most {})", super::MAX_NAME),
            Self::Negative(size) => write!(f, "negative size {size}"),
            Self::UnknownType(code) => write!(f, "unknown field type {code}"),
            Self::WrongType(ty) => write!(f, "unexpected type {ty:?}"),
            Self::LongVarint => write!(f, "varint too long"),
            Self::OutOfRange(value) => write!(f, "integer {value} out of range"),
            Self::TooMany { count, most } => write!(f, "{count} elements (at most {most})"),
            Self::TooLong { len, most } => write!(f, "string of {len} bytes (at most {most})"),
            Self::TooDeep { most } => write!(f, "nested deeper than {most} levels"),
            Self::OverLimit { most } => write!(f, "more than {most} bytes"),
            Self::Trailing { left } => write!(f, "{left} bytes behind the end"),
            Self::NotTHeader(word) => write!(f, "a THeader frame cannot begin with 0x{word:04x}"),
            Self::HeaderTooLong { len, most } => write!(f, "header section of {len} bytes (at most {most})"),
            Self::UnknownProtocol(id) => write!(f, "unknown protocol {id}"),
            Self::UnknownTransform(id) => write!(f, "unknown transform {id}"),
            Self::BadZlib => write!(f, "not a whole zlib stream"),
        }
    }
}

impl fmt::Display for ThriftError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a valid Thrift message: {} at byte {}", self.why, self.at)
    }
}

impl std::error::Error for ThriftError {}
