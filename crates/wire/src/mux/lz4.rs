//! The stream that Mux peers call `lz4`: not the LZ4 frame format but the block stream of Netty and lz4-java (mux spec,
//! section 18).
//!
//! ```text
//! "LZ4Block" | token u8 | compressed length | decompressed length | checksum | block          all three u32 little-endian
//!              high nibble: 1 = stored, 2 = LZ4; low nibble: log2(largest block) - 10
//! ```
//!
//! The checksum is that of the decompressed bytes: xxHash32, the low 28 bits. A block with both lengths 0 ends the stream.

use bytes::{Buf, BufMut, BytesMut};
use lz4_flex::block::{self, CompressTable};
use std::fmt;
use twox_hash::XxHash32;

/// Most bytes that go into one block: what the small hash table of the compressor can take.
pub const BLOCK: usize = 65_534;

/// Largest block taken by default, decompressed, in bytes. Finagle's blocks have 64 KiB; the format knows 32 MiB.
pub const MAX_BLOCK: usize = 4 << 20;

const MAGIC: &[u8; 8] = b"LZ4Block";
/// Bytes in front of a block.
const HEADER: usize = MAGIC.len() + 1 + 3 * 4;
const STORED: u8 = 0x10;
const COMPRESSED: u8 = 0x20;
/// What our tokens say about sizes: blocks of at most 64 KiB.
const LEVEL: u8 = 6;
const LEVEL_BASE: u32 = 10;
const SEED: u32 = 0x9747_b28c;

fn checksum(bytes: &[u8]) -> u32 {
    XxHash32::oneshot(SEED, bytes) & 0x0fff_ffff
}

/// Compresses one direction of a connection. Holds a hash table of 8 KiB and no bytes.
#[derive(Default)]
pub struct Encoder {
    table: CompressTable,
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Encoder")
    }
}

impl Encoder {
    /// Appends `input` as blocks of at most [`BLOCK`] bytes, the last one complete too, so that what was written can be
    /// read at once. What does not become smaller is stored.
    pub fn encode(&mut self, input: &[u8], out: &mut BytesMut) {
        input.chunks(BLOCK).for_each(|part| self.block(part, out));
    }

    fn block(&mut self, part: &[u8], out: &mut BytesMut) {
        let start = out.len();
        let at = start + HEADER;
        out.resize(at + block::get_maximum_output_size(part.len()), 0);
        let room = out.get_mut(at..).unwrap_or_default();
        let compressed = block::compress_into_with_table(part, room, &mut self.table);
        let (method, len) = match compressed {
            Ok(len) if len < part.len() => (COMPRESSED, len),
            _ => {
                if let Some(place) = room.get_mut(..part.len()) {
                    place.copy_from_slice(part);
                }
                (STORED, part.len())
            }
        };
        out.truncate(at + len);
        let mut header = out.get_mut(start..at).unwrap_or_default();
        put_header(&mut header, method, len, part.len(), checksum(part));
    }
}

/// Appends the block that ends a stream.
pub fn put_end(out: &mut BytesMut) {
    put_header(out, STORED, 0, 0, 0);
}

fn put_header(out: &mut impl BufMut, method: u8, len: usize, decompressed: usize, checksum: u32) {
    out.put_slice(MAGIC);
    out.put_u8(method | LEVEL);
    out.put_u32_le(len as u32);
    out.put_u32_le(decompressed as u32);
    out.put_u32_le(checksum);
}

/// What [`next_block`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A block, taken off the input and appended to the output.
    Block,
    /// The end of the stream; what follows means nothing.
    End,
    /// The block is not all there: so many bytes are missing at least.
    Missing(usize),
}

/// Why bytes are not such a stream; the connection is of no further use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lz4Error {
    /// Not the magic bytes: the peer does not compress, or in another way.
    Magic,
    /// A method other than stored and LZ4.
    Method(u8),
    /// A block larger than it says blocks are, or than is taken.
    TooLong {
        /// The length that the header gives.
        len: u32,
        /// The most it may be.
        max: usize,
    },
    /// Lengths that contradict each other.
    Lengths {
        /// Bytes that follow.
        compressed: u32,
        /// Bytes that they should become.
        decompressed: u32,
    },
    /// The block is not LZ4, or becomes fewer bytes than it should.
    Corrupt,
    /// The checksum is not that of the bytes.
    Checksum,
}

impl fmt::Display for Lz4Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic => f.write_str("not an lz4 block: the peer does not compress as agreed"),
            Self::Method(method) => write!(f, "lz4 block with the unknown method {method:#x}"),
            Self::TooLong { len, max } => write!(f, "lz4 block of {len} bytes, at most {max} are taken"),
            Self::Lengths { compressed, decompressed } => {
                write!(f, "lz4 block whose {compressed} bytes cannot be {decompressed} bytes")
            }
            Self::Corrupt => f.write_str("lz4 block that does not decompress"),
            Self::Checksum => f.write_str("lz4 block with a wrong checksum"),
        }
    }
}

impl std::error::Error for Lz4Error {}

struct Header {
    method: u8,
    compressed: u32,
    decompressed: u32,
    checksum: u32,
}

/// Reads a header, if it is all there, and checks what it claims before anything is reserved or waited for.
fn header(input: &[u8], max_block: usize) -> Result<Option<Header>, Lz4Error> {
    if input.iter().zip(MAGIC).any(|(byte, magic)| byte != magic) {
        return Err(Lz4Error::Magic);
    }
    let Some(mut rest) = input.get(MAGIC.len()..HEADER) else { return Ok(None) };
    let token = rest.get_u8();
    let header = Header {
        method: token & 0xf0,
        compressed: rest.get_u32_le(),
        decompressed: rest.get_u32_le(),
        checksum: rest.get_u32_le(),
    };
    let max = (1usize << (LEVEL_BASE + u32::from(token & 0x0f))).min(max_block);
    let Header { method, compressed, decompressed, .. } = header;
    if !matches!(method, STORED | COMPRESSED) {
        return Err(Lz4Error::Method(method));
    }
    // A compressor that does not store what it cannot make smaller makes it a little larger.
    for (len, max) in [(decompressed, max), (compressed, max + max / 255 + 16)] {
        if len as usize > max {
            return Err(Lz4Error::TooLong { len, max });
        }
    }
    let stored_otherwise = method == STORED && compressed != decompressed;
    if stored_otherwise || (compressed == 0) != (decompressed == 0) {
        return Err(Lz4Error::Lengths { compressed, decompressed });
    }
    Ok(Some(header))
}

/// Takes the next block off `input` and appends what it holds to `out`: at most `max_block` bytes.
///
/// # Errors
/// [`Lz4Error`], as soon as the bytes that are there show it.
pub fn next_block(input: &mut BytesMut, out: &mut BytesMut, max_block: usize) -> Result<Next, Lz4Error> {
    let Some(header) = header(input, max_block)? else { return Ok(Next::Missing(HEADER - input.len())) };
    let (compressed, decompressed) = (header.compressed as usize, header.decompressed as usize);
    let Some(block) = input.get(HEADER..HEADER + compressed) else {
        return Ok(Next::Missing(HEADER + compressed - input.len()));
    };
    if compressed == 0 {
        input.advance(HEADER);
        return Ok(Next::End);
    }
    let start = out.len();
    if header.method == STORED {
        out.put_slice(block);
    } else {
        out.resize(start + decompressed, 0);
        let room = out.get_mut(start..).unwrap_or_default();
        if !matches!(block::decompress_into(block, room), Ok(len) if len == decompressed) {
            out.truncate(start);
            return Err(Lz4Error::Corrupt);
        }
    }
    if checksum(out.get(start..).unwrap_or_default()) != header.checksum {
        out.truncate(start);
        return Err(Lz4Error::Checksum);
    }
    input.advance(HEADER + compressed);
    Ok(Next::Block)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(input: &[u8]) -> BytesMut {
        let mut out = BytesMut::new();
        Encoder::default().encode(input, &mut out);
        out
    }

    fn decode(mut input: BytesMut) -> Result<(Vec<u8>, Next), Lz4Error> {
        let mut out = BytesMut::new();
        loop {
            match next_block(&mut input, &mut out, MAX_BLOCK)? {
                Next::Block => {}
                next => return Ok((out.to_vec(), next)),
            }
        }
    }

    #[test]
    fn what_shrinks_is_compressed_and_what_does_not_is_stored() {
        let letters = encoded(&[b'A'; 1000]);
        assert_eq!((letters[8], letters.len() < 100), (0x26, true));
        let few = encoded(b"abc");
        assert_eq!((few[8], few.len()), (0x16, HEADER + 3));
        assert_eq!(decode(letters), Ok((vec![b'A'; 1000], Next::Missing(HEADER))));
        assert_eq!(decode(few), Ok((b"abc".to_vec(), Next::Missing(HEADER))));
        assert!(encoded(b"").is_empty());
    }

    #[test]
    fn long_input_becomes_several_blocks() {
        let long: Vec<u8> = (0..200_000u32).flat_map(|n| (n / 7).to_le_bytes()).collect();
        let out = encoded(&long);
        assert!(out.len() < long.len());
        assert_eq!(decode(out), Ok((long, Next::Missing(HEADER))));
    }

    #[test]
    fn the_end_is_told() {
        let mut stream = encoded(b"x");
        put_end(&mut stream);
        stream.put_slice(b"whatever");
        assert_eq!(decode(stream), Ok((b"x".to_vec(), Next::End)));
    }

    #[test]
    fn every_lie_is_found_out() {
        let good = encoded(&[b'A'; 1000]);
        let with = |at: usize, bytes: &[u8]| {
            let mut bad = good.clone();
            bad[at..at + bytes.len()].copy_from_slice(bytes);
            decode(bad)
        };
        assert_eq!(with(0, b"l"), Err(Lz4Error::Magic));
        assert_eq!(decode(BytesMut::from(&b"LX"[..])), Err(Lz4Error::Magic), "at once");
        assert_eq!(with(8, &[0x36]), Err(Lz4Error::Method(0x30)));
        assert_eq!(with(8, &[0x20]), Ok((vec![b'A'; 1000], Next::Missing(HEADER))));
        assert_eq!(with(13, &1025u32.to_le_bytes()), Err(Lz4Error::Corrupt));
        let small_blocks = with(8, &[&[0x20], &good[9..13], &1025u32.to_le_bytes()[..]].concat());
        assert_eq!(small_blocks, Err(Lz4Error::TooLong { len: 1025, max: 1024 }));
        assert_eq!(
            with(8, b"\x2f\xff\xff\xff\xff"),
            Err(Lz4Error::TooLong { len: u32::MAX, max: MAX_BLOCK + MAX_BLOCK / 255 + 16 })
        );
        assert_eq!(with(13, &[0; 4]), Err(Lz4Error::Lengths { compressed: 15, decompressed: 0 }));
        assert_eq!(with(8, &[0x16]), Err(Lz4Error::Lengths { compressed: 15, decompressed: 1000 }));
        assert_eq!(with(13, &999u32.to_le_bytes()), Err(Lz4Error::Corrupt));
        assert_eq!(with(17, b"\0"), Err(Lz4Error::Checksum));
        assert_eq!(with(22, b"B"), Err(Lz4Error::Checksum));
    }
}
