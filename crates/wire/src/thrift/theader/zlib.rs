//! The one transform: a whole zlib stream, bounded when it is undone.

use super::super::error::{ThriftError, Why};
use bytes::{Bytes, BytesMut};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// Fewest bytes by which a buffer grows.
const LEAST_STEP: usize = 256;
/// Most bytes by which it grows at once, so that it never runs far ahead of what really comes.
const MOST_STEP: usize = 64 << 10;

/// Undoes the transform; offsets of errors are in the compressed bytes.
///
/// # Errors
/// What is no zlib stream, ends too early or too late, or has more than `most` bytes in it.
pub(super) fn inflate(payload: &[u8], most: usize) -> Result<Bytes, ThriftError> {
    let mut stream = Decompress::new(true);
    // One byte beyond the limit tells a message that just fits from one that does not.
    let room = most.saturating_add(1);
    let mut out = vec![0; payload.len().saturating_mul(2).clamp(LEAST_STEP, MOST_STEP).min(room)];
    loop {
        let (read, written) = (stream.total_in() as usize, stream.total_out() as usize);
        if written > most {
            return Err(ThriftError::new(read, Why::OverLimit { most }));
        }
        if written == out.len() {
            grow(&mut out, room);
        }
        let (input, output) =
            (payload.get(read..).unwrap_or_default(), out.get_mut(written..).unwrap_or_default());
        let status = stream.decompress(input, output, FlushDecompress::None);
        let (now_read, now_written) = (stream.total_in() as usize, stream.total_out() as usize);
        match status {
            Ok(Status::StreamEnd) if now_written > most => {}
            Ok(Status::StreamEnd) => {
                let left = payload.len().saturating_sub(now_read);
                if left > 0 {
                    return Err(ThriftError::new(now_read, Why::Trailing { left }));
                }
                out.truncate(now_written);
                return Ok(out.into());
            }
            Ok(_) if (now_read, now_written) != (read, written) => {}
            // All was read and nothing came of it: the rest of the stream is missing, or there is a dictionary.
            Ok(_) | Err(_) => return Err(ThriftError::new(now_read, Why::BadZlib)),
        }
    }
}

/// Longer by as much again, within bounds.
fn grow(out: &mut Vec<u8>, room: usize) {
    let len = out.len().saturating_add(out.len().clamp(LEAST_STEP, MOST_STEP)).min(room);
    if len > out.capacity() {
        // The buffer doubles, but not beyond what the limit lets it have.
        let more = out.capacity().saturating_mul(2).max(len).min(room).saturating_sub(out.len());
        out.reserve_exact(more);
    }
    out.resize(len, 0);
}

/// Applies the transform. Fast rather than tight: a gateway does it for each message of a connection.
pub(super) fn deflate(message: &[u8]) -> Bytes {
    let mut stream = Compress::new(Compression::fast(), true);
    let mut out = BytesMut::zeroed(message.len() / 2 + LEAST_STEP);
    loop {
        let (read, written) = (stream.total_in() as usize, stream.total_out() as usize);
        if written == out.len() {
            let more = out.len().clamp(LEAST_STEP, MOST_STEP);
            out.resize(out.len() + more, 0);
        }
        let input = message.get(read..).unwrap_or_default();
        let output = out.get_mut(written..).unwrap_or_default();
        // Compression into a buffer with room cannot fail: the stream is ours, and it is finished only once.
        if !matches!(stream.compress(input, output, FlushCompress::Finish), Ok(Status::Ok | Status::BufError))
        {
            out.truncate(stream.total_out() as usize);
            return out.freeze();
        }
    }
}
