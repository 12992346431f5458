//! The vectors, as values.

use bytes::{Bytes, BytesMut};
use muxgate_wire::mux::frame::{Frame, MAX_LEN, next_frame};
use serde_json::Value;
use std::sync::LazyLock;

static VECTORS: LazyLock<Value> = LazyLock::new(|| {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/vectors.json");
    serde_json::from_str(&std::fs::read_to_string(path).expect("vectors are there"))
        .expect("vectors are JSON")
});

/// All entries of one of the three lists.
pub fn list(name: &str) -> &'static [Value] {
    VECTORS[name].as_array().expect("list")
}

/// Text of a field, which must be there.
pub fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_else(|| panic!("no {field} in {value}"))
}

/// Name of an entry.
pub fn name(entry: &Value) -> &str {
    text(entry, "name")
}

/// Bytes of a hex text, of which half a byte and an ellipsis at the end are cut off.
pub fn unhex(text: &str) -> Vec<u8> {
    let digits = text.trim_end_matches("...").as_bytes();
    digits
        .chunks_exact(2)
        .map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).expect("hex"))
        .collect()
}

/// Bytes of a hex value, which may be `[prefix, {repeat, times}, suffix]`.
pub fn bytes(value: &Value) -> Vec<u8> {
    match value {
        Value::String(text) => unhex(text),
        Value::Array(parts) => parts.iter().flat_map(bytes).collect(),
        Value::Object(part) => {
            unhex(part["repeat"].as_str().unwrap()).repeat(part["times"].as_u64().unwrap() as usize)
        }
        other => panic!("not hex: {other}"),
    }
}

/// The bytes behind a length prefix.
pub fn framed(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u32).to_be_bytes(), message].concat()
}

/// A message given without its length prefix.
pub fn frame(message: &[u8]) -> Frame {
    let mut buf = BytesMut::from(&framed(message)[..]);
    next_frame(&mut buf, MAX_LEN).expect("legal frame").expect("whole frame")
}

/// The same, back again.
pub fn message(frame: &Frame) -> Vec<u8> {
    let field = frame.tag.get() | if frame.fragment { 0x80_0000 } else { 0 };
    let head = field | u32::from(frame.kind as u8) << 24;
    [&head.to_be_bytes()[..], &frame.body].concat()
}

/// Frames that make up `bytes`, which must be whole frames.
pub fn frames(bytes: &[u8]) -> Vec<Frame> {
    let mut buf = BytesMut::from(bytes);
    let frames = std::iter::from_fn(|| next_frame(&mut buf, MAX_LEN).expect("legal frame")).collect();
    assert!(buf.is_empty(), "half a frame was written");
    frames
}

/// All bytes of a `Buf`, taken in the slices in which they would be written.
pub fn drain(buf: &mut impl bytes::Buf) -> Vec<u8> {
    let mut out = Vec::new();
    while buf.has_remaining() {
        let mut io = [std::io::IoSlice::new(&[]); 4];
        let filled = buf.chunks_vectored(&mut io);
        let before = out.len();
        io.iter().take(filled).for_each(|slice| out.extend_from_slice(slice));
        buf.advance(out.len() - before);
    }
    out
}

/// Pieces of one message joined, as the frame it would have been without a window.
pub fn join(pieces: &[Frame]) -> Frame {
    let last = pieces.last().expect("pieces");
    let body: Vec<u8> = pieces.iter().flat_map(|piece| piece.body.iter().copied()).collect();
    Frame { body: Bytes::from(body), ..last.clone() }
}
