//! TApplicationException: the answer that a client understands whatever method it called.

use super::head::write_head;
use super::types::{Type, Write};
use super::{Form, Kind, Protocol, binary, compact};
use bytes::{Bytes, BytesMut};
use std::fmt;

/// Longest text that is written, and the most of a text that is read, in bytes.
pub const MAX_TEXT: usize = 4096;

/// The type of a TApplicationException (spec section 15).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ApplicationExceptionType {
    /// 0: the peer did not say.
    Unknown,
    /// 1: the server does not have the method.
    UnknownMethod,
    /// 2: neither a call nor a oneway.
    InvalidMessageType,
    /// 3: the reply is for another method.
    WrongMethodName,
    /// 4: the reply is for another call.
    BadSequenceId,
    /// 5: a reply without a result.
    MissingResult,
    /// 6: an unhandled error in the service, or a gateway that could not reach it.
    InternalError,
    /// 7: the arguments did not decode.
    ProtocolError,
    /// 8: THeader transform that the server cannot undo.
    InvalidTransform,
    /// 9: protocol that the server does not speak.
    InvalidProtocol,
    /// 10: transport that the server does not speak.
    UnsupportedClientType,
    /// A number that is not assigned.
    Other(i32),
}

impl ApplicationExceptionType {
    /// The number on the wire.
    pub fn code(self) -> i32 {
        match self {
            Self::Unknown => 0,
            Self::UnknownMethod => 1,
            Self::InvalidMessageType => 2,
            Self::WrongMethodName => 3,
            Self::BadSequenceId => 4,
            Self::MissingResult => 5,
            Self::InternalError => 6,
            Self::ProtocolError => 7,
            Self::InvalidTransform => 8,
            Self::InvalidProtocol => 9,
            Self::UnsupportedClientType => 10,
            Self::Other(code) => code,
        }
    }
}

impl From<i32> for ApplicationExceptionType {
    fn from(code: i32) -> Self {
        match code {
            0 => Self::Unknown,
            1 => Self::UnknownMethod,
            2 => Self::InvalidMessageType,
            3 => Self::WrongMethodName,
            4 => Self::BadSequenceId,
            5 => Self::MissingResult,
            6 => Self::InternalError,
            7 => Self::ProtocolError,
            8 => Self::InvalidTransform,
            9 => Self::InvalidProtocol,
            10 => Self::UnsupportedClientType,
            other => Self::Other(other),
        }
    }
}

impl fmt::Display for ApplicationExceptionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Unknown => "unknown",
            Self::UnknownMethod => "unknown method",
            Self::InvalidMessageType => "invalid message type",
            Self::WrongMethodName => "wrong method name",
            Self::BadSequenceId => "bad sequence id",
            Self::MissingResult => "missing result",
            Self::InternalError => "internal error",
            Self::ProtocolError => "protocol error",
            Self::InvalidTransform => "invalid transform",
            Self::InvalidProtocol => "invalid protocol",
            Self::UnsupportedClientType => "unsupported client type",
            Self::Other(code) => return write!(f, "type {code}"),
        };
        f.write_str(text)
    }
}

/// Writes a whole EXCEPTION message, without a frame length. `name` and `seqid` repeat the request's; a text over
/// [`MAX_TEXT`] is cut at a character.
pub fn write(
    form: impl Into<Form>,
    name: &[u8],
    seqid: i32,
    kind: ApplicationExceptionType,
    message: &str,
    out: &mut BytesMut,
) {
    let form = form.into();
    let text = cut(message).as_bytes();
    out.reserve(name.len() + text.len() + 32);
    write_head(form, Kind::Exception, name, seqid, out);
    match form.protocol() {
        Protocol::Binary => write_struct(binary::Writer(out), kind, text),
        Protocol::Compact => write_struct(compact::Writer(out), kind, text),
    }
}

/// As [`write()`] into a buffer of its own.
pub fn to_bytes(
    form: impl Into<Form>,
    name: &[u8],
    seqid: i32,
    kind: ApplicationExceptionType,
    message: &str,
) -> Bytes {
    let mut out = BytesMut::new();
    write(form, name, seqid, kind, message, &mut out);
    out.freeze()
}

fn write_struct(mut writer: impl Write, kind: ApplicationExceptionType, text: &[u8]) {
    writer.field(0, 1, Type::String);
    writer.string(text);
    writer.field(1, 2, Type::I32);
    writer.i32(kind.code());
    writer.stop();
}

fn cut(message: &str) -> &str {
    message.get(..message.floor_char_boundary(MAX_TEXT)).unwrap_or(message)
}
