//! Bytes that are ready to be written: small frames back to back in one buffer, large bodies apart.

use bytes::{Buf, Bytes, BytesMut};
use std::collections::VecDeque;
use std::io::IoSlice;

/// A buffer that has grown beyond this is not kept once it is empty.
const KEEP_CAPACITY: usize = 256 << 10;

#[derive(Debug)]
enum Part {
    /// So many bytes of `small`.
    Run(usize),
    /// So many bytes of `small` that have been taken back.
    Dead(usize),
    /// A large body.
    Apart(Bytes),
}

#[derive(Debug)]
struct Segment {
    /// Where it starts in the stream of all bytes ever put in.
    at: u64,
    part: Part,
}

/// A queue of bytes. As a [`Buf`] it gives them in order; `chunks_vectored` is made for one vectored write.
#[derive(Debug, Default)]
pub struct Staged {
    small: BytesMut,
    segments: VecDeque<Segment>,
    end: u64,
    live: usize,
}

impl Staged {
    /// Position of the first byte that is not written, or of the end.
    pub(super) fn written(&self) -> u64 {
        self.segments.front().map_or(self.end, |segment| segment.at)
    }

    /// Position behind the last byte.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// The buffer of small bytes; append to it, then call [`Self::grown`] with how much.
    pub(super) fn small(&mut self) -> &mut BytesMut {
        &mut self.small
    }

    pub(super) fn grown(&mut self, by: usize) {
        match self.segments.back_mut() {
            Some(Segment { part: Part::Run(len), .. }) => *len += by,
            _ => self.segments.push_back(Segment { at: self.end, part: Part::Run(by) }),
        }
        self.end += by as u64;
        self.live += by;
    }

    /// Appends bytes without copying them.
    pub(super) fn push_apart(&mut self, bytes: Bytes) {
        let len = bytes.len();
        self.segments.push_back(Segment { at: self.end, part: Part::Apart(bytes) });
        self.end += len as u64;
        self.live += len;
    }

    /// Takes back a whole frame of `len` bytes at `at`, of which nothing has been written: its front in a run, the rest,
    /// if any, apart.
    pub(super) fn remove(&mut self, at: u64, len: usize) {
        let Some(index) = self.segments.partition_point(|segment| segment.at <= at).checked_sub(1) else {
            return;
        };
        let Some(&Segment { at: start, part: Part::Run(run) }) = self.segments.get(index) else { return };
        let before = (at - start) as usize;
        let dead = len.min(run - before);
        let after = run - before - dead;
        let mut next = index + 1;
        if len > dead {
            self.segments.remove(next);
        }
        let mut put = |at, part| {
            self.segments.insert(next, Segment { at, part });
            next += 1;
        };
        put(at, Part::Dead(dead));
        if after > 0 {
            put(at + dead as u64, Part::Run(after));
        }
        match self.segments.get_mut(index) {
            Some(segment) if before > 0 => segment.part = Part::Run(before),
            _ => drop(self.segments.remove(index)),
        }
        self.live -= len;
        self.skip_dead();
    }

    fn skip_dead(&mut self) {
        while let Some(&Segment { part: Part::Dead(len), .. }) = self.segments.front() {
            self.small.advance(len);
            self.segments.pop_front();
        }
        if self.live == 0 && self.small.capacity() > KEEP_CAPACITY {
            self.small = BytesMut::new();
        }
    }

    /// Makes an empty queue go on where `other` ends.
    pub(super) fn continue_from(&mut self, other: &Staged) {
        self.end = other.end;
    }
}

impl Buf for Staged {
    fn remaining(&self) -> usize {
        self.live
    }

    fn chunk(&self) -> &[u8] {
        match self.segments.front().map(|segment| &segment.part) {
            Some(Part::Run(len)) => self.small.get(..*len).unwrap_or_default(),
            Some(Part::Apart(bytes)) => bytes,
            Some(Part::Dead(_)) | None => &[],
        }
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut small = &self.small[..];
        let mut filled = 0;
        for segment in &self.segments {
            if filled == slices.len() {
                break;
            }
            let chunk = match &segment.part {
                Part::Apart(bytes) => &bytes[..],
                Part::Run(len) | Part::Dead(len) => {
                    let Some((run, rest)) = small.split_at_checked(*len) else { break };
                    small = rest;
                    if matches!(segment.part, Part::Dead(_)) {
                        continue;
                    }
                    run
                }
            };
            if let Some(slot) = slices.get_mut(filled) {
                *slot = IoSlice::new(chunk);
                filled += 1;
            }
        }
        filled
    }

    /// # Panics
    /// When `count` is more than is there, like every `Buf`.
    fn advance(&mut self, mut count: usize) {
        assert!(count <= self.live, "advance past the end");
        self.live -= count;
        while count > 0 {
            let Some(segment) = self.segments.front_mut() else { break };
            let whole = match &mut segment.part {
                Part::Run(len) => {
                    let step = count.min(*len);
                    self.small.advance(step);
                    *len -= step;
                    segment.at += step as u64;
                    count -= step;
                    *len == 0
                }
                Part::Apart(bytes) => {
                    let step = count.min(bytes.len());
                    bytes.advance(step);
                    segment.at += step as u64;
                    count -= step;
                    bytes.is_empty()
                }
                Part::Dead(len) => {
                    self.small.advance(*len);
                    true
                }
            };
            if whole {
                self.segments.pop_front();
            }
        }
        self.skip_dead();
    }
}
