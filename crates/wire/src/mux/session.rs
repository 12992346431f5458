//! What both session machines share: handles of calls, and why a session ends.

use super::frame::Tag;
use super::handshake::HandshakeError;
use super::message::MessageError;
use std::fmt;

/// One use of a tag. The tag alone would not do: once it is used again, a late cancellation or reply by its former
/// owner must not hit the new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    pub(super) tag: Tag,
    pub(super) stamp: u32,
}

impl Call {
    /// The tag on the wire.
    pub fn tag(self) -> Tag {
        self.tag
    }
}

/// Why a session is over. Write what is still in the outbox (it may hold an Rerr that says why), then close the socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionError {
    /// The session was over already.
    Closed,
    /// A message that the session cannot do without did not decode.
    Malformed {
        /// Message type.
        kind: i8,
        /// What is wrong.
        error: MessageError,
    },
    /// A message type that does not exist, outside the application's range.
    UnknownType(i8),
    /// A message that this side never gets from a peer that is in its right mind.
    Unexpected(i8),
    /// A dispatch came with a tag that is in flight.
    DuplicateTag(Tag),
    /// The peer said so, on the session's own tag.
    Peer(String),
    /// The handshake failed.
    Handshake(HandshakeError),
    /// TLS or compression did not begin as agreed.
    Switch(String),
    /// The handshake took too long.
    HandshakeTimeout,
    /// A ping was not answered in time.
    PingTimeout,
    /// More messages in pieces than a session may have.
    TooManyPartials,
    /// A message in pieces stopped growing.
    PartialIdle,
    /// The peer makes us answer faster than it reads.
    Flood,
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("session is closed"),
            Self::Malformed { kind, error } => write!(f, "message of type {kind}: {error}"),
            Self::UnknownType(kind) => write!(f, "unknown message type {kind}"),
            Self::Unexpected(kind) => write!(f, "message of type {kind} that must not come here"),
            Self::DuplicateTag(tag) => write!(f, "tag {tag} is already in flight"),
            Self::Peer(text) => write!(f, "peer reports: {text}"),
            Self::Handshake(error) => write!(f, "handshake: {error}"),
            Self::Switch(text) => write!(f, "stream did not become what was agreed: {text}"),
            Self::HandshakeTimeout => f.write_str("handshake took too long"),
            Self::PingTimeout => f.write_str("ping was not answered"),
            Self::TooManyPartials => f.write_str("too many partial messages"),
            Self::PartialIdle => f.write_str("partial message stopped growing"),
            Self::Flood => f.write_str("peer does not read the answers it asks for"),
        }
    }
}

impl std::error::Error for SessionError {}

impl From<HandshakeError> for SessionError {
    fn from(error: HandshakeError) -> Self {
        Self::Handshake(error)
    }
}

/// Text of the Rerr for a message that does not belong where it came.
pub(super) fn unexpected_text(kind: i8) -> String {
    // Both numbers of an Rerr show as the old one, both of a Tdiscarded never get here.
    let shown = if kind == super::frame::kind::RERR { super::frame::kind::RERR_OLD } else { kind };
    format!("Unexpected mux message type {shown}")
}
