//! Structs read without their IDL, in either protocol: what an unframed message needs for its end, and TTwitter for its
//! header.

use crate::thrift::{Cursor, Message, Protocol, unzigzag};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Values nested deeper than this are none.
const DEEPEST: usize = 16;
/// The type of a struct, in both protocols.
const STRUCT: u8 = 12;

/// The fields of a struct.
pub(crate) type Fields = BTreeMap<i16, Value>;

/// A value, as far as anybody here looks at it.
pub(crate) enum Value {
    Other,
    Text(Bytes),
    List(Vec<Value>),
    Struct(Fields),
}

/// Length of the message at the start of `bytes`; `None` while it is incomplete.
pub fn end(bytes: &Bytes) -> Option<usize> {
    let message = Message::parse(bytes)?;
    let start = bytes.len() - message.body.len();
    let mut at = Cursor { bytes: &message.body, at: 0 };
    fields(message.protocol, &mut at)?;
    Some(start + at.at)
}

/// Reads a struct.
pub(crate) fn fields(protocol: Protocol, at: &mut Cursor<'_>) -> Option<Fields> {
    let value = match protocol {
        Protocol::Binary | Protocol::Old => binary(at, STRUCT, 0)?,
        Protocol::Compact => compact(at, STRUCT, 0)?,
    };
    if let Value::Struct(fields) = value { Some(fields) } else { None }
}

fn other(at: &mut Cursor<'_>, size: usize) -> Option<Value> {
    at.take(size).map(|_| Value::Other)
}

fn count(at: &mut Cursor<'_>) -> Option<usize> {
    usize::try_from(at.i32()?).ok()
}

fn binary(at: &mut Cursor<'_>, kind: u8, depth: usize) -> Option<Value> {
    (depth < DEEPEST).then_some(())?;
    match kind {
        2 | 3 => other(at, 1),
        6 => other(at, 2),
        8 => other(at, 4),
        4 | 10 => other(at, 8),
        11 => {
            let length = count(at)?;
            at.take(length).map(Value::Text)
        }
        12 => {
            let mut fields = Fields::new();
            loop {
                let field = at.take(1)?[0];
                if field == 0 {
                    return Some(Value::Struct(fields));
                }
                let id = at.take(2)?;
                fields.insert(i16::from_be_bytes([id[0], id[1]]), binary(at, field, depth + 1)?);
            }
        }
        13 => {
            let kinds = at.take(2)?;
            for _ in 0..count(at)? {
                binary(at, kinds[0], depth + 1)?;
                binary(at, kinds[1], depth + 1)?;
            }
            Some(Value::Other)
        }
        14 | 15 => {
            let kind = at.take(1)?[0];
            (0..count(at)?).map(|_| binary(at, kind, depth + 1)).collect::<Option<_>>().map(Value::List)
        }
        _ => None,
    }
}

/// A value that stands for itself: booleans are bytes, as elements of containers are.
fn compact(at: &mut Cursor<'_>, kind: u8, depth: usize) -> Option<Value> {
    (depth < DEEPEST).then_some(())?;
    match kind {
        1..=3 => other(at, 1),
        4..=6 => at.varint_long().map(|_| Value::Other),
        7 => other(at, 8),
        8 => {
            let length = at.varint()? as usize;
            at.take(length).map(Value::Text)
        }
        9 | 10 => {
            let head = at.take(1)?[0];
            let many = if head >> 4 == 15 { at.varint()? } else { u32::from(head >> 4) };
            (0..many).map(|_| compact(at, head & 0xf, depth + 1)).collect::<Option<_>>().map(Value::List)
        }
        11 => {
            let many = at.varint()?;
            let kinds = if many == 0 { 0 } else { at.take(1)?[0] };
            for _ in 0..many {
                compact(at, kinds >> 4, depth + 1)?;
                compact(at, kinds & 0xf, depth + 1)?;
            }
            Some(Value::Other)
        }
        12 => compact_fields(at, depth).map(Value::Struct),
        _ => None,
    }
}

fn compact_fields(at: &mut Cursor<'_>, depth: usize) -> Option<Fields> {
    let (mut fields, mut id) = (Fields::new(), 0i16);
    loop {
        let head = at.take(1)?[0];
        if head == 0 {
            return Some(fields);
        }
        id = match head >> 4 {
            0 => i16::try_from(unzigzag(at.varint()?)).ok()?,
            delta => id.checked_add(i16::from(delta))?,
        };
        // A boolean field is its own type.
        let value = if head & 0xf > 2 { compact(at, head & 0xf, depth + 1)? } else { Value::Other };
        fields.insert(id, value);
    }
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
