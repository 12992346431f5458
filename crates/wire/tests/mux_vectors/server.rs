//! What clients sent to running Finagle servers, sent to our server session. The application is imitated by answering a
//! call with the answer that was recorded for its tag, at the point where it was recorded.

use crate::data::{bytes, drain, frame, framed, frames, join, list, message, name, text};
use bytes::{Buf, Bytes, BytesMut};
use muxgate_wire::mux::context::MuxFailure;
use muxgate_wire::mux::frame::{Frame, Tag, kind, next_frame};
use muxgate_wire::mux::handshake::{Compression, CompressionLevel, Offer, TlsLevel, UNLIMITED};
use muxgate_wire::mux::limits;
use muxgate_wire::mux::message::{Rdispatch, Rreq, Status};
use muxgate_wire::mux::server::{Refusal, ServerConfig, ServerEvent, ServerSession};
use muxgate_wire::mux::session::Call;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// What we do where Finagle does something else.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ours {
    /// The request with this tag alone fails: ERROR with MuxFailure 4 (a Treq: ERROR).
    Error(u32),
    /// The request is handed to the caller, who parses names; Finagle's decoder does, and gives up the session.
    Handed,
    /// These frames, and the session lives on.
    Frames(&'static [&'static str]),
    /// The session ends, with nothing written beyond what is recorded.
    Closed,
    /// As recorded, but for the text of the last Rerr.
    Text,
}

use Ours::{Closed, Error, Handed, Text};

const RERR_3: &str = "7f000003556e6578706563746564206d7578206d65737361676520747970652033";
const RERR_MINUS_3: &str = "7f000003556e6578706563746564206d7578206d657373616765207479706520";
const ECHO_2: &str = "fe0000020000006563686f";

/// By name, with the reason from the spec's table of bad input.
const DIFFERENT: [(&str, Ours, &str); 38] = [
    ("live-unknown-type-3", Ours::Frames(&[RERR_3, ECHO_2]), "unknown application type: Rerr and go on"),
    (
        "live-unknown-type-minus3",
        Ours::Frames(&[RERR_MINUS_3, ECHO_2]),
        "unknown application type: Rerr and go on",
    ),
    ("live-tdispatch-empty-body", Error(2), "truncated Tdispatch: that call only"),
    ("live-tdispatch-ctx-count-short", Error(2), "truncated Tdispatch: that call only"),
    ("live-tdispatch-ctx-count-too-big-no-rest", Error(2), "truncated Tdispatch: that call only"),
    ("live-tdispatch-ctx-key-overrun", Error(2), "truncated Tdispatch: that call only"),
    ("live-tdispatch-ctx-count-negative", Error(2), "u16 with the top bit set: as truncated, not misread"),
    ("live-tdispatch-ctx-key-len-negative", Error(2), "u16 with the top bit set: as truncated"),
    ("live-tdispatch-ctx-val-len-8000", Error(2), "u16 with the top bit set: as truncated"),
    ("live-tdispatch-no-dst", Error(2), "truncated Tdispatch: that call only"),
    ("live-tdispatch-dst-overrun", Error(2), "truncated Tdispatch: that call only"),
    ("live-tdispatch-no-dtab-count", Error(2), "truncated Tdispatch: that call only"),
    ("live-tdispatch-dtab-count-negative", Error(2), "u16 with the top bit set: as truncated"),
    ("live-first-frame-truncated-tdispatch", Error(2), "truncated Tdispatch: that call only"),
    ("live-treq-bad-trace-size", Error(2), "inconsistent Treq: that call only"),
    ("live-treq-empty", Error(2), "truncated Treq: that call only"),
    ("live-treq-nkeys-128", Error(2), "inconsistent Treq: that call only"),
    ("live-treq-nkeys-overrun", Error(2), "truncated Treq: that call only"),
    ("live-tdispatch-dst-no-slash", Handed, "bad path: that call only"),
    ("live-tdispatch-dst-space", Handed, "bad path: that call only"),
    ("live-tdispatch-dst-trailing-slash", Handed, "bad path: that call only"),
    ("live-tdispatch-dst-utf8", Handed, "bad path: that call only"),
    ("live-tdispatch-dtab-wildcard-prefix", Handed, "bad dtab, or one Finagle cannot read: that call only"),
    ("live-tdispatch-dtab-bad-tree", Handed, "bad dtab: that call only"),
    ("live-tdispatch-dtab-empty-src", Handed, "bad dtab: that call only"),
    ("live-tdispatch-dtab-empty-dst", Handed, "bad dtab: that call only"),
    (
        "live-fragments-then-tdiscarded-no-reply-then-same-tag",
        Ours::Frames(&["be000002", ECHO_2]),
        "part of a request dropped: say so, or the client's tag leaks",
    ),
    (
        "live-fragment-stolen-by-ping-same-tag",
        Ours::Frames(&["bf000002", "fe00000201"]),
        "a ping does not take what was buffered for its tag; the request, then whole, is malformed",
    ),
    ("live-frame-length-7ffffffb", Closed, "a frame length has a limit"),
    ("live-tinit-framer-zero", Text, "our own words"),
    ("live-tinit-framer-negative", Text, "our own words"),
    ("live-tinit-framer-short", Text, "our own words"),
    ("live-tinit-tls-required-vs-off", Text, "our own words"),
    ("s-opptls-server-required-client-off", Text, "our own words"),
    ("s-opptls-server-required-client-none", Text, "our own words"),
    ("s-opptls-server-required-no-negotiation-tdispatch-first", Text, "our own words"),
    ("live-first-frame-rerr-65537-good-type", Handed, "told from Thrift by the first bytes, before Mux"),
    ("live-first-frame-rerr-65537-bad-type", Handed, "told from Thrift by the first bytes, before Mux"),
];

fn ours(name: &str) -> Option<Ours> {
    DIFFERENT.iter().find(|(different, ..)| *different == name).map(|(_, ours, _)| *ours)
}

struct Run {
    session: ServerSession<()>,
    calls: BTreeMap<Tag, Call>,
    /// Requests the session answered by itself.
    refused: Vec<(Tag, Refusal)>,
    handed: usize,
    app_nacks: bool,
    over: bool,
    inbox: BytesMut,
    written: Vec<Frame>,
}

const NOW: Duration = Duration::ZERO;

impl Run {
    fn new(offer: Offer, nack_expired_lease: bool) -> Self {
        let config = ServerConfig { offer, nack_expired_lease, ..ServerConfig::default() };
        Self {
            session: ServerSession::new(config),
            calls: BTreeMap::new(),
            refused: Vec::new(),
            handed: 0,
            app_nacks: true,
            over: false,
            inbox: BytesMut::new(),
            written: Vec::new(),
        }
    }

    /// With a window like Finagle's, so that Rinit is the same to the byte.
    fn like_finagle() -> Self {
        Self::new(Offer { window: UNLIMITED, ..Offer::default() }, false)
    }

    fn shake(&mut self) {
        self.send(&framed(&bytes(&"7f00000174696e697420636865636b".into())), NOW);
        self.send(&framed(&bytes(&"440000010001".into())), NOW);
        self.collect();
        assert_eq!(self.written.len(), 2);
        self.written.clear();
    }

    fn send(&mut self, raw: &[u8], now: Duration) {
        self.inbox.extend_from_slice(raw);
        while !self.over {
            let frame = match next_frame(&mut self.inbox, limits::MAX_FRAME) {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(_) => return self.over = true,
            };
            match self.session.receive(frame, now) {
                Ok(ServerEvent::Dispatch { call, .. }) => {
                    assert!(self.session.accept(call, ()));
                    self.handed += 1;
                    assert!(self.calls.insert(call.tag(), call).is_none(), "tag in flight twice");
                }
                Ok(ServerEvent::Discarded { tag, token, .. }) => {
                    assert_eq!(token, Some(()));
                    let call = self.calls.remove(&tag).expect("was in flight");
                    assert!(!self.session.reply(call, Status::Ok, |_| {}, Bytes::from_static(b"late")));
                }
                Ok(ServerEvent::Refused { tag, why }) => self.refused.push((tag, why)),
                Ok(_) => {}
                Err(_) => self.over = true,
            }
        }
    }

    fn collect(&mut self) {
        let written = frames(&drain(self.session.outbox_mut()));
        self.written.extend(written);
    }

    /// Lets the application give the answer that was recorded, if it is its turn.
    fn answer(&mut self, recorded: &Frame) {
        let is_reply = matches!(recorded.kind, kind::RDISPATCH | kind::RREQ);
        let Some(call) = self.calls.get(&recorded.tag).copied().filter(|_| is_reply) else { return };
        self.calls.remove(&recorded.tag);
        let reply = if recorded.kind == kind::RDISPATCH {
            Rdispatch::decode(recorded.body.clone()).unwrap()
        } else {
            let Rreq { status, body } = Rreq::decode(recorded.body.clone()).unwrap();
            Rdispatch { status, body, ..Rdispatch::default() }
        };
        if reply.status == Status::Nack && !self.app_nacks {
            return;
        }
        let contexts = reply.contexts;
        assert!(self.session.reply(call, reply.status, |out| out.put_pairs(&contexts), reply.body));
    }

    /// Per tag: order between tags is the business of schedulers.
    fn by_tag(&mut self) -> BTreeMap<Tag, Vec<Vec<u8>>> {
        by_tag(std::mem::take(&mut self.written))
    }
}

fn by_tag(frames: Vec<Frame>) -> BTreeMap<Tag, Vec<Vec<u8>>> {
    let mut tags: BTreeMap<Tag, Vec<Vec<u8>>> = BTreeMap::new();
    for frame in frames {
        tags.entry(frame.tag).or_default().push(message(&frame));
    }
    tags
}

/// Entries that are about Mux: all of the Mux server's, and of the ThriftMux server's those whose first frame is Mux.
fn is_mux(entry: &Value) -> bool {
    let name = name(entry);
    match entry["server"].as_str() {
        Some("Mux") => true,
        Some("ThriftMux (binary)") => {
            let mixed = ["live-plain-reply-type-first", "live-plain-exception-type-first"];
            name.starts_with("live-mux-") || name.starts_with("live-first-frame-") || mixed.contains(&name)
        }
        _ => false,
    }
}

#[test]
fn odd_input_to_live_servers() {
    let entries = list("malformed_and_edge").iter().filter(|entry| !entry["send"].is_null());
    let (mux, others): (Vec<_>, Vec<_>) = entries.partition(|entry| is_mux(entry));
    let mut different = 0;
    for entry in &mux {
        println!("{}", name(entry));
        different += usize::from(ours(name(entry)).is_some());
        replay(entry);
    }
    assert_eq!((mux.len(), others.len(), different), (176, 47, 35));
}

fn replay(entry: &Value) {
    let mut run = Run::like_finagle();
    if entry["handshake_first"] == true {
        run.shake();
    }
    let difference = ours(name(entry));
    let mut all = Vec::new();
    for (step, send) in entry["send"].as_array().unwrap().iter().enumerate() {
        if let Some(hex) = send.get("frame") {
            run.send(&framed(&bytes(hex)), NOW);
        } else if let Some(hex) = send.get("raw") {
            run.send(&bytes(hex), NOW);
        } else if let Some(hex) = send.get("raw_one_byte_at_a_time") {
            bytes(hex).iter().for_each(|byte| run.send(&[*byte], NOW));
        } else {
            // The socket's end is the business of those who hold the socket.
            assert_eq!(send, "half-close");
            assert!(!run.over && run.session.take_all().count() <= 1);
            run.over = true;
        }
        let receive = entry["receive"].as_array().unwrap().iter().filter(|r| r["after_send"] == step);
        let recorded: Vec<_> = receive.map(|r| frame(&bytes(&r["frame"]))).collect();
        if difference.is_none() || difference == Some(Text) {
            answer_all(&mut run, &recorded);
            run.collect();
            compare(entry, run.by_tag(), by_tag(recorded), difference);
        } else {
            answer_or_echo(&mut run);
            run.collect();
            all.append(&mut run.written);
        }
    }
    let closed = text(entry, "verdict").starts_with("connection closed");
    match difference {
        None | Some(Text) => assert_eq!(run.over, closed),
        Some(difference) => check_difference(&run, &all, difference),
    }
}

fn answer_all(run: &mut Run, recorded: &[Frame]) {
    let mut pieces: BTreeMap<Tag, Vec<Frame>> = BTreeMap::new();
    for frame in recorded {
        let stream = pieces.entry(frame.tag).or_default();
        stream.push(frame.clone());
        if !frame.fragment {
            let whole = join(&std::mem::take(stream));
            run.answer(&whole);
        }
    }
}

fn answer_or_echo(run: &mut Run) {
    for (_, call) in std::mem::take(&mut run.calls) {
        let echo = if run.handed > 0 && run.refused.is_empty() { "echo" } else { "next" };
        let _ = run.session.reply(call, Status::Ok, |_| {}, Bytes::from(echo));
    }
}

fn compare(
    entry: &Value,
    mut written: BTreeMap<Tag, Vec<Vec<u8>>>,
    mut recorded: BTreeMap<Tag, Vec<Vec<u8>>>,
    difference: Option<Ours>,
) {
    if difference == Some(Text) {
        for frames in written.values_mut().chain(recorded.values_mut()) {
            let rerrs = frames.iter_mut().filter(|message| message[0] == kind::RERR_OLD as u8);
            rerrs
                .filter(|message| !message.ends_with(b"tinit check"))
                .for_each(|message| message.truncate(4));
        }
    }
    assert_eq!(written, recorded, "{}", name(entry));
}

fn check_difference(run: &Run, written: &[Frame], difference: Ours) {
    assert_eq!(run.over, difference == Closed);
    match difference {
        Error(number) => {
            let reply = written.iter().find(|frame| frame.tag.get() == number).expect("an answer");
            let status = if reply.kind == kind::RREQ {
                Rreq::decode(reply.body.clone()).unwrap().status
            } else {
                let reply = Rdispatch::decode(reply.body.clone()).unwrap();
                assert_eq!(MuxFailure::find(&reply.contexts), Some(MuxFailure::NON_RETRYABLE));
                reply.status
            };
            assert_eq!(status, Status::Error);
            assert!(matches!(run.refused[..], [(_, Refusal::Malformed(_))]));
            // Whatever else was sent was served.
            assert_eq!(written.len(), 1 + run.handed);
        }
        Handed => assert!(run.refused.is_empty()),
        Ours::Frames(expected) => {
            assert_eq!(written.len(), expected.len());
            for (frame, hex) in written.iter().zip(expected) {
                assert!(message(frame).starts_with(&bytes(&(*hex).into())), "{frame:?} is not {hex}");
            }
        }
        Closed => assert!(written.is_empty()),
        Text => {}
    }
}

/// Transcripts of other protocols, and what is tried elsewhere or is not ours.
fn not_replayed(name: &str) -> bool {
    name.starts_with("s-downgraded-")
        || name.starts_with("s-thriftmux-")
        // Bytes behind the switch, see `compress.rs`.
        || name == "s-compressed-response-bytes"
        // Sizes only, see `a_reply_partly_written_is_cut_off`.
        || name == "s-partial-reply-discarded"
}

#[test]
fn transcripts_of_live_servers() {
    let all = list("transcripts").iter().filter(|entry| name(entry).starts_with("s-"));
    let (skipped, mux): (Vec<_>, Vec<_>) = all.partition(|entry| not_replayed(name(entry)));
    for entry in &mux {
        println!("{}", name(entry));
        transcript(entry);
    }
    assert_eq!((mux.len(), skipped.len()), (28, 6));
}

fn transcript(entry: &Value) {
    let name = name(entry);
    let tls = if name.contains("opptls-server-required") { TlsLevel::Required } else { TlsLevel::Off };
    let level = if name.contains("compress-server-desired") {
        CompressionLevel::Desired
    } else if name.contains("compress-server-accepted") {
        CompressionLevel::Accepted
    } else {
        CompressionLevel::Off
    };
    let offer = Offer { window: UNLIMITED, tls, compression: Compression::both(level) };
    let mut run = Run::new(offer, name.contains("nackonexpiredlease"));
    let mut now = NOW;
    if name.contains("refused") {
        run.session.refuse();
    }
    let steps = entry["steps"].as_array().unwrap();
    let first = steps.iter().find_map(|step| step["scripted_client_sends"].as_str()).unwrap_or("");
    if first.starts_with("44") {
        // Recorded from the Tinit on.
        run.send(&framed(&bytes(&"7f00000174696e697420636865636b".into())), now);
        run.collect();
        run.written.clear();
    } else if !name.contains("unnegotiated") && (name.starts_with("s-drain") || name.starts_with("s-lease")) {
        run.shake();
    }
    // Nacks of these are the session's, not the application's.
    run.app_nacks = !["s-drain", "s-lease", "s-session-refused"].iter().any(|part| name.starts_with(part));
    let (mut recorded, mut written) = (Vec::new(), Vec::new());
    for step in steps {
        if let Some(hex) = step.get("scripted_client_sends") {
            // "expired" is the body of a request that came when the lease was out.
            let pause = if bytes(hex).ends_with(b"expired") { 800 } else { 1 };
            now += Duration::from_millis(pause);
            run.send(&framed(&bytes(hex)), now);
        } else if let Some(hex) = step.get("finagle_server_sends") {
            let expected = frame(&bytes(hex));
            // Long replies are answered once, by what all their pieces say.
            let long = expected.fragment.then(|| join(&pieces_from(steps, expected.tag)));
            let whole = long.unwrap_or_else(|| expected.clone());
            run.answer(&whole);
            recorded.push(expected);
        } else if let Some(event) = step["event"].as_str() {
            server_event(&mut run, event, now);
        } else {
            assert_eq!(step["finagle_server"], "closed the connection");
            run.collect();
            let deadline = name.contains("deadline") || name == "s-close-before-any-message";
            assert!(run.over || run.session.is_drained() || deadline);
        }
        run.collect();
        written.append(&mut run.written);
    }
    compare(entry, by_tag(written), by_tag(recorded), ours(name));
}

/// The pieces of the long reply that was recorded for a tag.
fn pieces_from(steps: &[Value], tag: Tag) -> Vec<Frame> {
    let sent = steps.iter().filter_map(|step| step.get("finagle_server_sends")).map(|hex| frame(&bytes(hex)));
    let mut pieces: Vec<_> = sent.filter(|frame| frame.tag == tag && frame.kind == kind::RDISPATCH).collect();
    let end = pieces.iter().position(|frame| !frame.fragment).expect("last piece");
    pieces.truncate(end + 1);
    pieces
}

/// Does what the event says happened on the server's side.
fn server_event(run: &mut Run, event: &str, now: Duration) {
    if event.starts_with("server.close") {
        run.session.drain();
    } else if let Some(length) = event.strip_prefix("lessee.issue(").and_then(|rest| rest.strip_suffix(')')) {
        match length {
            "700ms" => run.session.lease(700, now),
            "100s" => run.session.lease(100_000, now),
            // Recorded from the second on.
            "1500ms" => {}
            "0" => run.session.lease(0, now),
            "Duration.Top" => run.session.lease(u32::MAX, now),
            other => panic!("{other}"),
        }
    } else if event.starts_with("issue max") {
        run.session.lease(u32::MAX, now);
    }
}

#[test]
fn a_reply_partly_written_is_cut_off() {
    // As in s-partial-reply-discarded: a window of 1 MiB, a reply of 40 MB of which a few pieces are out.
    let mut run = Run::like_finagle();
    run.send(&framed(&bytes(&"7f00000174696e697420636865636b".into())), NOW);
    run.send(&framed(&bytes(&"4400000100010000000a6d75782d6672616d65720000000400100000".into())), NOW);
    run.send(&framed(&bytes(&"020000020000000000006269673a3430303030303030".into())), NOW);
    run.collect();
    run.written.clear();
    let call = run.calls.remove(&Tag::FIRST).unwrap();
    run.session.reply(call, Status::Ok, |_| {}, Bytes::from(vec![b'A'; 40_000_000]));
    let outbox = run.session.outbox_mut();
    let mut out = Vec::new();
    for _ in 0..4 {
        let piece = outbox.copy_to_bytes(outbox.remaining().min(8 + (1 << 20)));
        out.extend_from_slice(&piece);
    }
    let discarded = frame(&bytes(&"c200000000000278".into()));
    assert_eq!(run.session.receive(discarded, NOW), Ok(ServerEvent::Nothing));
    out.extend_from_slice(&drain(run.session.outbox_mut()));
    let seen: Vec<_> = frames(&out).iter().map(|f| (f.kind, f.fragment, f.body.len())).collect();
    let piece = (kind::RDISPATCH, true, 1 << 20);
    assert_eq!(seen, [piece, piece, piece, piece, (kind::RDISCARDED, false, 0)]);
}
