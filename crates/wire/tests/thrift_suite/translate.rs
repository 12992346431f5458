//! Messages from one form into another: as the `thrift` crate and libthrift would have written them, or an error.

use crate::value::{Choices, Val, from_bytes, oracle_message, to_bytes};
use crate::vectors::{bytes_of, case, hex, named, one, to_hex, unhex};
use bytes::BytesMut;
use muxgate_wire::thrift::skip::skip_struct;
use muxgate_wire::thrift::translate::{message, renamed};
use muxgate_wire::thrift::{
    Cursor, Form, Kind, MAX_DEPTH, MAX_NAME, Protocol, ThriftError, Type, Why, peek, write_head,
};
use proptest::prelude::*;
use thrift::protocol::{TMessageIdentifier, TMessageType};

const FORMS: [Form; 3] = [Form::Strict, Form::Old, Form::Compact];
/// More than any message here becomes.
const LIMIT: usize = 1 << 20;

fn to(form: Form, bytes: &[u8], limit: usize) -> Result<BytesMut, ThriftError> {
    message(bytes, &peek(bytes).unwrap(), form, limit)
}

fn values() -> impl Strategy<Value = Val> {
    proptest::collection::vec(any::<u8>(), 0..300).prop_map(|bytes| Choices(&bytes).fields(4))
}

fn by_oracle(form: Form, name: &str, seqid: i32, body: &Val) -> Vec<u8> {
    let head = TMessageIdentifier::new(name, TMessageType::Call, seqid);
    oracle_message(form.protocol(), form != Form::Old, &head, body)
}

#[test]
fn vectors_of_both_protocols_become_each_other() {
    let mut seen = 0;
    for what in [
        "call",
        "oneway",
        "reply",
        "reply-void",
        "reply-declared-exception",
        "exception",
        "exception-internal",
        "kitchen-sink",
    ] {
        let in_form = |form: &str| hex(&one("golden", &format!("thrift-{form}-{what}"))["hex"]);
        let all = [
            (Form::Strict, in_form("binary")),
            (Form::Old, in_form("binary-nonstrict")),
            (Form::Compact, in_form("compact")),
        ];
        for (was, from) in &all {
            for (form, expected) in &all {
                let mut expected = to_hex(expected);
                if *was == Form::Compact && *form != Form::Compact {
                    // Field 12 of the kitchen sink is an empty map, whose types compact does not write.
                    expected = expected.replace("0d000c0b0a00000000", "0d000c030300000000");
                }
                let len = expected.len() / 2;
                let ours = to(*form, from, len).unwrap();
                assert_eq!(to_hex(&ours), expected, "{what} as {form:?}");
                let error = to(*form, from, len - 1).unwrap_err();
                assert_eq!(error.why, Why::OverLimit { most: len - 1 }, "{what} as {form:?}");
                seen += 1;
            }
        }
    }
    assert_eq!(seen, 8 * 9);
}

#[test]
fn both_kinds_of_bool_elements_become_the_same() {
    let case = case("bc-03-compact-bool-list");
    let both = hex(&case["input"][0]["hex"]);
    let (first, second) = both.split_at(both.len() / 2);
    for (seqid, bytes) in [(1u8, first), (2, second)] {
        let expected = format!("8001000100000003616c6c000000{seqid:02}0f0001020000000301000100");
        assert_eq!(to_hex(&to(Form::Strict, bytes, LIMIT).unwrap()), expected);
    }
    for empty in ["82210103616c6c190100", "82210103616c6c190200"] {
        let ours = to(Form::Old, &unhex(empty), LIMIT).unwrap();
        assert_eq!(to_hex(&ours), "00000003616c6c01000000010f0001020000000000");
    }
}

#[test]
fn uuids_and_bits_of_doubles_are_kept() {
    let uuid = Val::Uuid(0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f);
    let bits = [0, 1, 0x7ff8_dead_beef_0001, 0xfff0_0000_0000_0000, u64::MAX, 0x0102_0304_0506_0708];
    let value = Val::Struct(vec![
        (1, uuid.clone()),
        (2, Val::List(Type::Uuid, vec![uuid.clone(), uuid.clone()])),
        (3, Val::Map(Type::Uuid, Type::Double, vec![(uuid, Val::Double(bits[2]))])),
        (4, Val::List(Type::Double, bits.map(Val::Double).to_vec())),
    ]);
    both_ways(&value);
}

#[test]
fn field_ids_start_anew_in_a_struct_and_go_on_behind_it() {
    let inner = Val::Struct(vec![
        (1, Val::I8(1)),
        (17, Val::Bool(true)),
        (-3, Val::I16(-1)),
        (i16::MIN, Val::Bool(false)),
    ]);
    both_ways(&Val::Struct(vec![
        (i16::MAX, Val::Bool(true)),
        (-1, inner.clone()),
        (0, Val::I64(i64::MIN)),
        (1, Val::List(Type::Struct, vec![inner.clone(), inner.clone()])),
        (16, Val::Map(Type::Bool, Type::Struct, vec![(Val::Bool(false), inner)])),
        (32, Val::Text(vec![])),
    ]));
}

/// As our writers, which the oracle's tests cover, write it in the other protocol.
fn both_ways(value: &Val) {
    let by_us = |form: Form| {
        let mut out = BytesMut::new();
        write_head(form, Kind::Call, b"m", 7, &mut out);
        out.extend_from_slice(&to_bytes(form.protocol(), value));
        out
    };
    for from in FORMS {
        for form in FORMS {
            assert_eq!(
                to_hex(&to(form, &by_us(from), LIMIT).unwrap()),
                to_hex(&by_us(form)),
                "{from:?} to {form:?}"
            );
        }
    }
}

#[test]
fn long_lists_of_every_type() {
    for count in [14, 15, 300] {
        let list = |ty: Type, element: Val| Val::List(ty, vec![element; count]);
        both_ways(&Val::Struct(vec![
            (1, list(Type::Bool, Val::Bool(true))),
            (2, list(Type::I8, Val::I8(-1))),
            (3, list(Type::I16, Val::I16(-300))),
            (4, list(Type::I32, Val::I32(i32::MIN))),
            (5, list(Type::I64, Val::I64(1))),
            (6, list(Type::Double, Val::Double(1))),
            (7, list(Type::String, Val::Text(b"text".to_vec()))),
            (8, list(Type::Set, Val::Set(Type::I8, vec![Val::I8(3); count]))),
            (9, list(Type::Map, Val::Map(Type::I8, Type::I8, vec![]))),
        ]));
    }
}

#[test]
fn bools_other_than_0_and_1_are_true_and_empty_maps_lose_their_types() {
    for (binary, compact, again) in [
        ("02000107 00", "11 00", "02000101 00"),
        ("0f0001020000000201ff 00", "1921 0101 00", "0f00010200000002 0101 00"),
        ("0d00010b0800000000 00", "1b00 00", "0d0001030300000000 00"),
        // A type that nobody knows, of a list with nothing in it.
        ("0f00016300000000 00", "1903 00", "0f00010300000000 00"),
    ] {
        let body = |text: &str| unhex(&text.replace(' ', ""));
        let there = to(Form::Compact, &with_head(Form::Strict, &body(binary)), LIMIT).unwrap();
        assert_eq!(to_hex(&there), to_hex(&with_head(Form::Compact, &body(compact))), "{binary}");
        let back = to(Form::Strict, &there, LIMIT).unwrap();
        assert_eq!(to_hex(&back), to_hex(&with_head(Form::Strict, &body(again))), "{binary}");
    }
}

fn with_head(form: Form, body: &[u8]) -> BytesMut {
    let mut out = BytesMut::new();
    write_head(form, Kind::Call, b"m", 7, &mut out);
    out.extend_from_slice(body);
    out
}

#[test]
fn bytes_behind_the_struct_are_refused_where_it_is_walked() {
    let bytes = with_head(Form::Compact, b"\0rest");
    let error = to(Form::Old, &bytes, LIMIT).unwrap_err();
    assert_eq!(error, ThriftError { at: bytes.len() - 4, why: Why::Trailing { left: 4 } });
    // Between the two headers of binary the body is nobody's business.
    let bytes = with_head(Form::Strict, b"anything");
    assert_eq!(to(Form::Old, &bytes, LIMIT).unwrap(), with_head(Form::Old, b"anything"));
    let error = to(Form::Old, &bytes, bytes.len() - 5).unwrap_err();
    assert_eq!(error, ThriftError { at: bytes.len() - 8, why: Why::OverLimit { most: bytes.len() - 5 } });
}

#[test]
fn what_cannot_be_skipped_cannot_be_translated() {
    let vectors = named("malformed_and_edge", &["th-"]);
    for vector in &vectors {
        let bytes = bytes_of(vector);
        let Ok(head) = peek(&bytes) else { continue };
        let form = if head.protocol == Protocol::Binary { Form::Compact } else { Form::Strict };
        alike(&bytes, form);
        for end in 0..bytes.len().min(300) {
            if peek(&bytes[..end]).is_ok() {
                alike(&bytes[..end], form);
            }
        }
    }
    assert_eq!(vectors.len(), 37);
}

/// Translation says what skipping says, and skips in the result as much as there is.
fn alike(bytes: &[u8], form: Form) {
    let head = peek(bytes).unwrap();
    let mut cursor = Cursor::whole(bytes);
    cursor.seek(head.body_at);
    let skipped = skip_struct(head.protocol, &mut cursor);
    let left = bytes.len().saturating_sub(cursor.at());
    match (skipped, to(form, bytes, LIMIT)) {
        (Ok(()), Ok(out)) => {
            let again = peek(&out).unwrap();
            let mut cursor = Cursor::whole(&out);
            cursor.seek(again.body_at);
            assert_eq!((left, skip_struct(again.protocol, &mut cursor), cursor.at()), (0, Ok(()), out.len()));
            assert_eq!((head.kind, head.seqid), (again.kind, again.seqid));
            assert_eq!(head.name_in(bytes), again.name_in(&out));
        }
        (Ok(()), Err(error)) => assert_eq!(error.why, Why::Trailing { left }),
        (Err(expected), found) => assert_eq!(found.map_err(|error| error.why), Err(expected.why)),
    }
}

#[test]
fn as_deep_as_a_walk_and_no_deeper() {
    let nested = |protocol: Protocol, depth: usize| {
        let inside =
            (0..depth - 2).fold(Val::List(Type::I8, vec![]), |inner, _| Val::List(Type::List, vec![inner]));
        with_head(protocol.into(), &to_bytes(protocol, &Val::Struct(vec![(1, inside)])))
    };
    for (protocol, form) in [(Protocol::Binary, Form::Compact), (Protocol::Compact, Form::Strict)] {
        let ours = to(form, &nested(protocol, MAX_DEPTH), LIMIT).unwrap();
        assert_eq!(ours, nested(form.protocol(), MAX_DEPTH));
        alike(&nested(protocol, MAX_DEPTH), form);
        assert_eq!(
            to(form, &nested(protocol, MAX_DEPTH + 1), LIMIT).unwrap_err().why,
            Why::TooDeep { most: MAX_DEPTH }
        );
        alike(&nested(protocol, MAX_DEPTH + 1), form);
    }
    // A bomb: as many levels as fit, and nothing behind.
    for (from, form, level) in [(Form::Strict, Form::Compact, "0c0001"), (Form::Compact, Form::Old, "1c")] {
        let bomb = with_head(from, &unhex(level).repeat(1_000_000));
        assert_eq!(to(form, &bomb, LIMIT).unwrap_err().why, Why::TooDeep { most: MAX_DEPTH });
    }
}

#[test]
fn the_limit_holds_whatever_grows() {
    // Each in compact, growing several times in binary: i64 elements, empty maps, bool fields, empty lists.
    let millions = |element: Val, ty: Type| Val::Struct(vec![(1, Val::List(ty, vec![element; 100_000]))]);
    for value in [
        millions(Val::I64(0), Type::I64),
        millions(Val::Map(Type::I8, Type::I8, vec![]), Type::Map),
        millions(Val::List(Type::I8, vec![]), Type::List),
        Val::Struct((0..10_000).map(|id| (id, Val::Bool(true))).collect()),
        Val::Struct(vec![(1, Val::Text(vec![b'x'; 100_000]))]),
        Val::Struct(vec![(1, Val::List(Type::Uuid, vec![Val::Uuid(1); 10_000]))]),
    ] {
        let compact = with_head(Form::Compact, &to_bytes(Protocol::Compact, &value));
        let binary = with_head(Form::Strict, &to_bytes(Protocol::Binary, &value));
        assert_eq!(to(Form::Strict, &compact, binary.len()).unwrap(), binary);
        for limit in [0, 1, 20, 1000, binary.len() - 1] {
            assert_eq!(to(Form::Strict, &compact, limit).unwrap_err().why, Why::OverLimit { most: limit });
        }
    }
}

#[test]
fn a_message_gets_another_name() {
    let value = Val::Struct(vec![(1, Val::I32(300)), (2, Val::Bool(true))]);
    for from in FORMS {
        let bytes = with_head(from, &to_bytes(from.protocol(), &value));
        let head = peek(&bytes).unwrap();
        for form in FORMS {
            for name in [&b""[..], b"m", b"another", &[b'n'; MAX_NAME]] {
                let ours = renamed(&bytes, &head, form, name, LIMIT).unwrap();
                let mut expected = BytesMut::new();
                write_head(form, Kind::Call, name, 7, &mut expected);
                expected.extend_from_slice(&to_bytes(form.protocol(), &value));
                assert_eq!(ours, expected, "{from:?} to {form:?}");
            }
            let error = renamed(&bytes, &head, form, &[b'n'; MAX_NAME + 1], LIMIT).unwrap_err();
            assert_eq!(error.why, Why::NameTooLong(MAX_NAME + 1));
        }
        // A head of another message gives an error, not a panic.
        assert!(renamed(&bytes[..3], &head, Form::Strict, b"n", LIMIT).is_err());
    }
}

#[test]
fn a_name_is_split_at_its_first_colon() {
    for (name, expected) in [
        ("Echo:echo", Some(("Echo", "echo"))),
        ("a:b:c", Some(("a", "b:c"))),
        (":echo", Some(("", "echo"))),
        ("Echo:", Some(("Echo", ""))),
        (":", Some(("", ""))),
        ("echo", None),
        ("", None),
    ] {
        for form in FORMS {
            let mut bytes = BytesMut::new();
            write_head(form, Kind::Call, name.as_bytes(), 7, &mut bytes);
            let expected =
                expected.map(|(service, method): (&str, &str)| (service.as_bytes(), method.as_bytes()));
            assert_eq!(peek(&bytes).unwrap().service_in(&bytes), expected, "{name}");
        }
    }
    let recorded = hex(&one("golden", "thrift-binary-multiplexed")["hex"]);
    let head = peek(&recorded).unwrap();
    assert_eq!(head.service_in(&recorded), Some((&b"Echo"[..], &b"echo"[..])));
    let (_, method) = head.service_in(&recorded).unwrap();
    assert_eq!(
        to_hex(&renamed(&recorded, &head, Form::Strict, method, LIMIT).unwrap()),
        to_hex(&hex(&one("golden", "thrift-binary-call")["hex"])),
        "without its service it is the plain call"
    );
    assert_eq!(head.service_in(b""), None);
}

proptest! {
    #[test]
    fn as_the_crate_writes_it(
        body in values(),
        seqid in any::<i32>(),
        name in "[a-zA-Z:]{0,20}",
    ) {
        for from in FORMS {
            let bytes = by_oracle(from, &name, seqid, &body);
            for form in FORMS {
                let expected = by_oracle(form, &name, seqid, &body);
                let ours = to(form, &bytes, expected.len()).unwrap();
                prop_assert_eq!(to_hex(&ours), to_hex(&expected), "{:?} to {:?}", from, form);
                let back = to(from, &ours, bytes.len()).unwrap();
                prop_assert_eq!(to_hex(&back), to_hex(&bytes), "{:?} to {:?} and back", from, form);
            }
        }
    }

    #[test]
    fn a_cut_message_is_an_error(body in values()) {
        for (from, form) in [(Form::Strict, Form::Compact), (Form::Compact, Form::Strict)] {
            let bytes = by_oracle(from, "m", 7, &body);
            let body_at = peek(&bytes).unwrap().body_at;
            for end in body_at..bytes.len() {
                let error = to(form, &bytes[..end], LIMIT).unwrap_err();
                prop_assert!(!error.is_incomplete() && error.at <= end, "{} cut at {}", error, end);
            }
        }
    }

    #[test]
    fn damage_is_survived_within_the_limit(
        body in values(),
        limit in 0usize..600,
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4),
    ) {
        for from in FORMS {
            let mut bytes = by_oracle(from, "m", 7, &body);
            for (index, byte) in &damage {
                let at = index.index(bytes.len());
                bytes[at] = *byte;
            }
            let Ok(head) = peek(&bytes) else { continue };
            for form in FORMS {
                match to(form, &bytes, limit) {
                    Ok(out) => prop_assert!(out.len() <= limit, "{} of {}", out.len(), limit),
                    Err(error) => prop_assert!(error.at <= bytes.len(), "{}", error),
                }
            }
            let other = if head.protocol == Protocol::Binary { Form::Compact } else { Form::Strict };
            alike(&bytes, other);
            // Once translated it says the same for ever: what was lost is lost at the first time.
            if let Ok(out) = to(other, &bytes, LIMIT) {
                let back = to(head.form(), &out, LIMIT).unwrap();
                prop_assert_eq!(to(other, &back, LIMIT).unwrap(), out.clone());
                let read = |bytes: &[u8]| {
                    let head = peek(bytes).unwrap();
                    from_bytes(head.protocol, &bytes[head.body_at..]).unwrap().0
                };
                prop_assert_eq!(to_bytes(Protocol::Compact, &read(&out)), to_bytes(Protocol::Compact, &read(&back)));
            }
        }
    }
}
