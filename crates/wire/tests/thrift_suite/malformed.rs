//! Broken and odd messages: what libthrift 0.10.0 did is recorded, what we do is section 16 of the spec.

use crate::value::{Val, from_bytes, to_bytes};
use crate::vectors::{bytes_of, name, named, unhex};
use muxgate_wire::thrift::skip::skip_struct;
use muxgate_wire::thrift::{Cursor, MAX_DEPTH, MAX_MESSAGE, Protocol, Type, Walk, Why, peek};
use serde_json::Value;

/// Reads a message to its end: how many bytes are left, or why not.
fn outcome(bytes: &[u8]) -> String {
    let head = match peek(bytes) {
        Ok(head) => head,
        Err(error) => return format!("head: {}", error.why),
    };
    let mut cursor = Cursor::whole(bytes);
    cursor.seek(head.body_at);
    match skip_struct(head.protocol, &mut cursor) {
        Ok(()) => format!("{} left", bytes.len() - cursor.at()),
        Err(error) => format!("body: {}", error.why),
    }
}

/// The same in libthrift's words, as far as they can be compared.
fn libthrift(vector: &Value) -> Option<String> {
    let result = vector["result"].as_str().unwrap();
    let (_, left) = result.split_once("body skipped, ")?;
    Some(left.replace(" bytes left", " left"))
}

/// Name, our outcome. Both refuse, or both accept and leave as many bytes.
const AS_LIBTHRIFT: &[(&str, &str)] = &[
    ("th-bin-bad-version", "head: unknown version 0x80020001"),
    ("th-bin-type-unused-byte", "0 left"),
    ("th-bin-name-negative", "head: negative size -1"),
    ("th-bin-name-overrun", "head: 16 bytes are needed and 1 are left"),
    ("th-bin-name-empty", "0 left"),
    ("th-bin-no-body", "body: 1 bytes are needed and 0 are left"),
    ("th-bin-body-truncated", "body: 2 bytes are needed and 1 are left"),
    ("th-bin-string-negative", "body: negative size -1"),
    ("th-bin-string-huge", "body: 268435456 bytes are needed and 1 are left"),
    ("th-bin-list-negative", "body: negative size -1"),
    ("th-bin-list-huge-empty-elems", "body: 268435456 elements (at most 0)"),
    ("th-bin-list-over-limit", "body: 1001 elements (at most 0)"),
    ("th-bin-bool-7", "0 left"),
    ("th-bin-dup-field", "0 left"),
    ("th-bin-trailing", "2 left"),
    ("th-bin-deep", "body: nested deeper than 64 levels"),
    ("th-bin-deep-60", "0 left"),
    ("th-cmp-bad-proto", "head: a message cannot begin with byte 0x83"),
    ("th-cmp-bad-version", "head: unknown version 0x2"),
    ("th-cmp-name-huge", "head: method name of 2147483647 bytes (at most 1024)"),
    ("th-cmp-name-negative", "head: negative size -1"),
    ("th-cmp-unknown-type", "body: unknown field type 14"),
    ("th-cmp-list-size-negative", "body: negative size -1"),
    ("th-cmp-bool-list", "0 left"),
    ("th-cmp-map-empty-then-stop", "0 left"),
    ("th-cmp-trailing", "1 left"),
];

/// Name, our outcome, and what makes it another than libthrift's.
const NOT_AS_LIBTHRIFT: &[(&str, &str, &str)] = &[
    ("th-bin-type-0", "head: unknown message type 0", "message types that are not assigned are refused"),
    ("th-bin-type-9", "head: unknown message type 9", "message types that are not assigned are refused"),
    ("th-cmp-type-0", "head: unknown message type 0", "message types that are not assigned are refused"),
    ("th-cmp-type-7", "head: unknown message type 7", "message types that are not assigned are refused"),
    ("th-bin-unknown-field-type", "body: unknown field type 5", "libthrift reads on misaligned, we refuse"),
    ("th-bin-void-field-type", "body: unknown field type 1", "void is never valid on the wire"),
    ("th-cmp-seqid-6-bytes", "head: varint too long", "a 32-bit varint has at most 5 bytes"),
    ("th-bin-nonstrict-on-strict", "0 left", "our reader takes both forms, that one was set to strict"),
    (
        "th-bin-string-over-limit",
        "0 left",
        "a string may have what is left in the frame, that reader had a limit",
    ),
    ("th-bin-uuid-field-type", "0 left", "uuid is newer than that libthrift; we step over it"),
    ("th-cmp-uuid-type", "0 left", "uuid is newer than that libthrift; we step over it"),
];

#[test]
fn every_vector_has_one_expected_outcome() {
    let vectors = named("malformed_and_edge", &["th-"]);
    for vector in &vectors {
        let (name, ours) = (name(vector), outcome(&bytes_of(vector)));
        let theirs = libthrift(vector);
        let accepted = ours.ends_with(" left") && !ours.starts_with("body") && !ours.starts_with("head");
        if let Some((_, expected)) = AS_LIBTHRIFT.iter().find(|(listed, _)| *listed == name) {
            assert_eq!(ours, *expected, "{name}");
            assert_eq!(accepted.then_some(ours), theirs, "{name}");
        } else {
            let listed = NOT_AS_LIBTHRIFT.iter().find(|(listed, ..)| *listed == name);
            let (_, expected, why) = listed.unwrap_or_else(|| panic!("{name}: {ours}"));
            assert_eq!(ours, *expected, "{name}: {why}");
            assert_ne!(accepted.then_some(ours), theirs, "{name} is like libthrift, but listed: {why}");
        }
    }
    assert_eq!(vectors.len(), 37);
    assert_eq!(vectors.len(), AS_LIBTHRIFT.len() + NOT_AS_LIBTHRIFT.len());
}

#[test]
fn truncation_of_a_frame_is_an_error_and_of_a_stream_is_incomplete() {
    for vector in
        named("malformed_and_edge", &["th-"]).iter().filter(|vector| outcome(&bytes_of(vector)) == "0 left")
    {
        let bytes = bytes_of(vector);
        for end in 0..bytes.len() {
            assert_ne!(outcome(&bytes[..end]), "0 left", "{} cut at {end}", name(vector));
            let error = Walk::new(MAX_MESSAGE).advance(&bytes[..end]).unwrap_err();
            assert!(error.is_incomplete(), "{} cut at {end}: {error}", name(vector));
        }
    }
}

#[test]
fn an_unframed_message_is_bounded_by_its_limit() {
    // The same claim, once possible within the limit and once not.
    let bytes = unhex("800100010000000161000000010b0001000003e9");
    assert_eq!(
        Walk::new(2000).advance(&bytes).unwrap_err().why,
        Why::Incomplete { more: 1001 },
        "the string may still come"
    );
    let error = Walk::new(1000).advance(&bytes).unwrap_err();
    assert_eq!(error.why, Why::PastEnd { wanted: 1001, left: 980 });
    assert_eq!(error.at, 20);
    assert_eq!(
        error.to_string(),
        "not a valid Thrift message: 1001 bytes are needed and 980 are left at byte 20"
    );
}

/// A struct in which containers are nested so deep, written in one protocol.
fn nested(protocol: Protocol, depth: usize) -> Vec<u8> {
    let (open, inner) = match protocol {
        Protocol::Binary => ("0f0001", "0f00000001"),
        Protocol::Compact => ("19", "19"),
    };
    // A struct, then `depth - 1` lists of one list each, the last one empty.
    let mut text = String::from(open);
    text.push_str(&inner.repeat(depth - 2));
    text.push_str(if protocol == Protocol::Binary { "0300000000" } else { "03" });
    text.push_str("00");
    unhex(&text)
}

#[test]
fn sixty_four_levels_are_read_and_sixty_five_are_not() {
    for protocol in [Protocol::Binary, Protocol::Compact] {
        let fits = nested(protocol, MAX_DEPTH);
        let mut cursor = Cursor::whole(&fits);
        assert_eq!(skip_struct(protocol, &mut cursor), Ok(()), "{protocol:?}");
        assert_eq!(cursor.at(), fits.len(), "{protocol:?}");
        let deeper = nested(protocol, MAX_DEPTH + 1);
        let error = skip_struct(protocol, &mut Cursor::whole(&deeper)).unwrap_err();
        assert_eq!(error.why, Why::TooDeep { most: MAX_DEPTH }, "{protocol:?}");
    }
}

#[test]
fn a_count_is_bounded_by_the_bytes_that_are_left() {
    for (protocol, text) in [
        // list<i64> of 2 with 15 bytes, map<i32, string> of 2 with 15 bytes, set<map> of 3 with 17 bytes
        (Protocol::Binary, "0f00010a00000002000000000000000000000000000000"),
        (Protocol::Binary, "0d0001080b00000002000000000000000000000000000000"),
        (Protocol::Binary, "0e00010d000000030000000000000000000000000000000000"),
        // list<double> of 2 with 15 bytes, map<bool, i32> of 3 with 5 bytes
        (Protocol::Compact, "1927000000000000000000000000000000"),
        (Protocol::Compact, "1b03150000000000"),
    ] {
        let error = skip_struct(protocol, &mut Cursor::whole(&unhex(text))).unwrap_err();
        assert!(matches!(error.why, Why::TooMany { .. }), "{text}: {error}");
    }
}

#[test]
fn integers_keep_their_range() {
    for (text, why) in [
        // Field id 32768 in the long form, then an id that grows beyond 32767 by a difference.
        ("0380800400", Why::OutOfRange(32768)),
        ("03feff030013", Why::OutOfRange(32768)),
        // i32 of six bytes is one of 64 bits that does not fit; i64 of eleven bytes.
        ("15ffffffffff0100", Why::OutOfRange(-34_359_738_368)),
        ("16ffffffffffffffffffff0100", Why::LongVarint),
    ] {
        let error = skip_struct(Protocol::Compact, &mut Cursor::whole(&unhex(text))).unwrap_err();
        assert_eq!(error.why, why, "{text}");
    }
}

#[test]
fn both_forms_of_a_field_id_are_read() {
    let expected = Val::Struct(vec![(15, Val::Bool(false)), (16, Val::I8(7))]);
    for text in ["f2130700", "021e130700", "021e03200700"] {
        assert_eq!(
            from_bytes(Protocol::Compact, &unhex(text)),
            Ok((expected.clone(), text.len() / 2)),
            "{text}"
        );
    }
    assert_eq!(to_bytes(Protocol::Compact, &expected), unhex("f2130700"));
}

#[test]
fn uuids_are_sixteen_bytes_in_both() {
    let uuid = Val::Uuid(0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f);
    let expected = Val::Struct(vec![(1, uuid.clone()), (2, Val::List(Type::Uuid, vec![uuid.clone(), uuid]))]);
    for protocol in [Protocol::Binary, Protocol::Compact] {
        let bytes = to_bytes(protocol, &expected);
        assert_eq!(from_bytes(protocol, &bytes), Ok((expected.clone(), bytes.len())));
        let mut cursor = Cursor::whole(&bytes);
        assert_eq!((skip_struct(protocol, &mut cursor), cursor.at()), (Ok(()), bytes.len()));
    }
}

#[test]
fn errors_say_where() {
    for (text, at) in [
        ("6a756e6b", 0),
        ("8002000100000001610000000100", 0),
        ("80010009000000016100000001", 3),
        ("0000000161090000000100", 5),
        ("8261ffffffffff", 2),
        ("80010001ffffffff61", 8),
    ] {
        assert_eq!(peek(&unhex(text)).unwrap_err().at, at, "{text}");
    }
    assert_eq!(peek(b"").unwrap_err().why, Why::PastEnd { wanted: 1, left: 0 });
}
