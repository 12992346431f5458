//! What libthrift and Finagle write is read as meant, and written byte for byte the same.

use crate::vectors::{hex, name, named, one, to_hex};
use bytes::{Bytes, BytesMut};
use muxgate_wire::pairs::Pairs;
use muxgate_wire::thrift::skip::skip_struct;
use muxgate_wire::thrift::ttwitter::{self, RequestHeader, ResponseHeader};
use muxgate_wire::thrift::{
    ApplicationExceptionType, Cursor, Form, Kind, MAX_MESSAGE, Protocol, ReplyClass, Walk, classify,
    exception, peek, write_head,
};

fn form_by_name(name: &str) -> Form {
    if name.contains("compact") {
        Form::Compact
    } else if name.contains("nonstrict") {
        Form::Old
    } else {
        Form::Strict
    }
}

#[test]
fn messages_of_libthrift() {
    let vectors = named("golden", &["thrift-"]);
    for vector in &vectors {
        let (name, bytes, fields) = (name(vector), hex(&vector["hex"]), &vector["fields"]);
        let head = peek(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(head.name_in(&bytes), fields["method"].as_str().unwrap().as_bytes(), "{name}");
        assert_eq!(head.kind.code(), fields["type"].as_u64().unwrap() as u8, "{name}");
        assert_eq!(i64::from(head.seqid), fields["seqid"].as_i64().unwrap(), "{name}");
        assert_eq!(head.form(), form_by_name(name), "{name}");

        let mut cursor = Cursor::whole(&bytes);
        cursor.seek(head.body_at);
        skip_struct(head.protocol, &mut cursor).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(cursor.at(), bytes.len(), "{name}");

        let mut out = BytesMut::new();
        write_head(head.form(), head.kind, head.name_in(&bytes), head.seqid, &mut out);
        assert_eq!(&out[..], &bytes[..head.body_at], "{name}");
    }
    assert_eq!(vectors.len(), 26);
}

#[test]
fn a_message_is_complete_at_its_last_byte_and_not_before() {
    let vectors = named("golden", &["thrift-"]);
    for vector in &vectors {
        let bytes = hex(&vector["hex"]);
        let mut walk = Walk::new(MAX_MESSAGE);
        for end in 0..bytes.len() {
            let error = walk.advance(&bytes[..end]).unwrap_err();
            assert!(error.is_incomplete(), "{}: {error} with {end} bytes", name(vector));
        }
        let followed = [&bytes[..], b"\x80\x01"].concat();
        assert_eq!(
            walk.advance(&followed).unwrap(),
            (peek(&bytes).unwrap(), bytes.len()),
            "{}",
            name(vector)
        );
    }
    assert_eq!(vectors.len(), 26);
}

#[test]
fn replies_are_classified() {
    let mut seen = 0;
    for vector in named("golden", &["thrift-"]) {
        let (name, bytes) = (name(vector), hex(&vector["hex"]));
        let class = classify(&bytes);
        let internal = ApplicationExceptionType::InternalError;
        match name.split_once("reply").map(|(_, rest)| rest) {
            Some("") => assert_eq!(class, Ok(ReplyClass::Result), "{name}"),
            Some("-void") => assert_eq!(class, Ok(ReplyClass::Void), "{name}"),
            Some(_) => assert_eq!(class, Ok(ReplyClass::Declared(1)), "{name}"),
            None if name.contains("exception") || name.contains("exn") => {
                let Ok(ReplyClass::Application { kind, message }) = class else {
                    panic!("{name}: {class:?}")
                };
                let unknown = name.ends_with("exception");
                assert_eq!(kind, if unknown { ApplicationExceptionType::UnknownMethod } else { internal });
                let text = std::str::from_utf8(&bytes[message]).unwrap();
                assert!(text.contains("echo"), "{name}: {text}");
            }
            None => {
                assert!(class.unwrap_err().to_string().contains("not expected here"), "{name}");
                continue;
            }
        }
        seen += 1;
    }
    assert_eq!(seen, 16);
}

#[test]
fn exceptions_are_written_byte_for_byte() {
    let mut seen = 0;
    for vector in named("golden", &["thrift-"]) {
        let bytes = hex(&vector["hex"]);
        let Ok(ReplyClass::Application { kind, message }) = classify(&bytes) else { continue };
        let head = peek(&bytes).unwrap();
        let text = std::str::from_utf8(&bytes[message]).unwrap();
        let ours = exception::to_bytes(head.form(), head.name_in(&bytes), head.seqid, kind, text);
        assert_eq!(to_hex(&ours), to_hex(&bytes), "{}", name(vector));
        seen += 1;
    }
    assert_eq!(seen, 7);
}

#[test]
fn upgrade_call_and_reply() {
    for (vector, kind, form) in [
        ("ttwitter-upgrade-call", Kind::Call, Form::Strict),
        ("ttwitter-upgrade-reply", Kind::Reply, Form::Strict),
        ("ttwitter-upgrade-call-compact", Kind::Call, Form::Compact),
    ] {
        let bytes = hex(&one("golden", vector)["hex"]);
        let mut out = BytesMut::new();
        match kind {
            Kind::Call => ttwitter::write_upgrade_call(form, &mut out),
            _ => ttwitter::write_upgrade_reply(form, &mut out),
        }
        assert_eq!(to_hex(&out), to_hex(&bytes), "{vector}");
        assert_eq!(ttwitter::is_upgrade_call(&peek(&bytes).unwrap(), &bytes), kind == Kind::Call, "{vector}");
    }
}

fn full_header() -> RequestHeader {
    RequestHeader {
        trace_id: 0x1111_1111_1111_1111,
        span_id: 0x3333_3333_3333_3333,
        parent_span_id: Some(0x2222_2222_2222_2222),
        sampled: Some(true),
        client_id: Some(Bytes::from_static(b"web.prod")),
        flags: Some(1),
        contexts: Pairs::build([(&b"com.twitter.finagle.Retries"[..], &b"\0\0\0\x02"[..])]).unwrap(),
        dest: Some(Bytes::from_static(b"/s/web")),
        delegations: Pairs::build([(&b"/s"[..], &b"/t"[..])]).unwrap(),
        trace_id_high: Some(0x4444_4444_4444_4444),
    }
}

#[test]
fn request_headers_read_and_write_the_same_bytes() {
    let min = RequestHeader { trace_id: 0x11, span_id: 0x33, ..RequestHeader::default() };
    for (vector, protocol, expected) in [
        ("ttwitter-request-header-min", Protocol::Binary, min),
        ("ttwitter-request-header-full", Protocol::Binary, full_header()),
        ("ttwitter-request-header-full-compact", Protocol::Compact, full_header()),
    ] {
        let bytes = Bytes::from(hex(&one("golden", vector)["hex"]));
        let (header, at) = RequestHeader::decode(protocol, &bytes).unwrap();
        assert_eq!((&header, at), (&expected, bytes.len()), "{vector}");
        let mut out = BytesMut::new();
        header.encode(protocol, &mut out);
        assert_eq!(to_hex(&out), to_hex(&bytes), "{vector}");
        for end in 0..bytes.len() {
            assert!(RequestHeader::decode(protocol, &bytes.slice(..end)).is_err(), "{vector} cut at {end}");
        }
    }
}

#[test]
fn response_headers_are_a_whole_struct() {
    let empty = hex(&one("golden", "ttwitter-response-header-empty")["hex"]);
    let mut out = BytesMut::new();
    ResponseHeader::write_empty(&mut out);
    assert_eq!(out, empty);
    let contexts = hex(&one("golden", "ttwitter-response-header-contexts")["hex"]);
    let (header, at) = ResponseHeader::decode(Protocol::Binary, &contexts).unwrap();
    assert_eq!((header.contexts.len(), at), (1, contexts.len()));
    assert_eq!(header.contexts, full_header().contexts);
    assert_eq!(ResponseHeader::skip(Protocol::Binary, &contexts), Ok(contexts.len()));
    let mut out = BytesMut::new();
    header.encode(Protocol::Binary, &mut out);
    assert_eq!(to_hex(&out), to_hex(&contexts));
    let mut out = BytesMut::new();
    header.encode(Protocol::Compact, &mut out);
    assert_eq!(ResponseHeader::decode(Protocol::Compact, &out), Ok((header, out.len())));
    assert_eq!(ResponseHeader::skip(Protocol::Compact, &out), Ok(out.len()));
}

#[test]
fn header_and_message_come_apart() {
    let request = Bytes::from(hex(&one("golden", "ttwitter-request")["hex"]));
    let (header, at) = RequestHeader::decode(Protocol::Binary, &request).unwrap();
    assert_eq!((header.trace_id, header.span_id), (0x11, 0x33));
    let head = peek(&request[at..]).unwrap();
    assert_eq!((head.name_in(&request[at..]), head.seqid), (&b"echo"[..], 7));
    let reply = hex(&one("golden", "ttwitter-response")["hex"]);
    let at = ResponseHeader::skip(Protocol::Binary, &reply).unwrap();
    assert_eq!(classify(&reply[at..]), Ok(ReplyClass::Result));
    assert_eq!(named("golden", &["ttwitter-"]).len(), 10);
}
