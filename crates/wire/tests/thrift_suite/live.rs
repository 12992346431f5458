//! What was sent to running Finagle servers and what they answered: we read the requests as they did, and write
//! what they wrote.

use crate::vectors::{hex, name, named, to_hex};
use bytes::{Bytes, BytesMut};
use muxgate_wire::thrift::ttwitter::{self, RequestHeader, ResponseHeader};
use muxgate_wire::thrift::{Kind, MessageHead, Protocol, ReplyClass, classify, exception, peek};
use serde_json::Value;

/// A frame that was sent, as our reader sees it.
enum Sent {
    Upgrade(MessageHead),
    Message { head: MessageHead, message: Bytes, header: Option<Box<RequestHeader>> },
    Refused(String),
}

/// Reads the frames of a connection in order. `late`: Finagle's plain Thrift server honours the upgrade at any time.
fn read_all(vector: &Value, late: bool) -> Vec<Sent> {
    let mut upgraded = None;
    let frames = vector["send"].as_array().unwrap().iter();
    let contents = frames.filter_map(|step| match (&step["frame"], &step["raw"]) {
        (Value::Null, Value::Null) => None,
        // Sent as is: an empty frame, or bytes without a frame.
        (Value::Null, raw) => Some(hex(raw)).map(|bytes| if bytes == [0; 4] { Vec::new() } else { bytes }),
        (frame, _) => Some(hex(frame)),
    });
    contents
        .enumerate()
        .map(|(index, content)| read_one(Bytes::from(content), &mut upgraded, late || index == 0))
        .collect()
}

fn read_one(content: Bytes, upgraded: &mut Option<Protocol>, may_upgrade: bool) -> Sent {
    let (header, message) = match *upgraded {
        None => (None, content),
        Some(protocol) => match RequestHeader::decode(protocol, &content) {
            Ok((header, at)) => (Some(Box::new(header)), content.slice(at..)),
            Err(error) => return Sent::Refused(error.to_string()),
        },
    };
    match peek(&message) {
        Ok(head) if may_upgrade && upgraded.is_none() && ttwitter::is_upgrade_call(&head, &message) => {
            *upgraded = Some(head.protocol);
            Sent::Upgrade(head)
        }
        Ok(head) => Sent::Message { head, message, header },
        Err(error) => Sent::Refused(error.to_string()),
    }
}

fn text(sent: &Sent) -> String {
    match sent {
        Sent::Upgrade(_) => "upgrade".to_owned(),
        Sent::Refused(why) => format!("refused ({})", why.trim_start_matches("not a valid Thrift message: ")),
        Sent::Message { head, message, header } => {
            let name = String::from_utf8_lossy(head.name_in(message)).into_owned();
            let header = if header.is_some() { "header " } else { "" };
            format!("{header}{} {name} {}", head.kind, head.seqid)
        }
    }
}

/// What we read in each connection's frames.
const READ: &[(&str, &[&str])] = &[
    ("live-plain-framed-call", &["CALL echo 7"]),
    ("live-plain-framed-two-calls", &["CALL echo 7", "CALL echo -5"]),
    ("live-plain-oneway-first", &["ONEWAY ow 8", "CALL echo 7"]),
    ("live-plain-nonstrict-call", &["CALL echo 7"]),
    (
        "live-plain-reply-type-first",
        &["REPLY echo 7", "refused (a message cannot begin with byte 0x02 at byte 0)"],
    ),
    (
        "live-plain-exception-type-first",
        &["EXCEPTION echo 7", "refused (a message cannot begin with byte 0x02 at byte 0)"],
    ),
    ("live-plain-fail", &["CALL fail 7", "CALL echo 7"]),
    ("live-plain-nack", &["CALL nack 7", "CALL echo 7"]),
    ("live-plain-rejected", &["CALL rejected 7"]),
    ("live-plain-nonretryable", &["CALL nonretryable 7"]),
    ("live-plain-texc", &["CALL texc 7"]),
    ("live-plain-garbage-2", &["refused (1 bytes are needed and 0 are left at byte 9)"]),
    (
        "live-plain-empty-frame-first",
        &["refused (1 bytes are needed and 0 are left at byte 0)", "CALL echo 7"],
    ),
    ("live-plain-pipelined-order", &["CALL slow 1", "CALL slow 2"]),
    ("live-plain-then-mux", &["CALL echo 7", "refused (a message cannot begin with byte 0x02 at byte 0)"]),
    ("live-plain-never-then-close", &["CALL never 1"]),
    ("live-upgrade", &["upgrade", "header CALL echo 7"]),
    ("live-upgrade-oneway-type", &["ONEWAY __can__finagle__trace__v3__ 99"]),
    ("live-upgrade-as-second-frame", &["CALL echo 7", "CALL __can__finagle__trace__v3__ 99"]),
    ("live-upgrade-v2", &["CALL __can__finagle__trace__v2__ 99"]),
    ("live-ttwitter-full-header", &["upgrade", "header CALL desc 7"]),
    ("live-ttwitter-context-overrides-header", &["upgrade", "header CALL desc 7"]),
    ("live-ttwitter-empty-header", &["upgrade", "header CALL desc 7"]),
    ("live-ttwitter-unknown-header-field", &["upgrade", "header CALL echo 7"]),
    ("live-ttwitter-missing-header", &["upgrade", "refused (unknown field type 128 at byte 0)"]),
    ("live-ttwitter-truncated-header", &["upgrade", "refused (8 bytes are needed and 2 are left at byte 3)"]),
    ("live-ttwitter-fail", &["upgrade", "header CALL fail 7"]),
    ("live-ttwitter-nack", &["upgrade", "header CALL nack 7"]),
    ("live-ttwitter-oneway", &["upgrade", "header ONEWAY ow 8", "header CALL echo 7"]),
    ("live-ttwitter-bad-dest", &["upgrade", "header CALL echo 7"]),
    ("live-ttwitter-second-upgrade", &["upgrade", "refused (unknown field type 128 at byte 0)"]),
    ("live-compact-call", &["CALL echo 7"]),
    ("live-compact-fail", &["CALL fail 7"]),
    ("live-compact-upgrade", &["upgrade", "header CALL echo 7"]),
    ("live-binary-call-on-compact-server", &["CALL echo 7"]),
    ("live-thrift-server-call", &["CALL echo 7"]),
    ("live-thrift-server-upgrade", &["upgrade", "header CALL echo 7"]),
    ("live-thrift-server-late-upgrade", &["CALL echo 7", "upgrade", "header CALL echo 7"]),
    ("live-thrift-server-oneway", &["ONEWAY ow 8", "CALL echo 7"]),
    ("live-thrift-server-ttwitter-oneway", &["upgrade", "header ONEWAY ow 8", "header CALL echo 7"]),
    ("live-thrift-server-ttwitter-full", &["upgrade", "header CALL desc 7"]),
    ("live-thrift-server-fail", &["CALL fail 7"]),
    ("live-thrift-server-nack", &["CALL nack 7", "CALL echo 7"]),
    (
        "live-thrift-server-garbage",
        &["refused (a message cannot begin with byte 0x6a at byte 0)", "CALL echo 7"],
    ),
    ("live-thrift-buffered-call", &["CALL echo 7"]),
    ("live-plain-garbage", &["refused (a message cannot begin with byte 0x47 at byte 0)"]),
    ("live-plain-http-unframed", &["refused (a message cannot begin with byte 0x47 at byte 0)"]),
    (
        "live-compact-oneway-first",
        &["ONEWAY echo 7", "refused (a message cannot begin with byte 0x02 at byte 0)", "CALL echo 7"],
    ),
    ("live-plain-unframed-thrift", &["CALL echo 7"]),
];

/// The contexts that the recording service saw, as `key=hex`, sorted.
fn contexts_seen(reply: &[u8]) -> Option<Vec<String>> {
    let text = String::from_utf8_lossy(reply);
    let (_, rest) = text.split_once("ctxs=[")?;
    let (list, _) = rest.split_once(']')?;
    let mut pairs: Vec<String> = list.split(',').map(str::to_owned).collect();
    pairs.sort();
    Some(pairs)
}

/// Compares one answer of the server with what we would make of it or write ourselves.
fn check_reply(name: &str, request: &Sent, frame: &[u8]) -> &'static str {
    let (head, header) = match request {
        Sent::Upgrade(head) => {
            let mut out = BytesMut::new();
            ttwitter::write_upgrade_reply(head.form(), &mut out);
            assert_eq!(to_hex(&out), to_hex(frame), "{name}");
            return "upgrade";
        }
        Sent::Refused(why) => panic!("{name}: answered, but we refuse: {why}"),
        Sent::Message { head, header, .. } => (head, header),
    };
    let reply = match header {
        None => frame,
        Some(_) => &frame[ResponseHeader::skip(head.protocol, frame).unwrap()..],
    };
    if head.kind == Kind::Oneway {
        assert!(reply.is_empty(), "{name}");
        return "nothing";
    }
    let Sent::Message { message, .. } = request else { unreachable!() };
    let answer = peek(reply).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(answer.name_in(reply), head.name_in(message), "{name}");
    assert_eq!((answer.seqid, answer.protocol), (head.seqid, head.protocol), "{name}");
    if let (Some(header), Some(seen)) = (header, contexts_seen(reply)) {
        let ours = header.to_contexts().unwrap();
        let mut ours: Vec<String> = ours
            .iter()
            .map(|(key, value)| format!("{}={}", String::from_utf8_lossy(&key), to_hex(&value)))
            .collect();
        ours.sort();
        assert_eq!(ours, seen, "{name}");
        return "contexts";
    }
    match classify(reply).unwrap() {
        ReplyClass::Result => "result",
        ReplyClass::Application { kind, message: text } => {
            let text = std::str::from_utf8(&reply[text]).unwrap();
            let ours = exception::to_bytes(head.protocol, head.name_in(message), head.seqid, kind, text);
            assert_eq!(to_hex(&ours), to_hex(reply), "{name}");
            "exception"
        }
        other => panic!("{name}: {other:?}"),
    }
}

/// Whether the server answered in Mux, which is the other half's matter.
fn in_mux(received: &Value) -> bool {
    let means = received["means"].as_str().unwrap_or_default();
    ["Rdispatch", "BAD_Rerr"].iter().any(|mux| means.starts_with(mux))
}

#[test]
fn requests_and_replies_of_running_servers() {
    let prefixes =
        ["live-plain-", "live-ttwitter-", "live-upgrade", "live-compact-", "live-binary-", "live-thrift-"];
    let vectors = named("malformed_and_edge", &prefixes);
    let mut replies = std::collections::BTreeMap::new();
    for vector in &vectors {
        let name = name(vector);
        let sent = read_all(vector, name.starts_with("live-thrift-server"));
        let texts: Vec<String> = sent.iter().map(text).collect();
        let (_, expected) =
            READ.iter().find(|(listed, _)| *listed == name).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(texts, *expected, "{name}");
        for (index, received) in vector["receive"].as_array().unwrap().iter().enumerate() {
            if in_mux(received) {
                continue;
            }
            // Two calls at once: the answers come in the order of the calls.
            let pipelined = name == "live-plain-pipelined-order";
            let request = if pipelined { index } else { received["after_send"].as_u64().unwrap() as usize };
            let what = check_reply(name, &sent[request], &hex(&received["frame"]));
            *replies.entry(what).or_insert(0) += 1;
        }
    }
    assert_eq!((vectors.len(), READ.len()), (49, 49));
    let counts: Vec<_> = replies.into_iter().collect();
    assert_eq!(counts, [("contexts", 4), ("exception", 5), ("nothing", 3), ("result", 23), ("upgrade", 17)]);
}

#[test]
fn a_full_header_names_destination_and_delegations() {
    let [vector] = named("malformed_and_edge", &["live-ttwitter-full-header"])[..] else {
        panic!("not one vector")
    };
    let sent = read_all(vector, false);
    let Sent::Message { header: Some(header), .. } = &sent[1] else { panic!("no header") };
    assert_eq!(header.dest.as_deref(), Some(&b"/dst/a"[..]));
    // What the server saw: a third entry, which has no dst, is left out; the wildcard stays.
    let pairs: Vec<_> = header.delegations.iter().collect();
    let pairs: Vec<_> = pairs.iter().map(|(src, dst)| (src.as_ref(), dst.as_ref())).collect();
    assert_eq!(pairs, [(&b"/s"[..], &b"/t"[..]), (b"/*/q", b"/w")]);
}
