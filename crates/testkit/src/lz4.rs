//! The stream of `LZ4Block`s that compressed Mux sessions are, written from the format's text. What is written here is
//! valid and not smaller: tests want both kinds of block, not a ratio.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// How a block begins.
const MAGIC: &[u8] = b"LZ4Block";
/// Magic, token, two lengths, checksum.
const HEAD: usize = 21;
/// The token's low half: blocks of at most 64 KiB.
const LEVEL: u8 = 6;
/// The most that one block holds.
const BLOCK: usize = 64 << 10;
/// Shorter ones are stored as they are.
const WORTH_IT: usize = 64;
/// Seed of the checksums.
const SEED: u32 = 0x9747_b28c;

/// `bytes` as blocks: short ones stored, others as literals of an LZ4 block.
pub fn compress(bytes: &[u8]) -> Bytes {
    let mut out = BytesMut::new();
    for chunk in bytes.chunks(BLOCK) {
        let packed = if chunk.len() < WORTH_IT { chunk.to_vec() } else { literals(chunk) };
        out.put_slice(MAGIC);
        out.put_u8(LEVEL | if chunk.len() < WORTH_IT { 0x10 } else { 0x20 });
        out.put_u32_le(packed.len() as u32);
        out.put_u32_le(chunk.len() as u32);
        out.put_u32_le(xxhash32(chunk) & 0x0fff_ffff);
        out.put_slice(&packed);
    }
    out.freeze()
}

/// An LZ4 block of one sequence, which has no match.
fn literals(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0xf0];
    let mut rest = bytes.len() - 15;
    while rest >= 255 {
        out.push(255);
        rest -= 255;
    }
    out.push(rest as u8);
    out.extend_from_slice(bytes);
    out
}

/// Moves what whole blocks in `packed` hold to `plain`; `None` if something is no block.
pub fn decompress(packed: &mut BytesMut, plain: &mut BytesMut) -> Option<()> {
    loop {
        let Some(mut head) = packed.get(..HEAD) else { return Some(()) };
        head.starts_with(MAGIC).then(|| head.advance(MAGIC.len()))?;
        let (token, length) = (head.get_u8(), head.get_u32_le() as usize);
        let (size, sum) = (head.get_u32_le() as usize, head.get_u32_le());
        if packed.len() < HEAD + length {
            return Some(());
        }
        packed.advance(HEAD);
        let block = packed.split_to(length);
        let bytes = match token >> 4 {
            1 => block.to_vec(),
            2 => unpack(&block)?,
            _ => return None,
        };
        (bytes.len() == size && (size == 0 || xxhash32(&bytes) & 0x0fff_ffff == sum)).then_some(())?;
        plain.put_slice(&bytes);
    }
}

fn unpack(mut block: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    while block.has_remaining() {
        let token = block.get_u8();
        let literals = length(token >> 4, &mut block)?;
        out.extend_from_slice(block.get(..literals)?);
        block.advance(literals);
        if !block.has_remaining() {
            return Some(out);
        }
        let offset = usize::from(block.try_get_u16_le().ok()?);
        let from = out.len().checked_sub(offset).filter(|from| *from < out.len())?;
        for at in from..from + 4 + length(token & 0xf, &mut block)? {
            out.push(out[at]);
        }
    }
    None
}

fn length(half: u8, block: &mut &[u8]) -> Option<usize> {
    let mut sum = usize::from(half);
    let mut more = half == 15;
    while more {
        let byte = block.try_get_u8().ok()?;
        sum += usize::from(byte);
        more = byte == 255;
    }
    Some(sum)
}

const PRIMES: [u32; 5] = [2_654_435_761, 2_246_822_519, 3_266_489_917, 668_265_263, 374_761_393];

/// xxHash32 with the seed of this format.
pub fn xxhash32(bytes: &[u8]) -> u32 {
    let [one, two, three, four, five] = PRIMES;
    let mut rest = bytes;
    let mut hash = if bytes.len() < 16 {
        SEED.wrapping_add(five)
    } else {
        let start = [one.wrapping_add(two), two, 0, one.wrapping_neg()];
        let mut lanes = start.map(|add| SEED.wrapping_add(add));
        while rest.len() >= 16 {
            for lane in &mut lanes {
                let mixed = lane.wrapping_add(rest.get_u32_le().wrapping_mul(two));
                *lane = mixed.rotate_left(13).wrapping_mul(one);
            }
        }
        let turned = [1, 7, 12, 18].into_iter().zip(lanes).map(|(by, lane)| lane.rotate_left(by));
        turned.fold(0, u32::wrapping_add)
    };
    hash = hash.wrapping_add(bytes.len() as u32);
    while rest.len() >= 4 {
        hash = hash.wrapping_add(rest.get_u32_le().wrapping_mul(three)).rotate_left(17).wrapping_mul(four);
    }
    for byte in rest {
        hash = hash.wrapping_add(u32::from(*byte).wrapping_mul(five)).rotate_left(11).wrapping_mul(one);
    }
    hash = (hash ^ hash >> 15).wrapping_mul(two);
    hash = (hash ^ hash >> 13).wrapping_mul(three);
    hash ^ hash >> 16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hex;

    #[test]
    fn the_vectors_are_read() {
        // live-lz4-block-from-client and live-lz4-block-from-server.
        let client = "4c5a34426c6f636b265d00000082000000d88cbb06fc2f0000007e0200000200020028636f6d2e747769747465722e\
                      66696e61676c652e74726163696e672e5472616365436f6e746578740020a86c9c0947dea2e00800140001001f1b4c0001\
                      9452657472696573000426005068656c6c6f";
        let server = "4c5a34426c6f636b2616000000d30000005094c80fcf000000cffe000002000000410100af504141414141";
        for (text, size) in [(client, 130), (server, 211)] {
            let mut plain = BytesMut::new();
            decompress(&mut BytesMut::from(&hex::decode(text)[..]), &mut plain).expect("blocks");
            assert_eq!(plain.len(), size);
            assert_eq!(plain[..4], (size as u32 - 4).to_be_bytes());
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for size in [0, 1, 63, 64, 300, 65_536, 200_000] {
            let bytes: Vec<u8> = (0..size).map(|n| n as u8).collect();
            let mut packed = BytesMut::from(&compress(&bytes)[..]);
            let mut plain = BytesMut::new();
            decompress(&mut packed, &mut plain).expect("blocks");
            assert_eq!((&plain[..], packed.len()), (&bytes[..], 0));
        }
    }
}
