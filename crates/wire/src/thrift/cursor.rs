//! A position in a message: checked primitive reads that neither copy nor allocate.

use super::error::{ThriftError, Why};
use std::ops::Range;

/// Reads forward over a slice. Offsets in results and errors count from the start of that slice.
///
/// The *limit* is where the message must have ended. A value that reaches beyond it can never become valid
/// ([`Why::PastEnd`]); one that reaches beyond the bytes at hand but not beyond the limit is [`Why::Incomplete`].
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    limit: usize,
}

type Read<T> = Result<T, ThriftError>;

impl<'a> Cursor<'a> {
    /// Over a whole message (a frame's content, a Mux body): what is not in `bytes` will never come.
    #[inline]
    pub fn whole(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, limit: bytes.len() }
    }

    /// Over the first bytes of a message that may grow up to `limit` bytes.
    #[inline]
    pub fn partial(bytes: &'a [u8], limit: usize) -> Self {
        Self { bytes: bytes.get(..limit).unwrap_or(bytes), at: 0, limit }
    }

    /// Where the next read starts.
    #[inline]
    pub fn at(&self) -> usize {
        self.at
    }

    /// Moves to an offset; beyond the bytes at hand the next read fails.
    #[inline]
    pub fn seek(&mut self, at: usize) {
        self.at = at;
    }

    /// Bytes the message may still have from here on.
    #[inline]
    pub fn left(&self) -> usize {
        self.limit.saturating_sub(self.at)
    }

    /// The bytes of a range that a read returned; empty if it is not inside.
    #[inline]
    pub fn slice(&self, range: Range<usize>) -> &'a [u8] {
        self.bytes.get(range).unwrap_or_default()
    }

    /// An error at the current offset.
    #[cold]
    pub fn error(&self, why: Why) -> ThriftError {
        ThriftError::new(self.at, why)
    }

    #[cold]
    fn short(&self, wanted: usize) -> ThriftError {
        let left = self.left();
        if wanted > left {
            return self.error(Why::PastEnd { wanted, left });
        }
        let here = self.bytes.len().saturating_sub(self.at);
        self.error(Why::Incomplete { more: wanted.saturating_sub(here).max(1) })
    }

    /// Steps over `len` bytes and says where they are.
    ///
    /// # Errors
    /// [`Why::PastEnd`] or [`Why::Incomplete`], here and in the reads below; the position does not move.
    #[inline]
    pub fn take(&mut self, len: usize) -> Read<Range<usize>> {
        match self.at.checked_add(len) {
            Some(end) if end <= self.bytes.len() => {
                let range = self.at..end;
                self.at = end;
                Ok(range)
            }
            _ => Err(self.short(len)),
        }
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        match self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<N>()) {
            Some(chunk) => {
                self.at += N;
                Ok(*chunk)
            }
            None => Err(self.short(N)),
        }
    }

    /// One byte.
    ///
    /// # Errors
    /// As [`Cursor::take`].
    #[inline]
    pub fn u8(&mut self) -> Read<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Big-endian 16 bits.
    ///
    /// # Errors
    /// As [`Cursor::take`].
    #[inline]
    pub fn u16(&mut self) -> Read<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// Big-endian 32 bits.
    ///
    /// # Errors
    /// As [`Cursor::take`].
    #[inline]
    pub fn u32(&mut self) -> Read<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// Big-endian 64 bits.
    ///
    /// # Errors
    /// As [`Cursor::take`].
    #[inline]
    pub fn u64(&mut self) -> Read<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// Little-endian 64 bits (the compact protocol's double).
    ///
    /// # Errors
    /// As [`Cursor::take`].
    #[inline]
    pub fn u64_le(&mut self) -> Read<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Sixteen bytes (a uuid).
    ///
    /// # Errors
    /// As [`Cursor::take`].
    #[inline]
    pub fn u128(&mut self) -> Read<u128> {
        self.array().map(u128::from_be_bytes)
    }

    /// Unsigned varint of at most 5 bytes that fits 32 bits.
    ///
    /// # Errors
    /// As [`Cursor::take`], and [`Why::LongVarint`].
    #[inline]
    pub fn varint32(&mut self) -> Read<u32> {
        match self.bytes.get(self.at) {
            Some(&byte) if byte < 0x80 => {
                self.at += 1;
                Ok(u32::from(byte))
            }
            _ => self.varint(32).map(|value| value as u32),
        }
    }

    /// Unsigned varint of at most 10 bytes that fits 64 bits.
    ///
    /// # Errors
    /// As [`Cursor::take`], and [`Why::LongVarint`].
    #[inline]
    pub fn varint64(&mut self) -> Read<u64> {
        self.varint(64)
    }

    fn varint(&mut self, bits: u32) -> Read<u64> {
        let start = self.at;
        let mut value = 0u64;
        let mut shift = 0;
        loop {
            let byte = match self.u8() {
                Ok(byte) => byte,
                Err(error) => {
                    self.at = start;
                    return Err(error);
                }
            };
            let low = u64::from(byte & 0x7f);
            if shift >= bits || (bits - shift < 7 && low >> (bits - shift) != 0) {
                self.at = start;
                return Err(self.error(Why::LongVarint));
            }
            value |= low << shift;
            if byte < 0x80 {
                return Ok(value);
            }
            shift += 7;
        }
    }

    /// Varint, then zigzag, as the compact protocol writes signed integers.
    ///
    /// # Errors
    /// As [`Cursor::varint64`].
    #[inline]
    pub fn zigzag(&mut self) -> Read<i64> {
        let raw = self.varint64()?;
        Ok((raw >> 1) as i64 ^ -((raw & 1) as i64))
    }
}
