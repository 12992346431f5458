//! The framed transport: a signed 32-bit length, then exactly one message (spec section 10).

use bytes::{Buf, BufMut, Bytes, BytesMut};
use std::fmt;

/// Longest frame by default, in bytes without the length: Apache's default.
pub const DEFAULT_MAX_FRAME: usize = 16_384_000;

/// Bytes of the length in front of a frame.
pub const LENGTH_BYTES: usize = 4;

/// Why the stream cannot be cut into frames any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// The length is below zero.
    Negative(i32),
    /// The length is over the limit.
    TooLong {
        /// What the peer claims.
        len: usize,
        /// What is allowed.
        max: usize,
    },
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Negative(len) => write!(f, "negative frame length {len}"),
            Self::TooLong { len, max } => write!(f, "frame of {len} bytes (at most {max})"),
        }
    }
}

impl std::error::Error for FrameError {}

fn length(buffer: &[u8], max: usize) -> Result<Option<usize>, FrameError> {
    let Some(word) = buffer.first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
    let signed = i32::from_be_bytes(*word);
    let len = usize::try_from(signed).map_err(|_| FrameError::Negative(signed))?;
    if len > max { Err(FrameError::TooLong { len, max }) } else { Ok(Some(len)) }
}

/// Takes the next frame's content from the front of the buffer, sharing its memory. `None`: more bytes are needed.
/// A frame may be empty. Nothing is reserved: how much to read ahead of the bytes is the reader's choice, see
/// [`needed`].
///
/// # Errors
/// A length that is negative or over `max_frame`; the buffer is left as it is and the stream is lost.
pub fn next_frame(buffer: &mut BytesMut, max_frame: usize) -> Result<Option<Bytes>, FrameError> {
    next_frame_mut(buffer, max_frame).map(|frame| frame.map(BytesMut::freeze))
}

/// As [`next_frame`], for a reader that writes into the frame.
///
/// # Errors
/// As [`next_frame`].
pub fn next_frame_mut(buffer: &mut BytesMut, max_frame: usize) -> Result<Option<BytesMut>, FrameError> {
    match length(buffer, max_frame)? {
        Some(len) if buffer.len() - LENGTH_BYTES >= len => {
            buffer.advance(LENGTH_BYTES);
            Ok(Some(buffer.split_to(len)))
        }
        _ => Ok(None),
    }
}

/// How many bytes the buffer lacks until [`next_frame`] has something to say: the rest of the length, or of the
/// frame as far as its claimed length goes. 0 if it has.
pub fn needed(buffer: &[u8], max_frame: usize) -> usize {
    match length(buffer, max_frame) {
        Ok(None) => LENGTH_BYTES - buffer.len(),
        Ok(Some(len)) => (len + LENGTH_BYTES).saturating_sub(buffer.len()),
        Err(_) => 0,
    }
}

/// The length to write before a frame of `len` bytes.
///
/// # Errors
/// [`FrameError::TooLong`] above `i32::MAX`.
pub fn prefix(len: usize) -> Result<[u8; LENGTH_BYTES], FrameError> {
    i32::try_from(len).map(i32::to_be_bytes).map_err(|_| FrameError::TooLong { len, max: i32::MAX as usize })
}

/// Appends a whole frame; for small messages that are built here. A body that is not ours is written beside its
/// [`prefix`], not copied.
///
/// # Errors
/// As [`prefix`].
pub fn write_frame(content: &[u8], out: &mut BytesMut) -> Result<(), FrameError> {
    out.put_slice(&prefix(content.len())?);
    out.put_slice(content);
    Ok(())
}
