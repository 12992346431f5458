//! Conversations of running Finagle clients with scripted servers, held by our client session: what the Finagle client
//! sent we send too, in answer to the same.

use crate::data::{bytes, drain, frame, frames, join, list, message, name};
use bytes::Bytes;
use muxgate_wire::mux::client::{
    CallFailure, ClientConfig, ClientSession, DispatchHead, Event, Refused, SessionStatus, Why,
};
use muxgate_wire::mux::context::{ContextWriter, MuxFailure};
use muxgate_wire::mux::frame::{Frame, Tag, kind};
use muxgate_wire::mux::handshake::{Compression, CompressionLevel, Offer, TlsLevel, UNLIMITED};
use muxgate_wire::mux::message::{Rdispatch, Status, Tdiscarded, Tdispatch, Treq};
use muxgate_wire::mux::session::{Call, SessionError};
use muxgate_wire::pairs::Pairs;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

const NOW: Duration = Duration::ZERO;

struct Run {
    session: ClientSession<u32>,
    calls: BTreeMap<Tag, Call>,
    replies: Vec<Rdispatch>,
    failures: Vec<CallFailure>,
    end: Option<SessionError>,
    written: Vec<Frame>,
}

impl Run {
    fn new(handshake: bool, tls: TlsLevel) -> Self {
        Self::offering(handshake, Offer { window: UNLIMITED, tls, ..Offer::default() })
    }

    fn offering(handshake: bool, offer: Offer) -> Self {
        let config = ClientConfig { handshake, offer, ping_interval: None, ..ClientConfig::default() };
        Self {
            session: ClientSession::new(config),
            calls: BTreeMap::new(),
            replies: Vec::new(),
            failures: Vec::new(),
            end: None,
            written: Vec::new(),
        }
    }

    fn receive(&mut self, message: &[u8]) {
        match self.session.receive(frame(message), NOW) {
            Ok(Some(Event::Replied { reply, .. })) => self.replies.push(reply),
            Ok(Some(Event::Failed { why, .. })) => self.failures.push(why),
            Ok(_) => {}
            Err(error) => self.end = Some(error),
        }
    }

    fn dispatch(&mut self, request: &Tdispatch) -> Result<Call, (u32, Refused)> {
        let Tdispatch { contexts, dst, dtab, body } = request;
        let head = DispatchHead { contexts: |out| out.put_pairs(contexts), dst, dtab };
        self.session.dispatch(0, head, body.clone())
    }

    /// Does what makes a client send this, if it is not an answer that is sent without asking.
    fn provoke(&mut self, frame: &Frame) {
        match frame.kind {
            kind::TDISPATCH => {
                let request = Tdispatch::decode(frame.body.clone()).unwrap();
                let call = self.dispatch(&request).unwrap();
                self.calls.insert(call.tag(), call);
            }
            kind::TREQ => {
                let Treq { trace, body } = Treq::decode(frame.body.clone()).unwrap();
                let head = DispatchHead {
                    contexts: |out: &mut ContextWriter<'_>| out.put_trace(&trace.unwrap()),
                    dst: b"",
                    dtab: &Pairs::default(),
                };
                let call = self.session.dispatch(0, head, body).unwrap();
                self.calls.insert(call.tag(), call);
            }
            kind::TDISCARDED_OLD => {
                let Tdiscarded { which, why } = Tdiscarded::decode(frame.body.clone()).unwrap();
                let call = self.calls.remove(&Tag::new(which).unwrap()).expect("in flight");
                self.session.cancel(call, &why).expect("live");
            }
            _ => {}
        }
    }

    fn collect(&mut self) {
        let written = frames(&drain(self.session.outbox_mut()));
        self.written.extend(written);
    }
}

/// Conversations that are not held, by name or beginning, and why.
const NOT_HELD: [(&str, &str); 9] = [
    (
        "c-client-cancel-tag-lifecycle",
        "that client took tag 4 before it read the Rdiscarded that freed 2; see unit tests",
    ),
    ("c-thrift", "other protocols, or ThriftMux on top of the same Mux"),
    ("c-client-lz4-headers", "bytes behind the switch, see `compress.rs`"),
    ("c-client-fragments-interleave", "several messages at once, see below"),
    ("c-client-cancel-partial-write", "sizes only, see below"),
    ("c-client-pings", "see below"),
    ("c-client-default-ping-timing", "see below"),
    ("c-client-superseded-backup", "recorded without its request; reasons are passed on as they are"),
    ("c-client-inflight-when-server-closes", "nothing on the wire"),
];

/// Where the session ends otherwise than Finagle's, or does not.
const DIFFERENT: [(&str, &str); 1] =
    [("c-client-gets-unknown-type", "unknown application type: Rerr and go on; Finagle's session is dead")];

fn is_held(name: &str) -> bool {
    name.starts_with("c-") && !NOT_HELD.iter().any(|(other, _)| name.starts_with(other))
}

#[test]
fn conversations_of_live_clients() {
    let all = list("transcripts").iter().filter(|entry| name(entry).starts_with("c-"));
    let (held, others): (Vec<_>, Vec<_>) = all.partition(|entry| is_held(name(entry)));
    for entry in &held {
        println!("{}", name(entry));
        converse(entry);
    }
    assert_eq!((held.len(), others.len()), (58, 21));
}

fn converse(entry: &Value) {
    let name = name(entry);
    let steps = entry["steps"].as_array().unwrap();
    let mut run = start(name, steps);
    for step in steps {
        if let Some(hex) = step.get("finagle_client_sends") {
            let expected = frame(&bytes(hex));
            if step_is_reconnect(&run, &expected) {
                break;
            }
            run.collect();
            if !run.written.contains(&expected) {
                run.provoke(&expected);
                run.collect();
            }
            let place = run.written.iter().position(|frame| *frame == expected);
            let place = place.unwrap_or_else(|| panic!("{expected:?} was not sent but {:?}", run.written));
            run.written.remove(place);
        } else if let Some(hex) = step.get("scripted_server_sends") {
            run.receive(&bytes(hex));
        } else if let Some(event) = step["event"].as_str() {
            check_event(name, &run, event);
        } else if step["finagle_client"] == "closed the connection" {
            let finished = run.session.status(NOW) == SessionStatus::Closed;
            assert!(run.end.is_some() || finished);
        }
    }
    run.collect();
    check_rest(name, &run);
}

/// Many were recorded from some point on; brings the session there.
fn start(name: &str, steps: &[Value]) -> Run {
    let probe = frame(&bytes(&"7f00000174696e697420636865636b".into()));
    let sent: Vec<_> = steps.iter().filter_map(|step| step.get("finagle_client_sends")).collect();
    let first = steps.iter().find_map(|step| step.get("scripted_server_sends"));
    let tls = if name.contains("tls-required-vs-no") {
        TlsLevel::Required
    } else if name.contains("tls-desired") {
        TlsLevel::Desired
    } else {
        TlsLevel::Off
    };
    let whole = sent.first().is_some_and(|hex| frame(&bytes(hex)) == probe);
    let from_tinit =
        ["rinit-version-2", "rinit-other-tag", "tinit-answered"].iter().any(|part| name.contains(part));
    let level = if name.contains("compress") { CompressionLevel::Desired } else { CompressionLevel::Off };
    let offer = Offer { window: UNLIMITED, tls, compression: Compression::both(level) };
    let mut run = Run::offering(whole || from_tinit, offer);
    if !whole && !from_tinit && name != "c-client-downgrades-to-treq-on-rerr" {
        // Recorded in mid-session: the server has shown that it knows Tdispatch.
        run.dispatch(&Tdispatch::default()).unwrap();
        run.receive(&bytes(&"fe000002000000".into()));
        run.collect();
        run.written.clear();
        run.replies.clear();
    }
    if name == "c-client-tdrain" {
        // Recorded from the drain on; a call is in flight.
        run.dispatch(&Tdispatch::default()).unwrap();
        run.collect();
        run.written.clear();
    }
    if from_tinit {
        assert!(first.is_some());
        run.receive(&message(&probe));
        run.collect();
        run.written.clear();
    }
    run
}

/// A probe in mid-session begins another connection.
fn step_is_reconnect(run: &Run, expected: &Frame) -> bool {
    expected.kind == kind::RERR_OLD && (run.session.is_established() || run.end.is_some())
        || expected.kind == kind::RERR_OLD && run.written.is_empty() && run.session.outbox().is_empty()
}

fn check_event(name: &str, run: &Run, event: &str) {
    if let Some(done) = event.strip_prefix("DONE ") {
        let outcome = done.split_once(' ').unwrap().1;
        if let Some(ok) = outcome.strip_prefix("OK body=") {
            let reply = run.replies.last().unwrap();
            let body = ok.split(' ').next().unwrap();
            assert_eq!((reply.status, &reply.body[..]), (Status::Ok, &bytes(&body.into())[..]));
        } else {
            check_failure(name, run, outcome);
        }
    }
    if event == "STATUS Busy" {
        let status = run.session.status(NOW);
        assert!(matches!(status, SessionStatus::Busy(Why::Lease | Why::Draining)), "{status:?}");
    }
    // Finagle shows a pool as open whose session is dead; ours says so.
    if event == "STATUS Open" && run.end.is_none() && run.calls.len() == 1 {
        assert_ne!(run.session.status(NOW), SessionStatus::Busy(Why::Lease));
    }
}

fn check_failure(name: &str, run: &Run, outcome: &str) {
    let failed = run.replies.last().is_some_and(|reply| reply.status != Status::Ok);
    // A body that does not parse, and a flag that contradicts another, are for those who look into replies.
    let lenient = name == "c-client-ok-with-bad-response-headers";
    let cancelled = run.calls.is_empty();
    let closed = outcome.contains("ChannelClosed");
    let different = DIFFERENT.iter().any(|(other, _)| *other == name);
    let ended = run.end.is_some() || !run.failures.is_empty();
    assert!(failed || lenient || cancelled || closed || different || ended, "{outcome}");
    let flags = run.replies.last().and_then(|reply| MuxFailure::find(&reply.contexts)).unwrap_or_default();
    if outcome.contains("flags=rejected(8)") {
        assert!(flags.is_rejected() && !flags.is_retryable() && !flags.is_non_retryable());
    }
    if outcome.contains("flags=nonretryable(16)") {
        assert!(flags.is_non_retryable() && !flags.is_retryable());
    }
    if let Some(CallFailure::Rerr(text)) = run.failures.last() {
        // "c-client-frag-then-rerr-same-tag": Finagle puts the partial reply in front of the text.
        let own = if name.contains("frag-then-rerr") { &b"oops"[..] } else { &text[..] };
        assert_eq!(text, own);
        assert!(outcome.contains(std::str::from_utf8(text).unwrap()));
    }
}

/// Nothing was sent that the Finagle client did not send, save as said.
fn check_rest(name: &str, run: &Run) {
    let rest: Vec<_> = run.written.iter().map(|frame| frame.kind).collect();
    match name {
        // Finagle throws the ping away.
        "c-client-probe-answered-by-tping-message-lost" => assert_eq!(rest, [kind::RPING]),
        "c-client-gets-unknown-type" => {
            assert_eq!(rest, [kind::RERR_OLD]);
            assert_eq!((&run.end, run.session.in_flight()), (&None, 1));
        }
        _ => assert!(rest.is_empty(), "{name}: {rest:?}"),
    }
    let dead = ["gets-tdispatch", "gets-treq", "gets-tlease-unit-1", "rdispatch-status-3"];
    if dead.iter().any(|part| name.ends_with(part)) {
        assert!(run.end.is_some());
    }
}

#[test]
fn an_rerr_after_a_handshake_fails_its_call_only() {
    // Finagle's client falls back to Treq here too, as in c-client-downgrades-to-treq-on-rerr, and loses all contexts.
    let mut run = Run::new(true, TlsLevel::Off);
    run.receive(&bytes(&"7f00000174696e697420636865636b".into()));
    run.receive(&bytes(&"bc0000010001".into()));
    run.dispatch(&Tdispatch::default()).unwrap();
    run.receive(&bytes(&"80000002646f6e74206b6e6f77".into()));
    assert_eq!(run.failures, [CallFailure::Rerr(Bytes::from_static(b"dont know"))]);
    run.dispatch(&Tdispatch::default()).unwrap();
    run.collect();
    assert_eq!(run.written.last().map(|frame| frame.kind), Some(kind::TDISPATCH));
}

#[test]
fn fragments_interleave_as_finagles_do() {
    let entry =
        list("transcripts").iter().find(|entry| name(entry) == "c-client-fragments-interleave").unwrap();
    let steps = entry["steps"].as_array().unwrap();
    let sent = |step: &Value| step.get("finagle_client_sends").map(|hex| frame(&bytes(hex)));
    let recorded: Vec<_> =
        steps.iter().filter_map(sent).filter(|frame| frame.kind == kind::TDISPATCH).collect();
    let of = |number: u32| recorded.iter().filter(|f| f.tag.get() == number).cloned().collect::<Vec<_>>();
    let mut run = Run::new(true, TlsLevel::Off);
    for hex in steps.iter().filter_map(|step| step.get("scripted_server_sends")) {
        run.receive(&bytes(hex));
    }
    run.collect();
    run.written.clear();
    for number in [2, 3] {
        let request = Tdispatch::decode(join(&of(number)).body).unwrap();
        assert_eq!(run.dispatch(&request).unwrap().tag().get(), number);
    }
    run.collect();
    assert_eq!(run.written.len(), recorded.len());
    for number in [2, 3] {
        let ours: Vec<_> = run.written.iter().filter(|f| f.tag.get() == number).cloned().collect();
        assert_eq!(ours, of(number));
    }
    // In rounds: neither message is ever more than one piece ahead of the other, until the shorter one ends.
    let tags: Vec<_> = run.written.iter().map(|f| f.tag.get()).collect();
    let shorter = of(2).len().min(of(3).len());
    assert!(tags.chunks_exact(2).take(shorter).all(|round| round == [2, 3]), "{tags:?}");
}

#[test]
fn a_request_partly_written_is_cut_off() {
    // As in c-client-cancel-partial-write: 30 MB, a window of 1 MiB, a few pieces out.
    let mut run = Run::new(true, TlsLevel::Off);
    run.receive(&bytes(&"7f00000174696e697420636865636b".into()));
    run.receive(&bytes(&"bc00000100010000000a6d75782d6672616d65720000000400100000".into()));
    run.collect();
    run.written.clear();
    let body = Bytes::from(vec![b'B'; 30_000_000]);
    let call = run.dispatch(&Tdispatch { body, ..Tdispatch::default() }).unwrap();
    let mut out = Vec::new();
    for _ in 0..4 {
        let outbox = run.session.outbox_mut();
        let piece = bytes::Buf::copy_to_bytes(outbox, bytes::Buf::remaining(outbox).min(8 + (1 << 20)));
        out.extend_from_slice(&piece);
    }
    assert_eq!(run.session.cancel(call, b"java.lang.Exception: partial"), Some(0));
    out.extend_from_slice(&drain(run.session.outbox_mut()));
    let seen: Vec<_> = frames(&out).iter().map(|f| (f.kind, f.fragment, f.body.len())).collect();
    let piece = (kind::TDISPATCH, true, 1 << 20);
    assert_eq!(seen, [piece, piece, piece, piece, (kind::TDISCARDED_OLD, false, 31)]);
    // The tag stays reserved.
    for number in [3, 4] {
        assert_eq!(run.dispatch(&Tdispatch::default()).unwrap().tag().get(), number);
    }
}

#[test]
fn pings_keep_finagles_time() {
    // c-client-default-ping-timing: at once after Rinit, then every 5 s. c-client-pings: any Rping will do.
    let config = ClientConfig { ping_interval: Some(Duration::from_secs(5)), ..ClientConfig::default() };
    let mut session: ClientSession<u32> = ClientSession::new(config);
    let at = Duration::from_millis;
    session.receive(frame(&bytes(&"7f00000174696e697420636865636b".into())), at(0)).unwrap();
    drain(session.outbox_mut());
    session.receive(frame(&bytes(&"bc0000010001".into())), at(10)).unwrap();
    let ping = [0, 0, 0, 4, kind::TPING as u8, 0, 0, 1];
    assert_eq!(drain(session.outbox_mut()), ping);
    session.receive(frame(&bytes(&"bf000007".into())), at(20)).unwrap();
    assert_eq!(session.tick(at(5009)), Ok(Some(at(5010))));
    assert!(drain(session.outbox_mut()).is_empty());
    session.tick(at(5010)).unwrap();
    assert_eq!(drain(session.outbox_mut()), ping);
    assert_eq!(session.tick(at(9010)), Err(SessionError::PingTimeout));
}
