//! Bytes as a list of choices: any input means something, and a shorter one means less.

use bytes::Bytes;

/// The choices that are left.
pub struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// 0 when nothing is left.
    pub fn byte(&mut self) -> u8 {
        match self.0 {
            [first, rest @ ..] => {
                self.0 = rest;
                *first
            }
            [] => 0,
        }
    }

    pub fn word(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// Below `count`, which is not 0.
    pub fn below(&mut self, count: usize) -> usize {
        usize::from(self.byte()) % count
    }

    pub fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// A few bytes as they stand; their number comes first.
    pub fn bytes(&mut self) -> Bytes {
        let len = usize::from(self.byte()).min(self.0.len());
        let (bytes, rest) = self.0.split_at(len);
        self.0 = rest;
        Bytes::copy_from_slice(bytes)
    }
}

/// Cuts `bytes` into pieces of lengths that the bytes themselves choose.
pub fn pieces(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    let mut turn = bytes.len();
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        turn = turn.wrapping_mul(31).wrapping_add(usize::from(rest[0]));
        let (piece, later) = rest.split_at((1 + turn % 97).min(rest.len()));
        rest = later;
        Some(piece)
    })
}
