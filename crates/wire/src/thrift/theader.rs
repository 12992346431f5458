//! THeader: a frame with a sequence id, pairs of text beside the message, and transforms over it (spec section 14).
//!
//! Apache's libraries read and write it; Finagle does not. Only what Apache knows is taken: the two protocols, zlib as
//! transform, and pairs as info. The frame's length is not part of what is read and written here, see
//! [`framing`](super::framing).

mod zlib;

use super::Protocol;
use super::compact::put_varint;
use super::cursor::Cursor;
use super::error::{ThriftError, Why};
use bytes::{BufMut, Bytes, BytesMut};

/// First two bytes of a frame.
pub const MAGIC: u16 = 0x0fff;

/// Longest header section, in bytes: its size is counted in words of four bytes, and there are fewer than 16384.
pub const MAX_HEADER_BYTES: usize = 16_383 * WORD;

/// Most pairs of info in one frame, by our policy.
pub const MAX_INFO: usize = 256;

/// Most bytes that keys and values of one frame have together, by our policy; the length of each is not counted.
pub const MAX_INFO_BYTES: usize = 32 << 10;

/// Longest frame that Apache's libraries can read at all.
pub const MAX_FRAME: usize = 0x3fff_ffff;

/// Sizes of the header section are in units of so many bytes.
const WORD: usize = 4;
/// Where the header section begins: magic, flags, sequence id, size.
const SECTION_AT: usize = 10;
/// Id of the zlib transform.
const ZLIB: u32 = 1;
/// Id of the info block that holds pairs. Every other one ends the section: 0 is padding, the rest nobody knows.
const PAIRS: u32 = 1;

/// What a frame has beside its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Kept as found; none is assigned.
    pub flags: u16,
    /// Should be that of the message inside; kept as found.
    pub seqid: i32,
    /// The protocol of the message inside.
    pub protocol: Protocol,
    /// Whether the message is compressed on the wire.
    pub zlib: bool,
    /// Keys and values in their order; a key may come more than once.
    pub info: Vec<(Bytes, Bytes)>,
}

/// Takes a frame's content apart: the header, and the message with its transforms undone. Without transforms the
/// message shares the frame's memory, as keys and values always do.
///
/// # Errors
/// Another magic, sizes beyond the frame or the limits here, a protocol or transform that is not known, bytes that
/// zlib does not take or that lie behind its end, and a message over `max_message` bytes. A message that would inflate
/// to more costs no more memory than one that just fits: the limit, and as much again while the buffer moves.
pub fn decode(frame: Bytes, max_message: usize) -> Result<(Header, Bytes), ThriftError> {
    read(&frame, max_message, None)
}

/// The same, but of the pairs only those with this key are read, in any case of letters. Others are stepped over, however
/// many there are.
///
/// # Errors
/// As [`decode`].
pub fn decode_only(frame: &Bytes, max_message: usize, key: &[u8]) -> Result<(Header, Bytes), ThriftError> {
    read(frame, max_message, Some(key))
}

fn read(frame: &Bytes, max_message: usize, only: Option<&[u8]>) -> Result<(Header, Bytes), ThriftError> {
    let mut cursor = Cursor::whole(frame);
    let magic = cursor.u16()?;
    if magic != MAGIC {
        return Err(ThriftError::new(0, Why::NotTHeader(magic)));
    }
    let flags = cursor.u16()?;
    let seqid = cursor.u32()? as i32;
    let len = usize::from(cursor.u16()?) * WORD;
    if len > MAX_HEADER_BYTES {
        return Err(ThriftError::new(SECTION_AT - 2, Why::HeaderTooLong { len, most: MAX_HEADER_BYTES }));
    }
    let payload_at = cursor.take(len)?.end;
    // What the section claims must lie inside the section.
    let mut section = Cursor::whole(frame.get(..payload_at).unwrap_or_default());
    section.seek(SECTION_AT);
    let protocol = read_protocol(&mut section)?;
    let zlib = read_transforms(&mut section)?;
    let info = read_info(frame, &mut section, only)?;
    let payload = frame.slice(payload_at..);
    let message = if zlib {
        zlib::inflate(&payload, max_message)
            .map_err(|error| ThriftError::new(payload_at + error.at, error.why))?
    } else if payload.len() > max_message {
        return Err(ThriftError::new(payload_at, Why::OverLimit { most: max_message }));
    } else {
        payload
    };
    Ok((Header { flags, seqid, protocol, zlib, info }, message))
}

fn read_protocol(section: &mut Cursor<'_>) -> Result<Protocol, ThriftError> {
    let at = section.at();
    match section.varint32()? {
        0 => Ok(Protocol::Binary),
        2 => Ok(Protocol::Compact),
        other => Err(ThriftError::new(at, Why::UnknownProtocol(other))),
    }
}

/// Whether the payload is compressed. Once at most: nobody gains from twice, and it is how bombs are built.
fn read_transforms(section: &mut Cursor<'_>) -> Result<bool, ThriftError> {
    let at = section.at();
    let count = section.varint32()?;
    if count > 0 {
        let id_at = section.at();
        let id = section.varint32()?;
        if id != ZLIB {
            return Err(ThriftError::new(id_at, Why::UnknownTransform(id)));
        }
    }
    if count > 1 {
        return Err(ThriftError::new(at, Why::TooMany { count: count as usize, most: 1 }));
    }
    Ok(count == 1)
}

fn read_info(
    frame: &Bytes,
    section: &mut Cursor<'_>,
    only: Option<&[u8]>,
) -> Result<Vec<(Bytes, Bytes)>, ThriftError> {
    let mut info = Vec::new();
    let mut bytes = 0;
    while section.left() > 0 && section.varint32()? == PAIRS {
        let at = section.at();
        let count = section.varint32()? as usize;
        // A pair has two lengths at least.
        let room = if only.is_some() { usize::MAX } else { MAX_INFO - info.len() };
        let most = (section.left() / 2).min(room);
        if count > most {
            return Err(ThriftError::new(at, Why::TooMany { count, most }));
        }
        if only.is_none() {
            info.reserve_exact(count);
        }
        for _ in 0..count {
            let at = section.at();
            let (key, value) = (read_text(frame, section)?, read_text(frame, section)?);
            if only.is_some_and(|only| !key.eq_ignore_ascii_case(only)) {
                continue;
            }
            bytes += key.len() + value.len();
            if bytes > MAX_INFO_BYTES {
                return Err(ThriftError::new(at, Why::TooLong { len: bytes, most: MAX_INFO_BYTES }));
            }
            info.push((key, value));
        }
    }
    Ok(info)
}

fn read_text(frame: &Bytes, section: &mut Cursor<'_>) -> Result<Bytes, ThriftError> {
    let len = section.varint32()? as usize;
    section.take(len).map(|range| frame.slice(range))
}

/// Puts a message into a frame: everything up to the end of the header section, and then what is to follow it. The
/// length to write in front is that of both. Without zlib the message is passed on as it is.
///
/// # Errors
/// More info than [`MAX_INFO`], [`MAX_INFO_BYTES`] and [`MAX_HEADER_BYTES`] allow, and a frame over [`MAX_FRAME`].
pub fn encode(header: &Header, message: Bytes) -> Result<(BytesMut, Bytes), ThriftError> {
    let (count, bytes) =
        (header.info.len(), header.info.iter().map(|(key, value)| key.len() + value.len()).sum());
    if count > MAX_INFO {
        return Err(ThriftError::new(SECTION_AT, Why::TooMany { count, most: MAX_INFO }));
    }
    if bytes > MAX_INFO_BYTES {
        return Err(ThriftError::new(SECTION_AT, Why::TooLong { len: bytes, most: MAX_INFO_BYTES }));
    }
    let mut out = BytesMut::with_capacity(SECTION_AT + 16 + bytes + count * 4);
    out.put_u16(MAGIC);
    out.put_u16(header.flags);
    out.put_i32(header.seqid);
    out.put_u16(0);
    write_section(header, &mut out);
    let len = out.len() - SECTION_AT;
    if len > MAX_HEADER_BYTES {
        return Err(ThriftError::new(SECTION_AT - 2, Why::HeaderTooLong { len, most: MAX_HEADER_BYTES }));
    }
    if let Some(size) = out.get_mut(SECTION_AT - 2..SECTION_AT) {
        size.copy_from_slice(&((len / WORD) as u16).to_be_bytes());
    }
    let payload = if header.zlib { zlib::deflate(&message) } else { message };
    if payload.len() > MAX_FRAME - out.len() {
        return Err(ThriftError::new(out.len(), Why::OverLimit { most: MAX_FRAME }));
    }
    Ok((out, payload))
}

/// Ids, pairs, and zeros up to a whole word.
fn write_section(header: &Header, out: &mut BytesMut) {
    out.put_u8(match header.protocol {
        Protocol::Binary => 0,
        Protocol::Compact => 2,
    });
    if header.zlib {
        out.put_u8(1);
        out.put_u8(ZLIB as u8);
    } else {
        out.put_u8(0);
    }
    if !header.info.is_empty() {
        out.put_u8(PAIRS as u8);
        put_varint(out, header.info.len() as u64);
        for text in header.info.iter().flat_map(|(key, value)| [key, value]) {
            put_varint(out, text.len() as u64);
            out.put_slice(text);
        }
    }
    let part = (out.len() - SECTION_AT) % WORD;
    if part > 0 {
        out.put_bytes(0, WORD - part);
    }
}
