//! Messages and contexts that Finagle's encoder wrote or its clients sent: read, compared with the fields that are given,
//! written again byte for byte.

use crate::compress;
use crate::data::{bytes, frame, list, message, name, text};
use bytes::{Bytes, BytesMut};
use muxgate_wire::mux::context::{self, Deadline, MuxFailure, TraceContext};
use muxgate_wire::mux::frame::{Frame, MAX_LEN, next_frame};
use muxgate_wire::mux::handshake::is_probe;
use muxgate_wire::mux::message::{Message, Treq};
use muxgate_wire::pairs::Pairs;
use serde_json::Value;

/// Other people's vectors.
fn is_mux(name: &str) -> bool {
    !["thrift-", "theader-", "ttwitter-", "live-ttwitter-"].iter().any(|prefix| name.starts_with(prefix))
}

/// Read under their documented number, written under the old one.
const RENUMBERED: [&str; 2] = ["probe-rerr-good-type", "tdiscarded-good-type"];

#[test]
fn golden_messages_and_contexts() {
    let (mut messages, mut contexts, mut frames) = (0, 0, 0);
    for entry in list("golden").iter().filter(|entry| is_mux(name(entry))) {
        let (name, hex, fields) = (name(entry), bytes(&entry["hex"]), &entry["fields"]);
        println!("{name}");
        if name.starts_with("ctx-") {
            contexts += 1;
            check_context(name, &hex, fields);
        } else if name == "frame-tping" {
            frames += 1;
            let mut buf = BytesMut::from(&hex[..]);
            assert_eq!(fields["length"], hex.len() - 4);
            assert!(next_frame(&mut buf, MAX_LEN).unwrap().is_some_and(|frame| frame.kind == 65));
        } else if name.starts_with("fragment-") {
            frames += 1;
            let frame = frame(&hex);
            assert_eq!(fields["stream_tag"], frame.tag.get());
            assert_eq!(fields["final"], !frame.fragment);
            assert_eq!(message(&frame), hex);
        } else if name.starts_with("live-lz4-") {
            frames += 1;
            compress::check_block(&hex, fields);
        } else {
            messages += 1;
            check_message(name, &frame(&hex), fields);
        }
    }
    assert_eq!((messages, contexts, frames), (55, 23, 5));
}

fn check_message(name: &str, frame: &Frame, fields: &Value) {
    let decoded = Message::decode(frame.kind, frame.body.clone()).unwrap();
    let mut body = BytesMut::new();
    decoded.encode(&mut body);
    assert_eq!(body, frame.body, "{name}");
    assert_eq!(decoded.kind() == frame.kind, !RENUMBERED.contains(&name));
    assert_eq!(is_probe(frame), name.starts_with("probe-"));
    for (field, expected) in fields.as_object().unwrap() {
        check_field(field, expected, frame, &decoded);
    }
}

/// (key as text, value as hex) pairs of a vector.
fn pairs_of(expected: &Value) -> Vec<(Vec<u8>, Vec<u8>)> {
    let pair = |pair: &Value| (pair[0].as_str().unwrap().as_bytes().to_vec(), bytes(&pair[1]));
    expected.as_array().unwrap().iter().map(pair).collect()
}

/// (text, text) pairs of a vector.
fn texts_of(expected: &Value) -> Vec<(Vec<u8>, Vec<u8>)> {
    let text = |value: &Value| value.as_str().unwrap().as_bytes().to_vec();
    expected.as_array().unwrap().iter().map(|pair| (text(&pair[0]), text(&pair[1]))).collect()
}

fn list_of(pairs: &Pairs) -> Vec<(Vec<u8>, Vec<u8>)> {
    pairs.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

fn check_field(field: &str, expected: &Value, frame: &Frame, message: &Message) {
    let id = |number: u64| Value::from(format!("{number:016x}"));
    let trace = || match message {
        Message::Treq(Treq { trace, .. }) => trace.unwrap(),
        other => panic!("{other:?}"),
    };
    match (field, message) {
        ("type", _) => assert_eq!(*expected, frame.kind),
        ("tag", _) => assert_eq!(*expected, frame.tag.get()),
        ("why", Message::Rerr(why)) => assert_eq!(*expected, utf8(why)),
        ("why", Message::Tdiscarded(m)) => assert_eq!(*expected, utf8(&m.why)),
        ("why" | "body", Message::Rdispatch(m)) => assert_eq!(*expected, utf8(&m.body)),
        ("why" | "body", Message::Rreq(m)) => assert_eq!(*expected, utf8(&m.body)),
        ("body", Message::Tdispatch(m)) => assert_eq!(*expected, utf8(&m.body)),
        ("body", Message::Treq(m)) => assert_eq!(*expected, utf8(&m.body)),
        ("body_hex", Message::Tdispatch(m)) => assert_eq!(bytes(expected), m.body),
        ("version", Message::Tinit(m) | Message::Rinit(m)) => assert_eq!(*expected, m.version as i16),
        ("headers", Message::Tinit(m) | Message::Rinit(m)) => {
            // The window is given as hex, everything else as text.
            let headers: Vec<_> = m.headers.iter().map(|(key, value)| (utf8(key), value.clone())).collect();
            let expected = expected.as_array().unwrap().iter().map(|pair| {
                let (key, value) = (pair[0].as_str().unwrap(), pair[1].as_str().unwrap());
                let value = if key == "mux-framer" { bytes(&pair[1]) } else { value.as_bytes().to_vec() };
                (key.to_owned(), Bytes::from(value))
            });
            assert_eq!(headers, expected.collect::<Vec<_>>());
        }
        ("nkeys", Message::Treq(m)) => assert_eq!(*expected, if m.trace.is_some() { 2 } else { 0 }),
        ("span_id", _) => assert_eq!(*expected, id(trace().span_id)),
        ("parent_id", _) => assert_eq!(*expected, id(trace().parent_id)),
        ("trace_id", _) => assert_eq!(*expected, id(trace().trace_id)),
        ("flags", _) => assert_eq!(*expected, trace().flags),
        ("trace24", _) => assert_eq!(bytes(expected), trace().encode().0[..24]),
        ("status", Message::Rdispatch(m)) => assert_eq!(*expected, m.status as u8),
        ("status", Message::Rreq(m)) => assert_eq!(*expected, m.status as u8),
        ("contexts", Message::Tdispatch(m)) => assert_eq!(pairs_of(expected), list_of(&m.contexts)),
        ("contexts", Message::Rdispatch(m)) => assert_eq!(pairs_of(expected), list_of(&m.contexts)),
        ("dst", Message::Tdispatch(m)) => assert_eq!(*expected, utf8(&m.dst)),
        ("dtab", Message::Tdispatch(m)) => assert_eq!(texts_of(expected), list_of(&m.dtab)),
        ("response_headers", Message::Rdispatch(m)) => {
            let (key, value) = m.contexts.iter().next().unwrap();
            assert_eq!(key, context::RESPONSE_HEADERS);
            assert_eq!(texts_of(expected), list_of(&context::decode_headers(value).unwrap()));
        }
        ("MuxFailure", Message::Rdispatch(m)) => {
            let failure = MuxFailure::find(&m.contexts).unwrap();
            assert_eq!(*expected, failure.0);
            assert_eq!(m.contexts, failure.to_pairs());
        }
        ("which", Message::Tdiscarded(m)) => assert_eq!(*expected, m.which),
        ("unit", Message::Tlease(m)) => assert_eq!(*expected, m.unit),
        ("howlong", Message::Tlease(m)) => assert_eq!(*expected, m.amount),
        // Remarks about the sender or Finagle's reading of it.
        ("sampled_on_sender" | "decoded", _) => {}
        other => panic!("field that is not compared: {other:?}"),
    }
}

fn utf8(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn check_context(name: &str, value: &[u8], fields: &Value) {
    if name == "ctx-codec-list" {
        let pairs = context::decode_headers(Bytes::copy_from_slice(value)).unwrap();
        return assert_eq!(texts_of(&fields["pairs"]), list_of(&pairs));
    }
    match text(fields, "key").as_bytes() {
        context::TRACE => check_trace(value, fields),
        context::DEADLINE => {
            let deadline = Deadline::decode(value).unwrap();
            let number = |field: &str| fields[field].to_string().trim_matches('"').parse::<i64>().unwrap();
            assert_eq!(deadline.timestamp, number("timestamp_ns"));
            assert_eq!(deadline.deadline, number("deadline_ns"));
            assert_eq!(deadline.encode(), value);
        }
        context::RETRIES => {
            let retries = context::decode_retries(value).unwrap();
            assert_eq!(fields["attempt"], retries);
            assert_eq!(retries.to_be_bytes(), value);
        }
        context::BACKUP_REQUEST => assert!(value.is_empty()),
        context::CLIENT_ID => assert_eq!(fields["name"].as_str(), context::decode_client_id(value)),
        context::REQUEST_HEADERS => {
            let headers = context::decode_headers(Bytes::copy_from_slice(value)).unwrap();
            assert_eq!(pairs_of(&fields["headers"]), list_of(&headers));
            assert_eq!(headers.region(), value);
        }
        context::MUX_FAILURE => {
            let failure = MuxFailure::decode(value).unwrap();
            assert_eq!(fields["flags"], failure.0);
            assert_eq!(failure.encode(), value);
        }
        other => panic!("context that is not compared: {other:?}"),
    }
}

fn check_trace(value: &[u8], fields: &Value) {
    let trace = TraceContext::decode(value).unwrap();
    let (encoded, len) = trace.encode();
    assert_eq!(&encoded[..len], value);
    for (field, expected) in fields.as_object().unwrap() {
        let hex = || u64::from_str_radix(expected.as_str().unwrap(), 16).unwrap();
        match field.as_str() {
            "span" => assert_eq!(trace.span_id, hex()),
            "parent" => assert_eq!(trace.parent_id, hex()),
            "trace" => assert_eq!(trace.trace_id, hex()),
            "trace_high" => assert_eq!(trace.trace_id_high, Some(hex())),
            "flags" => assert_eq!(trace.flags, expected.as_u64().unwrap_or_else(hex)),
            "key" | "sampled_on_sender" => {}
            other => panic!("field that is not compared: {other}"),
        }
    }
}
