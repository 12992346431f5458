//! Writes contexts straight into the message they belong to.

use super::{Deadline, MuxFailure, TraceContext};
use crate::pairs::{MAX_STR16, Pairs, PairsError};
use bytes::{BufMut, BytesMut};

/// Appends contexts to a message under construction; the count in front is filled in at the end.
///
/// What cannot be encoded is remembered and makes the whole message be refused: nothing is left out in silence.
pub struct ContextWriter<'a> {
    out: &'a mut BytesMut,
    start: usize,
    count: usize,
    error: Option<PairsError>,
}

impl<'a> ContextWriter<'a> {
    /// Starts a counted list at the end of `out`.
    pub fn new(out: &'a mut BytesMut) -> Self {
        let start = out.len();
        out.put_u16(0);
        Self { out, start, count: 0, error: None }
    }

    /// Appends one context.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        if key.len() > MAX_STR16 || value.len() > MAX_STR16 {
            self.error.get_or_insert(PairsError::TooLong(self.out.len() - self.start - 2));
            return;
        }
        self.count += 1;
        self.out.reserve(key.len() + value.len() + 4);
        self.out.put_u16(key.len() as u16);
        self.out.put_slice(key);
        self.out.put_u16(value.len() as u16);
        self.out.put_slice(value);
    }

    /// Appends a whole list as it is.
    pub fn put_pairs(&mut self, pairs: &Pairs) {
        self.count += pairs.len();
        self.out.put_slice(pairs.region());
    }

    /// Appends a trace context.
    pub fn put_trace(&mut self, trace: &TraceContext) {
        let (value, len) = trace.encode();
        self.put(super::TRACE, &value[..len]);
    }

    /// Appends a deadline.
    pub fn put_deadline(&mut self, deadline: Deadline) {
        self.put(super::DEADLINE, &deadline.encode());
    }

    /// Appends the number of retries.
    pub fn put_retries(&mut self, retries: i32) {
        self.put(super::RETRIES, &retries.to_be_bytes());
    }

    /// Appends failure flags (replies only).
    pub fn put_failure(&mut self, failure: MuxFailure) {
        self.put(super::MUX_FAILURE, &failure.encode());
    }

    /// Ends the list.
    ///
    /// # Errors
    /// The first thing that could not be encoded; what was written is then of no use.
    pub fn finish(self) -> Result<(), PairsError> {
        match (self.error, u16::try_from(self.count)) {
            (Some(error), _) => Err(error),
            (None, Ok(count)) if usize::from(count) <= MAX_STR16 => {
                if let Some(place) = self.out.get_mut(self.start..self.start + 2) {
                    place.copy_from_slice(&count.to_be_bytes());
                }
                Ok(())
            }
            _ => Err(PairsError::TooMany),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_what_pairs_would() {
        let pairs = Pairs::build([(&b"a"[..], &b"1"[..]), (b"b", b"")]).unwrap();
        let mut out = BytesMut::from(&b"xx"[..]);
        let mut writer = ContextWriter::new(&mut out);
        writer.put_pairs(&pairs);
        writer.put_failure(MuxFailure::REJECTED);
        writer.finish().unwrap();
        let mut expected = BytesMut::from(&b"xx\0\x03"[..]);
        expected.put_slice(pairs.region());
        expected.put_slice(MuxFailure::REJECTED.to_pairs().region());
        assert_eq!(out, expected);
    }

    #[test]
    fn what_finagle_could_not_read_is_refused() {
        let mut out = BytesMut::new();
        let mut writer = ContextWriter::new(&mut out);
        writer.put(b"k", &vec![0; MAX_STR16 + 1]);
        assert_eq!(writer.finish(), Err(PairsError::TooLong(0)));
        let mut writer = ContextWriter::new(&mut out);
        (0..=MAX_STR16).for_each(|_| writer.put(b"", b""));
        assert_eq!(writer.finish(), Err(PairsError::TooMany));
    }
}
