//! Frames that wait to be written.
//!
//! The usual message is appended to one buffer and that is all. A body of [`APART`] bytes and more is never copied, it
//! waits beside the buffer. A message longer than the peer's window is cut (mux spec, section 6) and its pieces are
//! woven: in each round every long message gives up one piece, and the next round is laid out when all of the round
//! before has been written, so whatever comes in between waits for one round at most.
//!
//! Two ways to write it: as a [`Buf`], in place; or by [`Outbox::take`], which hands out what is ready, to be written
//! while others append.

mod long;
mod staged;
#[cfg(test)]
mod tests;

pub use staged::Staged;

use super::frame::{self, HEADER, MAX_LEN, MIN_LEN, Tag};
use super::handshake::UNLIMITED;
use crate::pairs::PairsError;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use long::Long;
use std::collections::VecDeque;
use std::fmt;
use std::io::IoSlice;

/// Bodies of this many bytes and more are not copied into the common buffer. Below it a copy costs less than keeping
/// track of one more piece of memory.
pub const APART: usize = 1024;

/// Pieces of long messages are laid out until a round has this many bytes, so that a peer with a tiny window does not
/// make us write a few bytes at a time.
const ROUND: usize = 16 << 10;

/// Where a message is in the stream of all bytes of an outbox; needed to take it back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticket {
    at: u64,
    len: u32,
    long: bool,
}

impl Ticket {
    /// Whether any of it has been written, given [`Outbox::written`].
    pub(super) fn is_begun(&self, written: u64) -> bool {
        self.at < written
    }
}

/// What taking back came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discarded {
    /// Nothing had been written; nothing will be.
    Unwritten,
    /// Some pieces had been written; the last one never will be.
    Partly,
    /// The whole message has been or will be written.
    Written,
}

/// A message that cannot be written because its reader could not read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// Contexts or other strings do not fit their fields.
    Pairs(PairsError),
    /// The message is longer than a frame can be.
    TooLong,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pairs(error) => error.fmt(f),
            Self::TooLong => f.write_str("message is longer than a frame can be"),
        }
    }
}

impl std::error::Error for EncodeError {}

impl From<PairsError> for EncodeError {
    fn from(error: PairsError) -> Self {
        Self::Pairs(error)
    }
}

/// See the module's text.
#[derive(Debug)]
pub struct Outbox {
    staged: Staged,
    longs: VecDeque<Long>,
    long_bytes: usize,
    round_end: u64,
    window: usize,
    taken: usize,
    control: Control,
}

/// How many control frames wait at most: counted since a position that has not been written yet.
#[derive(Debug, Default)]
struct Control {
    before: usize,
    since: usize,
    mark: u64,
}

impl Default for Outbox {
    fn default() -> Self {
        Self {
            staged: Staged::default(),
            longs: VecDeque::new(),
            long_bytes: 0,
            round_end: 0,
            window: UNLIMITED as usize,
            taken: 0,
            control: Control::default(),
        }
    }
}

impl Outbox {
    /// Sets the peer's window: the most body bytes per frame, for messages that come from now on.
    pub fn set_window(&mut self, window: u32) {
        self.window = window.clamp(1, UNLIMITED) as usize;
    }

    /// Whether there is nothing to write and nothing handed out by [`Self::take`] that may still be in writing.
    pub fn is_empty(&self) -> bool {
        self.queued_bytes() == 0
    }

    /// Bytes that wait to be written, those handed out by the last [`Self::take`] included.
    pub fn queued_bytes(&self) -> usize {
        self.staged.remaining() + self.long_bytes + self.taken
    }

    /// Position up to which everything has been written or handed out.
    pub(super) fn written(&self) -> u64 {
        self.staged.written()
    }

    /// Whether there is nothing left to take back of a message.
    pub(super) fn is_done(&self, ticket: Ticket) -> bool {
        if ticket.long {
            self.longs.iter().all(|long| !long.is(ticket))
        } else {
            ticket.is_begun(self.written())
        }
    }

    /// Control frames that wait to be written, or a little more.
    pub fn queued_control(&self) -> usize {
        self.control.before + self.control.since
    }

    /// Appends a short message that is never cut.
    pub fn push_control(&mut self, kind: i8, tag: Tag, body: &[u8]) {
        self.count_control();
        let small = self.staged.small();
        small.put_slice(&frame::header(kind, tag, false, body.len()));
        small.put_slice(body);
        self.staged.grown(HEADER + body.len());
    }

    /// Counts what is appended next as a control frame.
    pub(super) fn count_control(&mut self) {
        let (written, end) = (self.staged.written(), self.staged.end());
        if written >= end {
            self.control = Control { before: 0, since: 0, mark: end };
        } else if written >= self.control.mark {
            self.control = Control { before: self.control.since, since: 0, mark: end };
        }
        self.control.since += 1;
    }

    /// Appends a message that may be cut (Tdispatch, Rdispatch): what `head` writes, then `body`.
    ///
    /// # Errors
    /// What `head` says, or [`EncodeError::TooLong`]; nothing has been appended then.
    #[inline]
    pub fn push(
        &mut self,
        kind: i8,
        tag: Tag,
        body: Bytes,
        head: impl FnOnce(&mut BytesMut) -> Result<(), EncodeError>,
    ) -> Result<Ticket, EncodeError> {
        let at = self.staged.end();
        let (start, len) = self.begin(&body, head)?;
        if len > self.window {
            return Ok(self.push_long(kind, tag, start, body));
        }
        self.complete(kind, tag, start, len, body);
        Ok(Ticket { at, len: (HEADER + len) as u32, long: false })
    }

    /// Appends a message that must not be cut, whatever the window.
    ///
    /// # Errors
    /// [`EncodeError::TooLong`]; nothing has been appended then.
    pub fn push_whole(
        &mut self,
        kind: i8,
        tag: Tag,
        body: Bytes,
        head: impl FnOnce(&mut BytesMut),
    ) -> Result<Ticket, EncodeError> {
        let at = self.staged.end();
        let (start, len) = self.begin(&body, |out| {
            head(out);
            Ok(())
        })?;
        self.complete(kind, tag, start, len, body);
        Ok(Ticket { at, len: (HEADER + len) as u32, long: false })
    }

    /// Writes room for a header and the head: where that starts in the buffer, and the length of head and body.
    #[inline]
    fn begin(
        &mut self,
        body: &Bytes,
        head: impl FnOnce(&mut BytesMut) -> Result<(), EncodeError>,
    ) -> Result<(usize, usize), EncodeError> {
        let small = self.staged.small();
        let start = small.len();
        small.put_slice(&[0; HEADER]);
        let written = head(small);
        let len = small.len() - start - HEADER + body.len();
        let fits =
            if len > (MAX_LEN - MIN_LEN) as usize { Err(EncodeError::TooLong) } else { Ok((start, len)) };
        let begun = written.and(fits);
        if begun.is_err() {
            small.truncate(start);
        }
        begun
    }

    #[inline]
    fn complete(&mut self, kind: i8, tag: Tag, start: usize, len: usize, body: Bytes) {
        let small = self.staged.small();
        if let Some(place) = small.get_mut(start..start + HEADER) {
            place.copy_from_slice(&frame::header(kind, tag, false, len));
        }
        if body.len() < APART {
            small.put_slice(&body);
            self.staged.grown(HEADER + len);
        } else {
            let front = small.len() - start;
            self.staged.grown(front);
            self.staged.push_apart(body);
        }
    }

    /// Takes back what has not been written of a message.
    pub fn discard(&mut self, ticket: Ticket) -> Discarded {
        if ticket.long {
            return self.discard_long(ticket.at);
        }
        if self.staged.written() > ticket.at {
            return Discarded::Written;
        }
        self.staged.remove(ticket.at, ticket.len as usize);
        self.next_round();
        Discarded::Unwritten
    }

    /// Hands out all that is ready, by swapping it with `empty`, which must be the last one handed out, all written;
    /// does nothing when it is not. The memory of the two is used in turns. What is handed out counts as
    /// written, but also as queued until the next call, which should therefore follow the last write at once.
    pub fn hand_out(&mut self, empty: &mut Staged) {
        if empty.has_remaining() {
            return;
        }
        empty.continue_from(&self.staged);
        std::mem::swap(&mut self.staged, empty);
        self.taken = empty.remaining();
        self.next_round();
    }
}

impl Buf for Outbox {
    /// Bytes that are ready. More may become ready as these are written, so look again after [`Buf::advance`].
    fn remaining(&self) -> usize {
        self.staged.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.staged.chunk()
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        self.staged.chunks_vectored(slices)
    }

    fn advance(&mut self, count: usize) {
        self.staged.advance(count);
        self.next_round();
    }
}
