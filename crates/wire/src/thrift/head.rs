//! The header of a message: which method, which kind, which sequence id (spec section 11). The hot path of a gateway.

use super::cursor::Cursor;
use super::error::{ThriftError, Why};
use super::{Form, Kind, Protocol, compact};
use bytes::{BufMut, BytesMut};
use std::ops::Range;

/// Longest method name that is accepted, in bytes.
pub const MAX_NAME: usize = 1024;

/// What stands before the struct of a message. Offsets are from the start of the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageHead {
    /// Told by the first byte.
    pub protocol: Protocol,
    /// Whether a binary header had its version; true for compact, which always has one.
    pub strict: bool,
    /// The message type.
    pub kind: Kind,
    /// Where the method name is.
    pub name: Range<usize>,
    /// To be repeated by the reply, and for nothing else.
    pub seqid: i32,
    /// Where the argument or result struct begins.
    pub body_at: usize,
}

impl MessageHead {
    /// The form of the header, for a reply in the same form.
    pub fn form(&self) -> Form {
        match (self.protocol, self.strict) {
            (Protocol::Compact, _) => Form::Compact,
            (Protocol::Binary, true) => Form::Strict,
            (Protocol::Binary, false) => Form::Old,
        }
    }

    /// The method name in the message this head was read from.
    pub fn name_in<'a>(&self, message: &'a [u8]) -> &'a [u8] {
        message.get(self.name.clone()).unwrap_or_default()
    }

    /// The two halves of a multiplexed name, `SERVICE:METHOD`, which is split at its first colon (spec section 17);
    /// `None` for a name without one. Either half may be empty. The reply to such a call need not repeat the service.
    pub fn service_in<'a>(&self, message: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        let name = self.name_in(message);
        let (service, method) = name.split_at_checked(name.iter().position(|byte| *byte == b':')?)?;
        Some((service, method.get(1..)?))
    }
}

/// Reads the header of a whole message (the content of a frame, a Mux body). Does not allocate or look at the body.
///
/// # Errors
/// Anything that is not a header of a known form and type, a name over [`MAX_NAME`] or longer than the message.
#[inline]
pub fn peek(message: &[u8]) -> Result<MessageHead, ThriftError> {
    match peek_strict(message) {
        Some(head) => Ok(head),
        None => read(Cursor::whole(message)),
    }
}

/// The form that nearly every message has, if nothing is wrong with it; the long way finds the words for what is.
#[inline]
fn peek_strict(message: &[u8]) -> Option<MessageHead> {
    let (&[0x80, 0x01, _, code, a, b, c, d], rest) = message.split_first_chunk::<8>()? else { return None };
    let len = u32::from_be_bytes([a, b, c, d]) as usize;
    if len > MAX_NAME {
        return None;
    }
    let seqid = i32::from_be_bytes(*rest.get(len..)?.first_chunk()?);
    let (kind, name) = (Kind::from_code(code)?, 8..8 + len);
    Some(MessageHead { protocol: Protocol::Binary, strict: true, kind, name, seqid, body_at: 12 + len })
}

/// As [`peek`] for the first bytes of a message without a frame, which may have up to `limit` bytes.
///
/// # Errors
/// As [`peek`], and [`Why::Incomplete`] while the header has not all come.
pub fn peek_partial(bytes: &[u8], limit: usize) -> Result<MessageHead, ThriftError> {
    read(Cursor::partial(bytes, limit))
}

fn read(mut cursor: Cursor<'_>) -> Result<MessageHead, ThriftError> {
    match cursor.u8()? {
        0x80 => read_strict(cursor),
        0x82 => read_compact(cursor),
        0 => read_old(cursor),
        other => Err(ThriftError::new(0, Why::NotThrift(other))),
    }
}

#[inline]
fn kind(code: u8, at: usize) -> Result<Kind, ThriftError> {
    Kind::from_code(code).ok_or_else(|| ThriftError::new(at, Why::UnknownKind(code)))
}

/// Checks a length that was read and steps over the name.
#[inline]
fn name(cursor: &mut Cursor<'_>, len: u32) -> Result<Range<usize>, ThriftError> {
    if len as usize > MAX_NAME {
        let why = match i32::try_from(len) {
            Ok(_) => Why::NameTooLong(len as usize),
            Err(_) => Why::Negative(len as i32),
        };
        return Err(cursor.error(why));
    }
    cursor.take(len as usize)
}

/// `8001 xx tt`, name, sequence id. Readers do not check the third byte.
fn read_strict(mut cursor: Cursor<'_>) -> Result<MessageHead, ThriftError> {
    cursor.seek(0);
    let word = cursor.u32()?;
    if word >> 16 != 0x8001 {
        return Err(ThriftError::new(0, Why::BadVersion(word)));
    }
    let kind = kind(word as u8, 3)?;
    let len = cursor.u32()?;
    let name = name(&mut cursor, len)?;
    let seqid = cursor.u32()? as i32;
    Ok(MessageHead { protocol: Protocol::Binary, strict: true, kind, name, seqid, body_at: cursor.at() })
}

/// Name, type, sequence id: senders older than the version word.
fn read_old(mut cursor: Cursor<'_>) -> Result<MessageHead, ThriftError> {
    cursor.seek(0);
    let len = cursor.u32()?;
    let name = name(&mut cursor, len)?;
    let code = cursor.u8()?;
    let kind = kind(code, cursor.at() - 1)?;
    let seqid = cursor.u32()? as i32;
    Ok(MessageHead { protocol: Protocol::Binary, strict: false, kind, name, seqid, body_at: cursor.at() })
}

/// `82`, type and version, sequence id as a plain varint, name.
fn read_compact(mut cursor: Cursor<'_>) -> Result<MessageHead, ThriftError> {
    let byte = cursor.u8()?;
    if byte & 0x1f != 1 {
        return Err(ThriftError::new(1, Why::BadVersion(u32::from(byte & 0x1f))));
    }
    let kind = kind(byte >> 5, 1)?;
    let seqid = cursor.varint32()? as i32;
    let len = cursor.varint32()?;
    let name = name(&mut cursor, len)?;
    Ok(MessageHead { protocol: Protocol::Compact, strict: true, kind, name, seqid, body_at: cursor.at() })
}

/// Writes a message header; the struct is to follow.
pub fn write_head(form: impl Into<Form>, kind: Kind, name: &[u8], seqid: i32, out: &mut BytesMut) {
    match form.into() {
        Form::Strict => {
            out.put_u32(0x8001_0000 | u32::from(kind.code()));
            out.put_u32(name.len() as u32);
            out.put_slice(name);
            out.put_i32(seqid);
        }
        Form::Old => {
            out.put_u32(name.len() as u32);
            out.put_slice(name);
            out.put_u8(kind.code());
            out.put_i32(seqid);
        }
        Form::Compact => {
            out.put_u8(0x82);
            out.put_u8(kind.code() << 5 | 1);
            compact::put_varint(out, u64::from(seqid as u32));
            compact::put_varint(out, name.len() as u64);
            out.put_slice(name);
        }
    }
}
