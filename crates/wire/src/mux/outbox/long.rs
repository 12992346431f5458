//! Messages longer than the peer's window, cut into pieces.

use super::{APART, Discarded, Outbox, ROUND, Ticket};
use crate::mux::frame::{self, HEADER, Tag};
use bytes::{BufMut, Bytes};

/// What is left of a long message, and where its latest piece is.
#[derive(Debug)]
pub(super) struct Long {
    kind: i8,
    tag: Tag,
    /// Position of the first piece: names the message.
    id: u64,
    /// The part of the message in front of the body (contexts and so on); cuts may fall into it.
    head: Bytes,
    body: Bytes,
    /// Pieces of the current round: position and length of each.
    pieces: Vec<(u64, usize)>,
}

impl Long {
    pub(super) fn is(&self, ticket: Ticket) -> bool {
        self.id == ticket.at
    }

    fn left(&self) -> usize {
        self.head.len() + self.body.len()
    }
}

impl Outbox {
    /// Makes a long message of what was just written into the buffer behind `start`, header included.
    pub(super) fn push_long(&mut self, kind: i8, tag: Tag, start: usize, body: Bytes) -> Ticket {
        let small = self.staged.small();
        let head = Bytes::copy_from_slice(small.get(start + HEADER..).unwrap_or_default());
        small.truncate(start);
        let id = self.staged.end();
        let mut long = Long { kind, tag, id, head, body, pieces: Vec::new() };
        // The first piece joins what is ready now.
        self.give_piece(&mut long);
        self.long_bytes += long.left();
        self.longs.push_back(long);
        if self.longs.len() == 1 {
            self.round_end = self.staged.end();
        }
        Ticket { at: id, len: 0, long: true }
    }

    /// Lays out the next round if the last one has been written.
    #[inline]
    pub(super) fn next_round(&mut self) {
        if !self.longs.is_empty() {
            self.lay_out_rounds();
        }
    }

    fn lay_out_rounds(&mut self) {
        if self.staged.written() < self.round_end {
            return;
        }
        let written = self.staged.written();
        // A message that has nothing left stays until its last piece is written, so that it can be found.
        self.longs.retain(|long| long.left() > 0 || long.pieces.iter().any(|(at, _)| *at >= written));
        self.longs.iter_mut().for_each(|long| long.pieces.retain(|(at, _)| *at >= written));
        let start = self.staged.end();
        let mut longs = std::mem::take(&mut self.longs);
        loop {
            let mut gave = false;
            for long in longs.iter_mut().filter(|long| long.left() > 0) {
                let before = long.left();
                self.give_piece(long);
                self.long_bytes -= before - long.left();
                gave = true;
            }
            if !gave || self.staged.end() - start >= ROUND as u64 {
                break;
            }
        }
        self.longs = longs;
        self.round_end = self.staged.end();
    }

    fn give_piece(&mut self, long: &mut Long) {
        let at = self.staged.end();
        let last = long.left() <= self.window;
        let len = long.left().min(self.window);
        let head = long.head.split_to(len.min(long.head.len()));
        let body = long.body.split_to(len - head.len());
        let small = self.staged.small();
        small.put_slice(&frame::header(long.kind, long.tag, !last, len));
        small.put_slice(&head);
        if body.len() < APART {
            small.put_slice(&body);
            self.staged.grown(HEADER + len);
        } else {
            self.staged.grown(HEADER + head.len());
            self.staged.push_apart(body);
        }
        long.pieces.push((at, HEADER + len));
    }

    pub(super) fn discard_long(&mut self, id: u64) -> Discarded {
        let Some(index) = self.longs.iter().position(|long| long.id == id) else { return Discarded::Written };
        let written = self.staged.written();
        let Some(long) = self.longs.get_mut(index) else { return Discarded::Written };
        // A piece whose first byte is written must be finished. If that is the last piece, so is the message.
        let waiting = long.pieces.partition_point(|(at, _)| *at < written);
        if long.left() == 0 && waiting == long.pieces.len() {
            return Discarded::Written;
        }
        let begun = id < written;
        self.long_bytes -= long.left();
        let pieces = long.pieces.split_off(waiting);
        self.longs.remove(index);
        for (at, len) in pieces {
            self.staged.remove(at, len);
        }
        self.next_round();
        if begun { Discarded::Partly } else { Discarded::Unwritten }
    }
}
