//! A counted list of (key, value) byte strings, kept in the form it has on the wire.
//!
//! Mux contexts, Mux dtabs, application headers: all are pairs of `str16` (u16 length, bytes). Keeping the encoded
//! region means that handing a list on is one copy of a slice, and nothing in it can change on the way.

use bytes::{BufMut, Bytes, BytesMut};
use std::fmt;

/// Longest key or value: Finagle reads u16 lengths as signed, so more would be unreadable (mux spec, section 4).
pub const MAX_STR16: usize = 0x7fff;

/// Why a list of pairs could not be read or extended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairsError {
    /// The region ended inside a pair; the offset is where, from the start of the list.
    Truncated(usize),
    /// A key or value is longer than [`MAX_STR16`]; the offset is where, from the start of the list.
    TooLong(usize),
    /// The list would hold more pairs than a u16 that is read as signed can count.
    TooMany,
}

impl fmt::Display for PairsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated(at) => write!(f, "list of pairs ends early at byte {at}"),
            Self::TooLong(at) => write!(f, "string of more than {MAX_STR16} bytes at byte {at}"),
            Self::TooMany => write!(f, "more than {MAX_STR16} pairs"),
        }
    }
}

impl std::error::Error for PairsError {}

/// Pairs in wire order; duplicates are kept. Cloning costs one reference count.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Pairs {
    count: u16,
    region: Bytes,
}

impl Pairs {
    /// Takes `count` pairs from the front of `bytes`, leaving what follows them. Checks every length before it is used.
    ///
    /// # Errors
    /// [`PairsError::Truncated`] or [`PairsError::TooLong`], with `bytes` untouched.
    pub fn take(count: u16, bytes: &mut Bytes) -> Result<Self, PairsError> {
        let mut at = 0;
        for _ in 0..u32::from(count) * 2 {
            let len = match bytes.get(at..at + 2) {
                Some(&[high, low]) => usize::from(u16::from_be_bytes([high, low])),
                _ => return Err(PairsError::Truncated(at)),
            };
            if len > MAX_STR16 {
                return Err(PairsError::TooLong(at));
            }
            at += 2 + len;
            if at > bytes.len() {
                return Err(PairsError::Truncated(at - len));
            }
        }
        Ok(Self { count, region: bytes.split_to(at) })
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// Whether there is no pair.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The encoded pairs, without a count in front.
    pub fn region(&self) -> &Bytes {
        &self.region
    }

    /// Appends the count (u16) and the pairs, as Mux messages hold them.
    pub fn write(&self, out: &mut BytesMut) {
        out.put_u16(self.count);
        out.extend_from_slice(&self.region);
    }

    /// Walks the pairs; each key and value shares the list's memory.
    pub fn iter(&self) -> impl Iterator<Item = (Bytes, Bytes)> + '_ {
        let mut at = 0;
        std::iter::from_fn(move || {
            let key = self.str16(&mut at)?;
            let value = self.str16(&mut at)?;
            Some((key, value))
        })
    }

    fn str16(&self, at: &mut usize) -> Option<Bytes> {
        let len = match self.region.get(*at..*at + 2)? {
            &[high, low] => usize::from(u16::from_be_bytes([high, low])),
            _ => return None,
        };
        let start = *at + 2;
        *at = start + len;
        (*at <= self.region.len()).then(|| self.region.slice(start..*at))
    }

    /// Builds a list from borrowed pairs, in order.
    ///
    /// # Errors
    /// [`PairsError::TooLong`] or [`PairsError::TooMany`].
    pub fn build<'a>(pairs: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Result<Self, PairsError> {
        let mut region = BytesMut::new();
        let mut count = 0u16;
        for (key, value) in pairs {
            for text in [key, value] {
                if text.len() > MAX_STR16 {
                    return Err(PairsError::TooLong(region.len()));
                }
                region.put_u16(text.len() as u16);
                region.extend_from_slice(text);
            }
            count += 1;
            if usize::from(count) > MAX_STR16 {
                return Err(PairsError::TooMany);
            }
        }
        Ok(Self { count, region: region.freeze() })
    }
}

impl fmt::Debug for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_what_was_built_and_leaves_the_rest() {
        let pairs = Pairs::build([(&b"a"[..], &b"1"[..]), (b"", b""), (b"a", b"2")]).unwrap();
        let mut bytes = BytesMut::from(&pairs.region()[..]);
        bytes.extend_from_slice(b"body");
        let mut bytes = bytes.freeze();
        let taken = Pairs::take(3, &mut bytes).unwrap();
        assert_eq!(taken, pairs);
        assert_eq!(&bytes[..], b"body");
        let keys: Vec<_> = taken.iter().map(|(k, _)| k).collect();
        assert_eq!(keys, [&b"a"[..], b"", b"a"]);
    }

    #[test]
    fn a_length_is_checked_before_it_is_used() {
        let mut bytes = Bytes::from_static(b"\0\x01a\0\x05bc");
        assert_eq!(Pairs::take(1, &mut bytes), Err(PairsError::Truncated(5)));
        let mut bytes = Bytes::from_static(b"\x80\0a");
        assert_eq!(Pairs::take(1, &mut bytes), Err(PairsError::TooLong(0)));
        assert_eq!(bytes.len(), 3);
    }
}
