//! Where an unframed message ends, which only a walk through its struct tells.

use crate::thrift::{Cursor, Message, Protocol};
use bytes::Bytes;

/// Values nested deeper than this are none.
const DEEPEST: usize = 16;
/// The type of a struct, in both protocols.
pub(crate) const STRUCT: u8 = 12;

/// Length of the message at the start of `bytes`; `None` while it is incomplete.
pub fn end(bytes: &Bytes) -> Option<usize> {
    let message = Message::parse(bytes)?;
    let start = bytes.len() - message.body.len();
    let mut at = Cursor { bytes: &message.body, at: 0 };
    match message.protocol {
        Protocol::Binary | Protocol::Old => binary(&mut at, STRUCT, 0)?,
        Protocol::Compact => compact(&mut at, STRUCT, 0)?,
    }
    Some(start + at.at)
}

fn count(at: &mut Cursor<'_>) -> Option<usize> {
    usize::try_from(at.i32()?).ok()
}

fn binary(at: &mut Cursor<'_>, kind: u8, depth: usize) -> Option<()> {
    (depth < DEEPEST).then_some(())?;
    let size = match kind {
        2 | 3 => 1,
        6 => 2,
        8 => 4,
        4 | 10 => 8,
        11 => count(at)?,
        12 => loop {
            match at.take(1)?[0] {
                0 => return Some(()),
                field => {
                    at.take(2)?;
                    binary(at, field, depth + 1)?;
                }
            }
        },
        13 => {
            let kinds = at.take(2)?;
            for _ in 0..count(at)? {
                binary(at, kinds[0], depth + 1)?;
                binary(at, kinds[1], depth + 1)?;
            }
            0
        }
        14 | 15 => {
            let kind = at.take(1)?[0];
            for _ in 0..count(at)? {
                binary(at, kind, depth + 1)?;
            }
            0
        }
        _ => return None,
    };
    at.take(size).map(drop)
}

/// A value that stands for itself: booleans are bytes, as elements of containers are.
pub(crate) fn compact(at: &mut Cursor<'_>, kind: u8, depth: usize) -> Option<()> {
    (depth < DEEPEST).then_some(())?;
    let size = match kind {
        1..=3 => 1,
        4..=6 => {
            at.varint_long()?;
            0
        }
        7 => 8,
        8 => at.varint()? as usize,
        9 | 10 => {
            let head = at.take(1)?[0];
            let many = if head >> 4 == 15 { at.varint()? } else { u32::from(head >> 4) };
            for _ in 0..many {
                compact(at, head & 0xf, depth + 1)?;
            }
            0
        }
        11 => {
            let many = at.varint()?;
            let kinds = if many == 0 { 0 } else { at.take(1)?[0] };
            for _ in 0..many {
                compact(at, kinds >> 4, depth + 1)?;
                compact(at, kinds & 0xf, depth + 1)?;
            }
            0
        }
        12 => loop {
            let head = at.take(1)?[0];
            if head == 0 {
                return Some(());
            }
            if head >> 4 == 0 {
                at.varint()?;
            }
            // A boolean field is its own type.
            if head & 0xf > 2 {
                compact(at, head & 0xf, depth + 1)?;
            }
        },
        _ => return None,
    };
    at.take(size).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hex;

    #[test]
    fn the_end_is_found_once_it_is_there() {
        for text in [
            // The call of `live-thrift-buffered-call`, and all([true, true]) in compact.
            "80010001000000046563686f000000070b00010000000568656c6c6f00",
            "82210103616c6c1921010100",
        ] {
            let bytes = Bytes::from(hex::decode(text));
            for shorter in 0..bytes.len() {
                assert_eq!(end(&bytes.slice(..shorter)), None, "{text} {shorter}");
            }
            let more = Bytes::from([&bytes[..], &[0x80, 1]].concat());
            assert_eq!(end(&more), Some(bytes.len()));
        }
        for protocol in [Protocol::Binary, Protocol::Old, Protocol::Compact] {
            let call = Message::call(protocol, "echo", 7, "text");
            for message in [call.exception(6, "no"), call.declared_exception("why"), call] {
                let bytes = message.to_bytes();
                assert_eq!(end(&bytes), Some(bytes.len()), "{message:?}");
            }
        }
    }
}
