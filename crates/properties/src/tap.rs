//! The bytes that a session writes, read as its peer would read them.

use bytes::{Buf, BytesMut};
use muxgate_wire::mux::frame::{Frame, MAX_LEN, next_frame};
use muxgate_wire::mux::outbox::{Outbox, Staged};

/// Bytes of the headers of pieces: up to two rounds of them are laid out, one of which may be handed out.
pub const ROUNDS: usize = 2 * (16 << 10);

/// What was written and is not a whole frame yet.
#[derive(Default)]
pub struct Tap {
    bytes: BytesMut,
    staged: Staged,
    /// Whether to write as a socket task does: what there is is handed out, and written without the session.
    by_hand_out: bool,
}

impl Tap {
    pub fn new(by_hand_out: bool) -> Self {
        Self { by_hand_out, ..Self::default() }
    }

    /// Writes up to `count` bytes, and gives the frames that are whole now.
    pub fn write(&mut self, outbox: &mut Outbox, count: usize) -> Vec<Frame> {
        let mut left = count;
        if self.by_hand_out {
            while left > 0 {
                outbox.hand_out(&mut self.staged);
                if !self.staged.has_remaining() {
                    break;
                }
                self.take(left, None).inspect(|taken| left -= taken);
            }
        } else {
            self.take(left, Some(outbox));
        }
        std::iter::from_fn(|| next_frame(&mut self.bytes, MAX_LEN).expect("frames of ours are right"))
            .collect()
    }

    /// Writes everything there is.
    pub fn write_all(&mut self, outbox: &mut Outbox) -> Vec<Frame> {
        let frames = self.write(outbox, usize::MAX);
        assert!(self.bytes.is_empty() && outbox.is_empty(), "part of a frame is left");
        frames
    }

    fn take(&mut self, count: usize, outbox: Option<&mut Outbox>) -> Option<usize> {
        match outbox {
            Some(outbox) => drain(outbox, count, &mut self.bytes),
            None => drain(&mut self.staged, count, &mut self.bytes),
        }
    }
}

fn drain(from: &mut impl Buf, count: usize, into: &mut BytesMut) -> Option<usize> {
    let mut taken = 0;
    while from.has_remaining() && taken < count {
        let step = from.chunk().len().min(count - taken);
        assert!(step > 0, "an empty chunk with bytes remaining");
        into.extend_from_slice(&from.chunk()[..step]);
        from.advance(step);
        taken += step;
    }
    Some(taken)
}
