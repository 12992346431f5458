//! Cases from the field, the part of each that concerns decoding.

use crate::value::{Val, from_bytes, to_bytes};
use crate::vectors::{case, hex, to_hex, unhex};
use bytes::BytesMut;
use muxgate_wire::thrift::framing::{DEFAULT_MAX_FRAME, next_frame};
use muxgate_wire::thrift::{Kind, MAX_MESSAGE, Protocol, Type, Walk, Why, classify, peek, write_head};

#[test]
fn bc_02_a_declared_name_length_is_checked_before_it_is_used() {
    let case = case("bc-02-declared-name-length");
    let inputs: Vec<_> =
        case["input"].as_array().unwrap().iter().filter(|step| step["hex"].is_string()).collect();
    let refused: Vec<_> = inputs
        .iter()
        .map(|step| {
            let mut buffer = BytesMut::from(&hex(&step["hex"])[..]);
            let frame = next_frame(&mut buffer, DEFAULT_MAX_FRAME).unwrap().unwrap();
            (peek(&frame).unwrap_err().why, classify(&frame).is_err())
        })
        .collect();
    assert_eq!(refused, [(Why::NotThrift(0x4e), true), (Why::NameTooLong(0x7fff_ffff), true)]);
}

/// The neighbours of BC-02: the other headers, and both sides of each limit.
#[test]
fn bc_02_neighbours() {
    for (text, why) in [
        ("800100017fffffff61", Why::NameTooLong(0x7fff_ffff)),
        ("80010001800000006100000001", Why::Negative(i32::MIN)),
        ("00ffffff61", Why::NameTooLong(0xff_ffff)),
        ("822101ffffffff0f61", Why::Negative(-1)),
        ("8221018108", Why::NameTooLong(1025)),
        ("8221018008", Why::PastEnd { wanted: 1024, left: 0 }),
        ("822101ffffffffff0161", Why::LongVarint),
    ] {
        assert_eq!(peek(&unhex(text)).unwrap_err().why, why, "{text}");
    }
    for protocol in [Protocol::Binary, Protocol::Compact] {
        let mut out = BytesMut::new();
        write_head(protocol, Kind::Call, &[b'n'; 1024], 1, &mut out);
        assert_eq!(peek(&out).unwrap().name.len(), 1024, "{protocol:?}");
        assert!(peek(&out[..1000]).is_err(), "{protocol:?}");
        let mut out = BytesMut::new();
        write_head(protocol, Kind::Call, &[b'n'; 1025], 1, &mut out);
        assert_eq!(peek(&out).unwrap_err().why, Why::NameTooLong(1025), "{protocol:?}");
    }
}

#[test]
fn bc_03_bool_lists_of_both_dialects() {
    let case = case("bc-03-compact-bool-list");
    let stream = hex(&case["input"][0]["hex"]);
    let mut rest = &stream[..];
    let mut seqids = Vec::new();
    while !rest.is_empty() {
        let (head, len) = Walk::new(MAX_MESSAGE).advance(rest).unwrap();
        assert_eq!(head.name_in(rest), b"all");
        let (arguments, read) = from_bytes(Protocol::Compact, &rest[head.body_at..len]).unwrap();
        assert_eq!(read, len - head.body_at);
        let list = Val::List(Type::Bool, [true, false, true].map(Val::Bool).to_vec());
        assert_eq!(arguments, Val::Struct(vec![(1, list)]));
        let binary = to_bytes(Protocol::Binary, &arguments);
        assert_eq!(to_hex(&binary), "0f0001020000000301000100");
        let mut message = BytesMut::new();
        write_head(Protocol::Binary, Kind::Call, b"all", head.seqid, &mut message);
        message.extend_from_slice(&binary);
        if head.seqid == 1 {
            assert_eq!(to_hex(&message), "8001000100000003616c6c000000010f0001020000000301000100");
        }
        seqids.push(head.seqid);
        rest = &rest[len..];
    }
    assert_eq!(seqids, [1, 2]);
}

#[test]
fn bc_03_neighbours() {
    // An empty list of either element type, of no type, and a set and a map of bools.
    for text in ["190100", "190200", "190000", "1a3201020000", "1b0112010200", "1b0000"] {
        let bytes = unhex(&format!("82210103616c6c{text}"));
        let (_, len) =
            Walk::new(MAX_MESSAGE).advance(&bytes).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(len, bytes.len(), "{text}");
    }
    // An empty binary list of a type that is not assigned: nothing depends on it.
    let bytes = unhex("800100010000000161000000010f0001000000000000");
    assert_eq!(Walk::new(MAX_MESSAGE).advance(&bytes).unwrap().1, bytes.len());
}
