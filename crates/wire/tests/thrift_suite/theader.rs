//! THeader frames: as Apache's library writes and reads them, what it refuses and what we refuse beside, and bombs.

use crate::vectors::{hex, name, named, one, to_hex, unhex};
use bytes::{Bytes, BytesMut};
use muxgate_wire::thrift::framing::DEFAULT_MAX_FRAME;
use muxgate_wire::thrift::theader::{Header, MAX_HEADER_BYTES, MAX_INFO, MAX_INFO_BYTES, decode, encode};
use muxgate_wire::thrift::{Protocol, ThriftError, Why, peek};
use proptest::prelude::*;

/// The content of a vector's frame; its length is checked.
fn content(vector: &serde_json::Value) -> Bytes {
    let bytes = hex(&vector["hex"]);
    assert_eq!(
        bytes.len() - 4,
        u32::from_be_bytes(bytes[..4].try_into().unwrap()) as usize,
        "{}",
        name(vector)
    );
    Bytes::from(bytes).slice(4..)
}

fn frame(text: &str) -> Result<(Header, Bytes), ThriftError> {
    decode(unhex(text).into(), DEFAULT_MAX_FRAME)
}

fn whole((head, payload): (BytesMut, Bytes)) -> Bytes {
    [&head[..], &payload[..]].concat().into()
}

fn plain(info: Vec<(Bytes, Bytes)>) -> Header {
    Header { flags: 0, seqid: 7, protocol: Protocol::Binary, zlib: false, info }
}

#[test]
fn frames_of_apache_are_read_and_written_the_same() {
    let vectors = named("golden", &["theader-"]);
    for vector in &vectors {
        let (name, frame, fields) = (name(vector), content(vector), &vector["fields"]);
        let (header, message) = decode(frame.clone(), DEFAULT_MAX_FRAME).unwrap();
        assert_eq!(u64::from(header.flags), fields["flags"].as_u64().unwrap(), "{name}");
        assert_eq!(i64::from(header.seqid), fields["seqid"].as_i64().unwrap(), "{name}");
        let id = if fields["protocol_id"] == 0 { Protocol::Binary } else { Protocol::Compact };
        assert_eq!(header.protocol, id, "{name}");
        assert_eq!(header.zlib, fields["transforms"].as_array().unwrap().len() == 1, "{name}");
        let text = |value: &serde_json::Value| Bytes::copy_from_slice(value.as_str().unwrap().as_bytes());
        let info: Vec<_> = fields["headers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|pair| (text(&pair[0]), text(&pair[1])))
            .collect();
        assert_eq!(header.info, info, "{name}");
        let head = peek(&message).unwrap();
        assert_eq!(head.name_in(&message), fields["method"].as_str().unwrap().as_bytes(), "{name}");
        assert_eq!((head.protocol, head.seqid), (header.protocol, header.seqid), "{name}");
        assert_eq!(u64::from(head.kind.code()), fields["type"].as_u64().unwrap(), "{name}");

        let (ours, payload) = encode(&header, message.clone()).unwrap();
        assert_eq!(to_hex(&ours), to_hex(&frame[..ours.len()]), "{name}");
        if header.zlib {
            // How tightly a stream is packed is the writer's choice.
            assert_eq!(decode(whole((ours, payload)), DEFAULT_MAX_FRAME), Ok((header, message)), "{name}");
        } else {
            assert_eq!(to_hex(&payload), to_hex(&frame[ours.len()..]), "{name}");
        }
    }
    assert_eq!(vectors.len(), 5);
}

#[test]
fn what_apache_refuses_is_refused() {
    let mut seen = 0;
    for vector in named("malformed_and_edge", &["theader-"]) {
        // The others are about detection or the length in front, which are not of this codec.
        let (why, at) = match name(vector) {
            "theader-header-larger-than-frame" => (Why::PastEnd { wanted: 1024, left: 4 }, 10),
            "theader-unknown-transform" => (Why::UnknownTransform(9), 12),
            "theader-frame-too-small" => (Why::PastEnd { wanted: 2, left: 0 }, 8),
            _ => continue,
        };
        assert_eq!(decode(content(vector), DEFAULT_MAX_FRAME), Err(error(at, why)), "{}", name(vector));
        seen += 1;
    }
    assert_eq!(seen, 3);
}

fn error(at: usize, why: Why) -> ThriftError {
    ThriftError { at, why }
}

#[test]
fn an_unknown_info_id_ends_the_section() {
    let frame = content(one("malformed_and_edge", "theader-unknown-info"));
    assert_eq!(decode(frame, DEFAULT_MAX_FRAME), Ok((plain(vec![]), Bytes::new())));
    // One pair, then id 5 and what would be a pair that does not fit.
    let (header, message) = frame_of("0003", "0000 0101016b0176 05 01ff00").unwrap();
    assert_eq!(header.info, [(Bytes::from_static(b"k"), Bytes::from_static(b"v"))]);
    assert_eq!(&message[..], b"rest");
    // Padding ends it too.
    assert_eq!(frame_of("0002", "0000 00 0101016b01").unwrap().0.info, []);
    // Several blocks are one list, in order, with what comes twice.
    let (header, _) = frame_of("0004", "0000 0101016b0176 0101016b0177 0000").unwrap();
    assert_eq!(header.info.len(), 2);
    assert_eq!(header.info[1], (Bytes::from_static(b"k"), Bytes::from_static(b"w")));
}

/// A frame with a size and a header section, and `rest` behind.
fn frame_of(size: &str, section: &str) -> Result<(Header, Bytes), ThriftError> {
    frame(&format!("0fff000000000007{size}{}72657374", section.replace(' ', "")))
}

#[test]
fn errors_say_where() {
    for (size, section, at, why) in [
        ("0001", "01000000", 10, Why::UnknownProtocol(1)),
        ("0001", "03000000", 10, Why::UnknownProtocol(3)),
        ("0002", "ffffffff7f000000", 10, Why::LongVarint),
        ("0001", "00010200", 12, Why::UnknownTransform(2)),
        ("0001", "00010300", 12, Why::UnknownTransform(3)),
        ("0001", "00020101", 11, Why::TooMany { count: 2, most: 1 }),
        ("0001", "00020103", 11, Why::TooMany { count: 2, most: 1 }),
        ("0001", "00000105", 13, Why::TooMany { count: 5, most: 0 }),
        ("0002", "0000 01 01 05 616263", 15, Why::PastEnd { wanted: 5, left: 3 }),
        ("0002", "0000 01 01 01 61 0272", 17, Why::PastEnd { wanted: 2, left: 1 }),
        ("0000", "", 10, Why::PastEnd { wanted: 1, left: 0 }),
        ("0002", "0001 01 0000000000", 20, Why::BadZlib),
        ("4000", "", 8, Why::HeaderTooLong { len: 65536, most: MAX_HEADER_BYTES }),
        ("ffff", "", 8, Why::HeaderTooLong { len: 262_140, most: MAX_HEADER_BYTES }),
    ] {
        let error = frame_of(size, section).unwrap_err();
        assert_eq!((error.at, error.why), (at, why), "{size} {section}");
    }
    assert_eq!(frame("0ffe00000000000700010000000080").unwrap_err(), error(0, Why::NotTHeader(0x0ffe)));
    let text = frame_of("0001", "01000000").unwrap_err().to_string();
    assert_eq!(text, "not a valid Thrift message: unknown protocol 1 at byte 10");
}

#[test]
fn info_is_bounded_both_ways() {
    let pair = |len: usize| (Bytes::from_static(b"k"), Bytes::from(vec![b'v'; len]));
    let most = plain(vec![pair(1); MAX_INFO]);
    let frame = whole(encode(&most, Bytes::new()).unwrap());
    assert_eq!(decode(frame.clone(), 0), Ok((most, Bytes::new())));
    let count = MAX_INFO + 1;
    let why = Why::TooMany { count, most: MAX_INFO };
    assert_eq!(encode(&plain(vec![pair(1); count]), Bytes::new()).unwrap_err().why, why);
    // The same pairs again in a second block: the count is that of all blocks.
    let mut twice = frame.to_vec();
    let end = twice.iter().rposition(|byte| *byte == b'v').unwrap() + 1;
    twice.truncate(end);
    twice.extend_from_slice(&[1, 1, 1, b'k', 1, b'v', 0, 0, 0, 0]);
    let words = (twice.len() - 10) / 4;
    twice.truncate(10 + words * 4);
    twice[8..10].copy_from_slice(&(words as u16).to_be_bytes());
    assert_eq!(decode(twice.into(), 0).unwrap_err().why, Why::TooMany { count: 1, most: 0 });

    let most = plain(vec![pair(MAX_INFO_BYTES - 1)]);
    let frame = whole(encode(&most, Bytes::new()).unwrap());
    assert_eq!(decode(frame, 0), Ok((most, Bytes::new())));
    let why = Why::TooLong { len: MAX_INFO_BYTES + 1, most: MAX_INFO_BYTES };
    assert_eq!(encode(&plain(vec![pair(MAX_INFO_BYTES)]), Bytes::new()).unwrap_err().why, why);
}

#[test]
fn a_message_may_be_as_long_as_the_limit() {
    for zlib in [false, true] {
        for len in [0, 1, 255, 256, 257, 4096, 100_000] {
            let message = Bytes::from(vec![b'm'; len]);
            let header = Header { zlib, ..plain(vec![]) };
            let frame = whole(encode(&header, message.clone()).unwrap());
            assert_eq!(decode(frame.clone(), len), Ok((header, message)), "{zlib} {len}");
            if len > 0 {
                assert_eq!(decode(frame, len - 1).unwrap_err().why, Why::OverLimit { most: len - 1 });
            }
        }
    }
}

#[test]
fn a_bomb_goes_off_within_the_limit() {
    let header = Header { zlib: true, ..plain(vec![]) };
    let bomb = whole(encode(&header, vec![0; 64 << 20].into()).unwrap());
    assert!(bomb.len() < 512 << 10, "{}", bomb.len());
    let error = decode(bomb, 1 << 20).unwrap_err();
    assert_eq!(error.why, Why::OverLimit { most: 1 << 20 });
    assert!(error.at < 64 << 10, "not read to its end: {error}");
}

#[test]
fn a_stream_is_one_and_whole() {
    let header = Header { zlib: true, ..plain(vec![]) };
    let frame = whole(encode(&header, Bytes::from_static(b"a message, a message, a message")).unwrap());
    for end in 0..frame.len() {
        assert!(decode(frame.slice(..end), 1000).is_err(), "cut at {end}");
    }
    let longer = [&frame[..], b"x"].concat();
    assert_eq!(decode(longer.into(), 1000), Err(error(frame.len(), Why::Trailing { left: 1 })));
}

fn headers() -> impl Strategy<Value = Header> {
    let text = || proptest::collection::vec(any::<u8>(), 0..40).prop_map(Bytes::from);
    let protocol = prop_oneof![Just(Protocol::Binary), Just(Protocol::Compact)];
    let info = proptest::collection::vec((text(), text()), 0..20);
    (any::<u16>(), any::<i32>(), protocol, any::<bool>(), info)
        .prop_map(|(flags, seqid, protocol, zlib, info)| Header { flags, seqid, protocol, zlib, info })
}

proptest! {
    #[test]
    fn frames_go_both_ways(header in headers(), message in proptest::collection::vec(any::<u8>(), 0..600)) {
        let (head, payload) = encode(&header, message.clone().into()).unwrap();
        prop_assert_eq!(head.len() % 4, 10 % 4);
        let frame = whole((head, payload));
        for end in 0..frame.len() - if header.zlib { 0 } else { message.len() } {
            prop_assert!(decode(frame.slice(..end), 1 << 20).is_err(), "cut at {}", end);
        }
        prop_assert_eq!(decode(frame, 1 << 20), Ok((header, message.into())));
    }

    #[test]
    fn damaged_frames_are_survived(
        header in headers(),
        message in proptest::collection::vec(any::<u8>(), 0..200),
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut frame = whole(encode(&header, message.into()).unwrap()).to_vec();
        for (index, byte) in damage {
            let at = index.index(frame.len());
            frame[at] = byte;
        }
        let len = frame.len();
        match decode(frame.into(), 300) {
            Ok((_, message)) => prop_assert!(message.len() <= 300),
            Err(error) => prop_assert!(error.at <= len, "{}", error),
        }
    }
}
