//! As much of TTwitter as a test peer needs: the upgrade, and the request header, which is written in the binary protocol.

use crate::mux::{Dispatch, Pairs};
use crate::thrift::{CALL, Cursor, Message, Protocol};
use crate::walk;
use bytes::{BufMut, Bytes, BytesMut};
use std::collections::BTreeMap;

/// The method that asks for the upgrade.
pub const UPGRADE: &str = "__can__finagle__trace__v3__";
/// Values nested deeper than this are none.
const DEEPEST: usize = 16;

/// The call that asks for the upgrade.
pub fn upgrade() -> Message {
    let name = Bytes::from_static(UPGRADE.as_bytes());
    Message { protocol: Protocol::Binary, kind: CALL, name, seqid: 0, body: Bytes::from_static(&[0]) }
}

/// A request frame: header and message. Of a compact header nothing is read.
pub fn parse(protocol: Protocol, frame: &Bytes) -> Option<Dispatch> {
    let mut at = Cursor { bytes: frame, at: 0 };
    if protocol == Protocol::Compact {
        walk::compact(&mut at, walk::STRUCT, 0)?;
        return Some(Dispatch { body: frame.slice(at.at..), ..Dispatch::default() });
    }
    let header = fields(&mut at, 0)?;
    let dest = if let Some(Value::Text(dest)) = header.get(&9) { dest.clone() } else { Bytes::new() };
    let at = at.at;
    Some(Dispatch {
        contexts: pairs(header.get(&8)),
        dest,
        dtab: pairs(header.get(&10)),
        body: frame.slice(at..),
    })
}

/// Writes a request: everything in the header's fields 8, 9 and 10; ids that a reader without contexts would take are 0.
pub fn to_bytes(dispatch: &Dispatch) -> Bytes {
    let mut out = BytesMut::new();
    for id in [1, 2] {
        out.put_slice(&[10, 0, id]);
        out.put_i64(0);
    }
    put_pairs(&mut out, 8, &dispatch.contexts);
    if !dispatch.dest.is_empty() {
        put_text(&mut out, 9, &dispatch.dest);
    }
    put_pairs(&mut out, 10, &dispatch.dtab);
    out.put_u8(0);
    out.put_slice(&dispatch.body);
    out.freeze()
}

/// The message behind a reply's header.
pub fn reply(frame: &Bytes) -> Option<Bytes> {
    let mut at = Cursor { bytes: frame, at: 0 };
    fields(&mut at, 0)?;
    let at = at.at;
    Some(frame.slice(at..))
}

fn put_text(out: &mut BytesMut, id: u8, text: &[u8]) {
    out.put_slice(&[11, 0, id]);
    out.put_u32(text.len() as u32);
    out.put_slice(text);
}

fn put_pairs(out: &mut BytesMut, id: u8, pairs: &Pairs) {
    if pairs.is_empty() {
        return;
    }
    out.put_slice(&[15, 0, id, 12]);
    out.put_u32(pairs.len() as u32);
    for (key, value) in pairs {
        put_text(out, 1, key);
        put_text(out, 2, value);
        out.put_u8(0);
    }
}

enum Value {
    Other,
    Text(Bytes),
    List(Vec<Value>),
    Struct(BTreeMap<i16, Value>),
}

fn pairs(list: Option<&Value>) -> Pairs {
    let Some(Value::List(list)) = list else { return Vec::new() };
    let pair = |value: &Value| {
        let Value::Struct(fields) = value else { return None };
        let (Some(Value::Text(key)), Some(Value::Text(value))) = (fields.get(&1), fields.get(&2)) else {
            return None;
        };
        Some((key.clone(), value.clone()))
    };
    list.iter().filter_map(pair).collect()
}

fn fields(at: &mut Cursor<'_>, depth: usize) -> Option<BTreeMap<i16, Value>> {
    let mut found = BTreeMap::new();
    loop {
        let kind = at.take(1)?[0];
        if kind == 0 {
            return Some(found);
        }
        let id = at.take(2)?;
        found.insert(i16::from_be_bytes([id[0], id[1]]), value(at, kind, depth)?);
    }
}

fn value(at: &mut Cursor<'_>, kind: u8, depth: usize) -> Option<Value> {
    (depth < DEEPEST).then_some(())?;
    let skip = |at: &mut Cursor<'_>, n| at.take(n).map(|_| Value::Other);
    match kind {
        2 | 3 => skip(at, 1),
        6 => skip(at, 2),
        8 => skip(at, 4),
        4 | 10 => skip(at, 8),
        11 => {
            let length = usize::try_from(at.i32()?).ok()?;
            at.take(length).map(Value::Text)
        }
        12 => fields(at, depth + 1).map(Value::Struct),
        14 | 15 => {
            let kind = at.take(1)?[0];
            (0..at.i32()?).map(|_| value(at, kind, depth + 1)).collect::<Option<_>>().map(Value::List)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_written_and_read() {
        let pair = |k, v| (Bytes::from_static(k), Bytes::from_static(v));
        let dispatch = Dispatch {
            contexts: vec![pair(b"k", b"v"), pair(b"", b"\xff")],
            dest: Bytes::from_static(b"/s/probe"),
            dtab: vec![pair(b"/a", b"/b")],
            body: upgrade().to_bytes(),
        };
        assert_eq!(parse(Protocol::Binary, &to_bytes(&dispatch)), Some(dispatch));
        assert_eq!(reply(&Bytes::from_static(&[2, 0, 1, 1, 0, 7])), Some(Bytes::from_static(&[7])));
    }
}
