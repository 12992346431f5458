//! As much of TTwitter as a test peer needs: the upgrade, and the request header, which is written in the binary protocol.

use crate::mux::{Dispatch, Pairs};
use crate::thrift::{CALL, Cursor, Message, Protocol};
use crate::walk::{self, Value};
use bytes::{BufMut, Bytes, BytesMut};

/// The method that asks for the upgrade.
pub const UPGRADE: &str = "__can__finagle__trace__v3__";

/// The call that asks for the upgrade.
pub fn upgrade() -> Message {
    let name = Bytes::from_static(UPGRADE.as_bytes());
    Message { protocol: Protocol::Binary, kind: CALL, name, seqid: 0, body: Bytes::from_static(&[0]) }
}

/// A request frame: header and message.
pub fn parse(protocol: Protocol, frame: &Bytes) -> Option<Dispatch> {
    let mut at = Cursor { bytes: frame, at: 0 };
    let header = walk::fields(protocol, &mut at)?;
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
    walk::fields(Protocol::Binary, &mut at)?;
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
