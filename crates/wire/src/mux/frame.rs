//! Frames: `u32 length, i8 type, u24 tag field, body` (mux spec, sections 1 to 3).

use bytes::{Buf, Bytes, BytesMut};
use std::fmt;

/// Message types, as signed bytes. Decide direction by these names only: two numbers have the "wrong" sign.
pub mod kind {
    /// Request without contexts.
    pub const TREQ: i8 = 1;
    /// Reply to a Treq.
    pub const RREQ: i8 = -1;
    /// Request.
    pub const TDISPATCH: i8 = 2;
    /// Reply to a Tdispatch.
    pub const RDISPATCH: i8 = -2;
    /// "Send no new requests."
    pub const TDRAIN: i8 = 64;
    /// Answer to Tdrain.
    pub const RDRAIN: i8 = -64;
    /// "Are you there?"
    pub const TPING: i8 = 65;
    /// Answer to Tping.
    pub const RPING: i8 = -65;
    /// Cancellation, documented number; read only.
    pub const TDISCARDED: i8 = 66;
    /// Cancellation, old number: the one that every peer knows, so the one we write.
    pub const TDISCARDED_OLD: i8 = -62;
    /// Answer to a cancellation.
    pub const RDISCARDED: i8 = -66;
    /// Lease.
    pub const TLEASE: i8 = 67;
    /// Handshake offer.
    pub const TINIT: i8 = 68;
    /// Handshake answer.
    pub const RINIT: i8 = -68;
    /// Session-level error, documented number; read only.
    pub const RERR: i8 = -128;
    /// Session-level error, old number: the one that every peer knows, so the one we write.
    pub const RERR_OLD: i8 = 127;

    /// Whether an unknown type lies in the application's range (magnitude 1 to 63), where a session can go on.
    pub fn is_application(kind: i8) -> bool {
        (1..64).contains(&kind.unsigned_abs())
    }
}

/// Bytes in front of a body: length, type, tag field.
pub const HEADER: usize = 8;
/// Bytes counted by the length field besides the body: type and tag field.
pub const MIN_LEN: u32 = 4;
/// Largest length Finagle accepts.
pub const MAX_LEN: u32 = 0x7fff_fffb;
/// The bit of the tag field that says "more pieces of this message follow".
pub const FRAGMENT_BIT: u32 = 0x80_0000;

/// A 23-bit tag: which exchange a message belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(u32);

impl Tag {
    /// For messages that expect no reply (Tdiscarded, Tlease).
    pub const MARKER: Tag = Tag(0);
    /// For pings, drain and the handshake.
    pub const SESSION: Tag = Tag(1);
    /// The first tag a client uses for dispatches.
    pub const FIRST: Tag = Tag(2);
    /// The largest tag.
    pub const MAX: Tag = Tag(FRAGMENT_BIT - 1);

    /// The tag with this number, if it has 23 bits at most.
    pub const fn new(number: u32) -> Option<Self> {
        if number < FRAGMENT_BIT { Some(Self(number)) } else { None }
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One frame as it came in. The body shares the read buffer's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Message type, see [`kind`].
    pub kind: i8,
    /// The tag, without the fragment bit.
    pub tag: Tag,
    /// Whether the fragment bit was set: not the last piece of a message.
    pub fragment: bool,
    /// Everything after the tag field.
    pub body: Bytes,
}

/// Why a stream of bytes cannot be cut into frames; the connection is of no further use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// The length field (first four bytes of the frame) does not even cover type and tag.
    TooShort {
        /// The length field.
        len: u32,
    },
    /// The length field is above what is accepted.
    TooLong {
        /// The length field.
        len: u32,
        /// The limit.
        max: u32,
    },
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooShort { len } => write!(f, "frame length {len} at byte 0 is below {MIN_LEN}"),
            Self::TooLong { len, max } => write!(f, "frame length {len} at byte 0 is above {max}"),
        }
    }
}

impl std::error::Error for FrameError {}

fn length(buf: &[u8]) -> Option<u32> {
    buf.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

/// Takes the next whole frame from the front of `buf`, without copying it; `None` when it is not all there yet.
/// `max_len` bounds the length field and is checked as soon as the field is there.
///
/// # Errors
/// [`FrameError`] for a length that cannot be; `buf` is left as it was.
#[inline]
pub fn next_frame(buf: &mut BytesMut, max_len: u32) -> Result<Option<Frame>, FrameError> {
    let Some(len) = length(buf) else { return Ok(None) };
    if len < MIN_LEN {
        return Err(FrameError::TooShort { len });
    }
    let max = max_len.min(MAX_LEN);
    if len > max {
        return Err(FrameError::TooLong { len, max });
    }
    let Some(&[_, _, _, _, kind, a, b, c]) = buf.first_chunk::<HEADER>() else { return Ok(None) };
    let body = (len - MIN_LEN) as usize;
    if buf.len() - HEADER < body {
        return Ok(None);
    }
    buf.advance(HEADER);
    // An empty body must not hold on to the read buffer.
    let body = if body == 0 { Bytes::new() } else { buf.split_to(body).freeze() };
    let field = u32::from_be_bytes([0, a, b, c]);
    let tag = Tag(field & !FRAGMENT_BIT);
    Ok(Some(Frame { kind: kind as i8, tag, fragment: field & FRAGMENT_BIT != 0, body }))
}

/// How many bytes are missing at least before [`next_frame`] can give a frame: a hint for how much to reserve.
/// It believes the length field, so a reader should reserve in steps rather than all at once.
pub fn needed(buf: &[u8]) -> usize {
    let whole = length(buf).map_or(HEADER, |len| (len as usize).saturating_add(4).max(HEADER));
    whole.saturating_sub(buf.len())
}

/// The eight bytes in front of a body of `body` bytes, which the caller has checked against [`MAX_LEN`].
#[inline]
pub(super) fn header(kind: i8, tag: Tag, fragment: bool, body: usize) -> [u8; HEADER] {
    let [l0, l1, l2, l3] = (body as u32 + MIN_LEN).to_be_bytes();
    let field = tag.0 | if fragment { FRAGMENT_BIT } else { 0 };
    let [_, a, b, c] = field.to_be_bytes();
    [l0, l1, l2, l3, kind as u8, a, b, c]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buf(bytes: &[u8]) -> BytesMut {
        BytesMut::from(bytes)
    }

    #[test]
    fn frames_are_cut_off_the_front() {
        let mut b = buf(b"\0\0\0\x06\x02\x80\0\x05hi\0\0\0\x04\xbf\0\0\x01\0\0");
        let first = next_frame(&mut b, MAX_LEN).unwrap().unwrap();
        assert_eq!(first, Frame { kind: 2, tag: Tag(5), fragment: true, body: Bytes::from_static(b"hi") });
        let second = next_frame(&mut b, MAX_LEN).unwrap().unwrap();
        assert_eq!((second.kind, second.tag, second.body.len()), (kind::RPING, Tag::SESSION, 0));
        assert_eq!(next_frame(&mut b, MAX_LEN), Ok(None));
        assert_eq!(needed(&b), 6);
    }

    #[test]
    fn lengths_that_cannot_be_are_refused_at_once() {
        for len in 0..4u32 {
            assert_eq!(next_frame(&mut buf(&len.to_be_bytes()), 100), Err(FrameError::TooShort { len }));
        }
        let over = next_frame(&mut buf(&101u32.to_be_bytes()), 100);
        assert_eq!(over, Err(FrameError::TooLong { len: 101, max: 100 }));
        assert!(next_frame(&mut buf(&0x7fff_fffcu32.to_be_bytes()), u32::MAX).is_err());
        assert_eq!(next_frame(&mut buf(&100u32.to_be_bytes()), 100), Ok(None));
        assert_eq!(needed(&100u32.to_be_bytes()), 100);
        assert_eq!(needed(b""), HEADER);
    }

    #[test]
    fn header_is_what_the_decoder_reads() {
        let mut b = buf(&header(kind::TDISCARDED_OLD, Tag::MAX, true, 0));
        let frame = next_frame(&mut b, MAX_LEN).unwrap().unwrap();
        assert_eq!((frame.kind, frame.tag, frame.fragment), (-62, Tag::MAX, true));
        assert_eq!(Tag::new(0x80_0000), None);
    }
}
