//! What Finagle's decoders made of odd bytes, and what its encoder made of odd values.

use crate::data::{bytes, framed, list, name, text};
use bytes::BytesMut;
use muxgate_wire::mux::context::{self, ContextWriter, Deadline, MuxFailure, TraceContext};
use muxgate_wire::mux::frame::{MAX_LEN, Tag, next_frame};
use muxgate_wire::mux::message::Message;

/// Finagle shortens or misreads these; we refuse them ("length overrunning the message: as truncated", "u16 with the top
/// bit set: as truncated").
const STRICTER: [&str; 5] = [
    "dec-rdispatch-ctx-negative-count",
    "dec-rdispatch-ctx-overrun-last",
    "dec-rdispatch-ctx-missing",
    "dec-tinit-value-overrun",
    "dec-tdispatch-dtab-dst-overrun",
];

#[test]
fn messages_that_decoders_were_given() {
    let mut seen = 0;
    for entry in list("malformed_and_edge").iter().filter(|entry| name(entry).starts_with("dec-")) {
        seen += 1;
        let name = name(entry);
        let mut buf = BytesMut::from(&framed(&bytes(&entry["hex"]))[..]);
        let decoded = match next_frame(&mut buf, MAX_LEN) {
            Err(_) => false,
            Ok(None) => panic!("{name}: not whole"),
            Ok(Some(frame)) if frame.fragment => true,
            Ok(Some(frame)) => Message::decode(frame.kind, frame.body).is_ok(),
        };
        let finagle = text(entry, "result").starts_with("decoded: ");
        assert_eq!(decoded, finagle && !STRICTER.contains(&name), "{name}");
        assert!(finagle || !STRICTER.contains(&name), "{name} is not a difference");
    }
    assert_eq!(seen, 31);
}

#[test]
fn contexts_that_decoders_were_given() {
    let mut seen = 0;
    for entry in list("malformed_and_edge").iter().filter(|entry| name(entry).starts_with("ctxdec-")) {
        seen += 1;
        let (name, value) = (name(entry), bytes(&entry["hex"]));
        let decoded = match name.split('-').nth(1) {
            Some("trace") => TraceContext::decode(&value).is_some(),
            Some("deadline") => Deadline::decode(&value).is_some(),
            Some("retries") => context::decode_retries(&value).is_some(),
            Some("muxfailure") => MuxFailure::decode(&value).is_some(),
            other => panic!("{other:?}"),
        };
        let result = text(entry, "result");
        let finagle = result.starts_with("decoded: ") && result != "decoded: None";
        // Finagle trips over an assertion; we read it, and "do not repeat" wins.
        let lenient = name == "ctxdec-muxfailure-5";
        assert_eq!(decoded, finagle || lenient, "{name}");
        if lenient {
            assert!(MuxFailure::decode(&value).is_some_and(MuxFailure::is_non_retryable));
        }
    }
    assert_eq!(seen, 18);
}

#[test]
fn values_that_the_encoder_was_given() {
    let names: Vec<_> =
        list("malformed_and_edge").iter().map(name).filter(|name| name.starts_with("enc-")).collect();
    for name in &names {
        match *name {
            // Tags of more than 23 bits cannot be made, also 8388613, of which Finagle makes a fragment.
            "enc-tag--1" => assert_eq!(Tag::new(-1i32 as u32), None),
            "enc-tag-16777216" => assert_eq!(Tag::new(16_777_216), None),
            "enc-tag-8388613" => assert_eq!(Tag::new(8_388_613), None),
            "enc-tag-0" => assert_eq!(Tag::new(0), Some(Tag::MARKER)),
            // Finagle writes what nobody can read, or drops what does not fit; we refuse.
            "enc-context-40000" => assert!(!can_write(40_000)),
            "enc-context-65537" => assert!(!can_write(65_537)),
            "enc-headers-overflow" => assert!(!can_write(32_768) && can_write(32_767)),
            other => panic!("{other} is not looked at"),
        }
    }
    assert_eq!(names.len(), 7);
}

fn can_write(len: usize) -> bool {
    let mut out = BytesMut::new();
    let mut writer = ContextWriter::new(&mut out);
    writer.put(context::REQUEST_HEADERS, &vec![0; len]);
    writer.finish().is_ok()
}
