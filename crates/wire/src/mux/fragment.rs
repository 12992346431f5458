//! Puts messages together again that came in pieces (mux spec, section 6).
//!
//! Stricter than Finagle in three ways: memory is bounded, only requests and replies take what was buffered for their
//! tag (a ping on that tag does not), and a stream that stops growing ends the session.

use super::frame::Tag;
use super::limits::Limits;
use super::session::SessionError;
use bytes::{Bytes, BytesMut};
use std::collections::BTreeMap;
use std::time::Duration;

/// What a final frame completes.
#[derive(Debug, PartialEq, Eq)]
pub enum Assembled {
    /// The whole message body.
    Whole(Bytes),
    /// It was more than is accepted, and has been dropped.
    TooLarge,
}

#[derive(Debug)]
struct Partial {
    bytes: BytesMut,
    too_large: bool,
    touched: Duration,
}

/// Size from which on a partial message grows in long strides: each time it moves, all calls of the session wait.
const LARGE: usize = 1 << 20;
/// By how much it grows then: in one stride to the largest limit in use. Memory that is not written yet costs nothing but
/// addresses.
const STRIDE: usize = 128;

impl Partial {
    fn make_room(&mut self, piece: usize, most: usize) {
        let len = self.bytes.len();
        if len >= LARGE && self.bytes.capacity() - len < piece {
            self.bytes.reserve(most.min(len * STRIDE).saturating_sub(len).max(piece));
        }
    }
}

/// The partial messages of one session.
#[derive(Debug, Default)]
pub struct Reassembly {
    limits: Limits,
    partials: BTreeMap<Tag, Partial>,
    bytes: usize,
}

impl Reassembly {
    /// None yet; of the limits those of messages and partial messages count.
    pub fn new(limits: Limits) -> Self {
        Self { limits, partials: BTreeMap::new(), bytes: 0 }
    }

    /// Takes a piece that is not the last one. A message that outgrows the limits loses its bytes, not its place: its
    /// last piece will tell.
    ///
    /// # Errors
    /// [`SessionError::TooManyPartials`] for yet another stream when there are [`Limits::partials`].
    pub fn push(&mut self, tag: Tag, piece: &[u8], now: Duration) -> Result<(), SessionError> {
        if self.partials.len() >= self.limits.partials && !self.partials.contains_key(&tag) {
            return Err(SessionError::TooManyPartials);
        }
        let partial = self.partials.entry(tag).or_insert_with(|| Partial {
            bytes: BytesMut::new(),
            too_large: false,
            touched: now,
        });
        // Empty pieces are legal but are no progress.
        if !piece.is_empty() {
            partial.touched = now;
        }
        if partial.too_large {
            return Ok(());
        }
        let fits = partial.bytes.len() + piece.len() <= self.limits.message_bytes
            && self.bytes + piece.len() <= self.limits.partial_bytes;
        if fits {
            // Copied, so that a small piece does not hold on to a large read buffer.
            partial.make_room(piece.len(), self.limits.message_bytes);
            partial.bytes.extend_from_slice(piece);
            self.bytes += piece.len();
        } else {
            self.bytes -= partial.bytes.len();
            partial.bytes = BytesMut::new();
            partial.too_large = true;
        }
        Ok(())
    }

    /// Completes a message with its last piece (usually its only one, which costs nothing).
    #[inline]
    pub fn finish(&mut self, tag: Tag, last: Bytes) -> Assembled {
        if self.partials.is_empty() { Assembled::Whole(last) } else { self.join(tag, last) }
    }

    fn join(&mut self, tag: Tag, last: Bytes) -> Assembled {
        let Some(mut partial) = self.partials.remove(&tag) else { return Assembled::Whole(last) };
        self.bytes -= partial.bytes.len();
        if partial.too_large || partial.bytes.len() + last.len() > self.limits.message_bytes {
            return Assembled::TooLarge;
        }
        partial.bytes.extend_from_slice(&last);
        Assembled::Whole(partial.bytes.freeze())
    }

    /// Forgets what was buffered for this tag; whether there was anything.
    pub fn drop_partial(&mut self, tag: Tag) -> bool {
        let dropped = self.partials.remove(&tag);
        self.bytes -= dropped.as_ref().map_or(0, |partial| partial.bytes.len());
        dropped.is_some()
    }

    /// Number of partial messages.
    pub fn len(&self) -> usize {
        self.partials.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.partials.is_empty()
    }

    /// Bytes buffered.
    pub fn buffered(&self) -> usize {
        self.bytes
    }

    /// When the first stream counts as abandoned, if there is any.
    pub fn idle_at(&self) -> Option<Duration> {
        self.partials.values().map(|partial| partial.touched.saturating_add(self.limits.partial_idle)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::super::limits;
    use super::*;

    const T: Duration = Duration::ZERO;
    const A: Tag = Tag::FIRST;
    const B: Tag = Tag::MAX;

    #[test]
    fn pieces_of_different_tags_may_be_woven() {
        let mut all = Reassembly::default();
        for (tag, piece) in [(A, "a1"), (B, "b1"), (A, ""), (A, "a2")] {
            all.push(tag, piece.as_bytes(), T).unwrap();
        }
        assert_eq!((all.len(), all.buffered()), (2, 6));
        let whole = |text: &'static str| Assembled::Whole(Bytes::from_static(text.as_bytes()));
        assert_eq!(all.finish(Tag::SESSION, Bytes::from_static(b"x")), whole("x"));
        assert_eq!(all.finish(A, Bytes::from_static(b"a3")), whole("a1a2a3"));
        assert_eq!(all.finish(A, Bytes::from_static(b"x")), whole("x"));
        assert!(all.drop_partial(B) && !all.drop_partial(B));
        assert!(all.is_empty() && all.buffered() == 0);
    }

    #[test]
    fn too_much_is_dropped_and_said_at_the_end() {
        let mut all = Reassembly::default();
        let piece = vec![0; limits::MAX_MESSAGE / 2];
        all.push(A, &piece, T).unwrap();
        all.push(B, &piece, T).unwrap();
        all.push(A, b"1", T).unwrap();
        assert_eq!(all.buffered(), piece.len());
        all.push(A, &piece, T).unwrap();
        assert_eq!(all.finish(A, Bytes::new()), Assembled::TooLarge);
        assert_eq!(all.finish(B, Bytes::from(vec![0; piece.len() + 1])), Assembled::TooLarge);
        assert!(all.is_empty() && all.buffered() == 0);
    }

    #[test]
    fn streams_are_counted_and_watched() {
        let mut all = Reassembly::default();
        for tag in 0..limits::MAX_PARTIALS as u32 {
            all.push(Tag::new(tag).unwrap(), b"", Duration::from_secs(u64::from(tag) + 1)).unwrap();
        }
        assert_eq!(all.push(Tag::MAX, b"", T), Err(SessionError::TooManyPartials));
        all.push(Tag::MARKER, b"", Duration::from_secs(9)).unwrap();
        assert_eq!(all.idle_at(), Some(Duration::from_secs(1) + limits::PARTIAL_IDLE));
        all.push(Tag::MARKER, b"x", Duration::from_secs(9)).unwrap();
        assert_eq!(all.idle_at(), Some(Duration::from_secs(2) + limits::PARTIAL_IDLE));
    }
}
