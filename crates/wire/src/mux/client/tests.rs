use super::super::context::{ContextWriter, TraceContext};
use super::super::frame::{Frame, next_frame};
use super::super::handshake::{Compression, CompressionLevel, HandshakeError, PROBE, TlsLevel};
use super::super::message::{Init, Message, Status, Tdiscarded, Tdispatch, Tlease};
use super::super::outbox::EncodeError;
use super::*;
use crate::pairs::{Pairs, PairsError};
use bytes::{Buf, BytesMut};

const T0: Duration = Duration::ZERO;

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn frame(kind: i8, tag: u32, body: &[u8]) -> Frame {
    Frame { kind, tag: Tag::new(tag).unwrap(), fragment: false, body: Bytes::copy_from_slice(body) }
}

fn piece(kind: i8, tag: u32, body: &[u8]) -> Frame {
    Frame { fragment: true, ..frame(kind, tag, body) }
}

fn rinit(offer: Offer) -> Frame {
    let mut body = BytesMut::new();
    offer.to_rinit(&Init::default()).encode(&mut body);
    frame(kind::RINIT, 1, &body)
}

/// Writes everything; what was written, as (type, tag, fragment, body).
fn written<T>(session: &mut ClientSession<T>) -> Vec<Frame> {
    let outbox = session.outbox_mut();
    let mut bytes = BytesMut::new();
    while outbox.has_remaining() {
        let chunk = outbox.chunk().to_vec();
        outbox.advance(chunk.len());
        bytes.extend_from_slice(&chunk);
    }
    std::iter::from_fn(|| next_frame(&mut bytes, u32::MAX).unwrap()).collect()
}

fn kinds<T>(session: &mut ClientSession<T>) -> Vec<(i8, u32)> {
    written(session).iter().map(|frame| (frame.kind, frame.tag.get())).collect()
}

fn config() -> ClientConfig {
    ClientConfig { handshake: false, ping_interval: None, ..ClientConfig::default() }
}

/// A session without handshake and pings: what it writes is what the test is about.
fn running() -> ClientSession<u32> {
    ClientSession::new(config())
}

fn send<T>(session: &mut ClientSession<T>, token: T, body: impl Into<Bytes>) -> Result<Call, (T, Refused)> {
    let head = DispatchHead { contexts: |_| {}, dst: b"/s", dtab: &Pairs::default() };
    session.dispatch(token, head, body.into())
}

fn ok(tag: u32) -> Frame {
    frame(kind::RDISPATCH, tag, b"\0\0\0done")
}

fn replied(token: u32) -> Option<Event<u32>> {
    let reply = Rdispatch { body: Bytes::from_static(b"done"), ..Rdispatch::default() };
    Some(Event::Replied { token, reply })
}

#[test]
fn probing_to_offering_to_running() {
    let mut session = ClientSession::new(ClientConfig::default());
    assert_eq!(written(&mut session), [frame(127, 1, PROBE)]);
    assert_eq!(session.tick(T0), Ok(Some(secs(10))));
    assert_eq!(session.status(T0), SessionStatus::Open);
    send(&mut session, 1, "early").unwrap();
    // Nothing may be sent while the handshake lasts, pings neither.
    assert_eq!(session.tick(secs(6)), Ok(Some(secs(10))));
    assert_eq!(kinds(&mut session), []);
    assert_eq!(session.receive(frame(-128, 1, PROBE), T0), Ok(None));
    let offer = written(&mut session);
    let Ok(Message::Tinit(init)) = Message::decode(offer[0].kind, offer[0].body.clone()) else { panic!() };
    assert_eq!((offer.len(), init), (1, Offer::default().to_tinit()));
    let peer = Offer { window: 4, ..Offer::default() };
    let agreed = Agreed { handshake: true, window: 4, ..Agreed::NOTHING };
    assert_eq!(session.receive(rinit(peer), secs(7)), Ok(Some(Event::Established(agreed))));
    let first = written(&mut session);
    assert_eq!((first[0].kind, first[1].kind, first[1].fragment), (kind::TPING, kind::TDISPATCH, true));
    let body: Vec<u8> = first[1..].iter().flat_map(|frame| frame.body.to_vec()).collect();
    let request = Tdispatch::decode(body.into()).unwrap();
    assert_eq!((&request.dst[..], &request.body[..]), (&b"/s"[..], &b"early"[..]));
    assert_eq!(session.receive(ok(2), secs(7)), Ok(replied(1)));
    assert_eq!(session.next_tick(), Some(secs(11)));
}

#[test]
fn probing_to_running_without_handshake() {
    let refusal = frame(-128, 1, b"unknown");
    let (wrong_tag, reply) = (frame(127, 2, PROBE), ok(2));
    let ping = frame(kind::TPING, 9, b"");
    for (answer, sent) in
        [(refusal, vec![]), (wrong_tag, vec![]), (reply, vec![]), (ping, vec![(kind::RPING, 9)])]
    {
        let mut session = ClientSession::new(ClientConfig { ping_interval: None, ..ClientConfig::default() });
        written(&mut session);
        send(&mut session, 1, "early").unwrap();
        let event = session.receive(answer, T0).unwrap();
        assert_eq!(event, Some(Event::Established(Agreed::NOTHING)));
        assert!(session.is_established());
        let mut expected = vec![(kind::TDISPATCH, 2)];
        expected.extend(sent);
        assert_eq!(kinds(&mut session), expected);
    }
}

#[test]
fn handshakes_that_fail() {
    let no_window = Init { version: 1, headers: vec![(Bytes::from_static(b"mux-framer"), Bytes::new())] };
    let mut body = BytesMut::new();
    no_window.encode(&mut body);
    let required = Offer { tls: TlsLevel::Required, ..Offer::default() };
    let cases = [
        (frame(kind::RINIT, 1, b"\0\x02"), HandshakeError::Version(2)),
        (frame(kind::RINIT, 1, &body), HandshakeError::Window),
        (rinit(required), HandshakeError::Tls),
        (frame(-128, 1, b"no way"), HandshakeError::Refused("no way".into())),
        (frame(kind::TPING, 1, b""), HandshakeError::Unexpected(kind::TPING)),
        (piece(kind::RINIT, 1, b"\0\x01"), HandshakeError::Unexpected(kind::RINIT)),
    ];
    for (answer, error) in cases {
        let mut session: ClientSession<u32> = ClientSession::new(ClientConfig::default());
        send(&mut session, 1, "early").unwrap();
        session.receive(frame(127, 1, PROBE), T0).unwrap();
        assert_eq!(session.receive(answer, T0), Err(SessionError::Handshake(error)));
        assert_eq!(session.status(T0), SessionStatus::Closed);
        assert_eq!(session.take_all(), [Unfinished { token: 1, written: false }]);
    }
    let mut session: ClientSession<u32> = ClientSession::new(ClientConfig::default());
    let garbage = session.receive(frame(0, 9, b"zz"), T0);
    assert_eq!(garbage, Err(SessionError::UnknownType(0)));
    let offer = required;
    let mut session: ClientSession<u32> =
        ClientSession::new(ClientConfig { offer, ..ClientConfig::default() });
    let plain = session.receive(frame(-128, 1, b"?"), T0);
    assert_eq!(plain, Err(SessionError::Handshake(HandshakeError::Tls)));
}

#[test]
fn offering_to_switching_to_running() {
    let offer = Offer { tls: TlsLevel::Desired, ..Offer::default() };
    let mut session = ClientSession::new(ClientConfig { offer, ..ClientConfig::default() });
    send(&mut session, 1, "early").unwrap();
    session.receive(frame(127, 1, PROBE), T0).unwrap();
    written(&mut session);
    let event = session.receive(rinit(offer), T0);
    assert!(matches!(event, Ok(Some(Event::Established(Agreed { tls: true, .. })))));
    send(&mut session, 2, "too").unwrap();
    assert_eq!(kinds(&mut session), [], "nothing in clear after Rinit");
    session.switched(secs(1));
    assert_eq!(kinds(&mut session), [(kind::TPING, 1), (kind::TDISPATCH, 2), (kind::TDISPATCH, 3)]);
}

#[test]
fn switching_to_closed() {
    let compression = Compression::both(CompressionLevel::Desired);
    let offer = Offer { compression, ..Offer::default() };
    let new = || {
        let mut session: ClientSession<u32> =
            ClientSession::new(ClientConfig { offer, ..ClientConfig::default() });
        session.tick(secs(1)).unwrap();
        session.receive(frame(127, 1, PROBE), T0).unwrap();
        session
    };
    let answer = |compress: &'static [u8]| {
        let headers = vec![(Bytes::from_static(b"compress"), Bytes::from_static(compress))];
        let mut body = BytesMut::new();
        Init { version: 1, headers }.encode(&mut body);
        frame(kind::RINIT, 1, &body)
    };
    let mut session = new();
    let end = session.receive(answer(b"zip;"), T0);
    assert_eq!(end, Err(SessionError::Handshake(HandshakeError::Compression("zip;".into()))));
    let mut session = new();
    let event = session.receive(answer(b"lz4;"), T0);
    assert!(matches!(event, Ok(Some(Event::Established(agreed))) if agreed.compressed.requests));
    assert_eq!(session.receive(ok(2), T0), Err(SessionError::Unexpected(kind::RDISPATCH)));
    let mut session = new();
    session.receive(answer(b";lz4"), T0).unwrap();
    assert_eq!(session.tick(secs(11)), Err(SessionError::HandshakeTimeout));
    assert_eq!(session.status(T0), SessionStatus::Closed);
}

#[test]
fn a_handshake_has_its_time() {
    let mut session: ClientSession<u32> = ClientSession::new(ClientConfig::default());
    session.tick(secs(3)).unwrap();
    assert_eq!(session.tick(secs(13)), Err(SessionError::HandshakeTimeout));
    assert_eq!(session.tick(secs(13)), Err(SessionError::Closed));
    assert_eq!(session.receive(ok(2), T0), Err(SessionError::Closed));
}

#[test]
fn what_waits_for_the_handshake_is_bounded_and_can_be_taken_back() {
    let mut session = ClientSession::new(ClientConfig { max_held: 2, ..ClientConfig::default() });
    let first = send(&mut session, 1, "").unwrap();
    send(&mut session, 2, "").unwrap();
    assert_eq!(session.status(T0), SessionStatus::Busy(Why::Handshake));
    assert_eq!(send(&mut session, 3, ""), Err((3, Refused::Handshake)));
    assert_eq!(session.cancel(first, b"why"), Some(1));
    assert_eq!(session.in_flight(), 1);
    assert_eq!(send(&mut session, 3, "").unwrap().tag(), first.tag());
    session.receive(frame(-128, 1, b"no"), T0).unwrap();
    let sent = [(127, 1), (kind::TPING, 1), (kind::TDISPATCH, 3), (kind::TDISPATCH, 2)];
    assert_eq!(kinds(&mut session), sent);
}

#[test]
fn every_kind_of_answer_frees_the_tag() {
    let mut session = running();
    let unexpected = |token, kind| Some(Event::Failed { token, why: CallFailure::Unexpected(kind) });
    let rerr = |token| Some(Event::Failed { token, why: CallFailure::Rerr(Bytes::from_static(b"oops")) });
    let rreq = Rdispatch { status: Status::Error, body: Bytes::from_static(b"e"), ..Rdispatch::default() };
    let cases = [
        (ok(2), replied(0)),
        (frame(kind::RREQ, 2, b"\x01e"), Some(Event::Replied { token: 1, reply: rreq })),
        (frame(kind::RERR, 2, b"oops"), rerr(2)),
        (frame(kind::RERR_OLD, 2, b"oops"), rerr(3)),
        (frame(kind::RDISCARDED, 2, b""), unexpected(4, kind::RDISCARDED)),
        (frame(kind::RINIT, 2, b"\0\x01"), unexpected(5, kind::RINIT)),
        (frame(kind::RDRAIN, 2, b""), unexpected(6, kind::RDRAIN)),
        (frame(-3, 2, b""), unexpected(7, -3)),
    ];
    for ((answer, event), token) in cases.into_iter().zip(0..) {
        assert_eq!(send(&mut session, token, "x").unwrap().tag(), Tag::FIRST);
        assert_eq!(session.receive(answer, T0), Ok(event));
        assert_eq!(session.in_flight(), 0);
    }
    assert_eq!(session.receive(ok(2), T0), Ok(None));
    assert_eq!(session.receive(ok(99), T0), Ok(None));
    assert_eq!(session.counts().late_replies, 2);
}

#[test]
fn unproven_to_treq() {
    let mut session = running();
    let trace = TraceContext { span_id: 1, parent_id: 2, trace_id: 3, trace_id_high: Some(4), flags: 6 };
    let dispatch = |session: &mut ClientSession<u32>, token, body: &'static [u8]| {
        let head = DispatchHead {
            contexts: |out: &mut ContextWriter<'_>| out.put_trace(&trace),
            dst: b"/s",
            dtab: &Pairs::default(),
        };
        session.dispatch(token, head, Bytes::from_static(body)).unwrap()
    };
    dispatch(&mut session, 1, b"one");
    let two = dispatch(&mut session, 2, b"two");
    assert_eq!(kinds(&mut session), [(kind::TDISPATCH, 2), (kind::TDISPATCH, 3)]);
    for (number, body) in [(2, &b"one"[..]), (3, b"two")] {
        assert_eq!(session.receive(frame(kind::RERR_OLD, number, b"what?"), T0), Ok(None));
        let sent = written(&mut session).pop().unwrap();
        let treq = Treq::decode(sent.body).unwrap();
        assert_eq!((sent.kind, sent.tag.get(), &treq.body[..]), (kind::TREQ, number, body));
        assert_eq!(treq.trace, Some(TraceContext { trace_id_high: None, ..trace }));
    }
    dispatch(&mut session, 3, b"three");
    assert_eq!(kinds(&mut session), [(kind::TREQ, 4)], "from now on");
    let reply = Rdispatch { body: Bytes::from_static(b"r"), ..Rdispatch::default() };
    assert_eq!(
        session.receive(frame(kind::RREQ, 2, b"\0r"), T0),
        Ok(Some(Event::Replied { token: 1, reply }))
    );
    let why = CallFailure::Rerr(Bytes::from_static(b"again"));
    let failed = session.receive(frame(kind::RERR_OLD, 4, b"again"), T0);
    assert_eq!(failed, Ok(Some(Event::Failed { token: 3, why })), "twice is enough");
    assert_eq!(session.cancel(two, b"why"), Some(2));
    assert_eq!(kinds(&mut session), [(kind::TDISCARDED_OLD, 0)]);
}

#[test]
fn unproven_to_tdispatch() {
    // An answer proves it, also an error; so does a handshake.
    let mut session = running();
    send(&mut session, 1, "x").unwrap();
    send(&mut session, 2, "y").unwrap();
    session.receive(frame(kind::RDISPATCH, 2, b"\x01\0\0no"), T0).unwrap();
    let failed =
        |token| Ok(Some(Event::Failed { token, why: CallFailure::Rerr(Bytes::from_static(b"what?")) }));
    assert_eq!(session.receive(frame(kind::RERR, 3, b"what?"), T0), failed(2));
    let mut session = ClientSession::new(ClientConfig { ping_interval: None, ..ClientConfig::default() });
    send(&mut session, 3, "held").unwrap();
    session.receive(frame(127, 1, PROBE), T0).unwrap();
    session.receive(rinit(Offer::default()), T0).unwrap();
    assert_eq!(session.receive(frame(kind::RERR, 2, b"what?"), T0), failed(3));
    // One that was held back, on a session that came to no handshake.
    let mut session = ClientSession::new(ClientConfig { ping_interval: None, ..ClientConfig::default() });
    send(&mut session, 4, "held").unwrap();
    session.receive(frame(-128, 1, b"no"), T0).unwrap();
    written(&mut session);
    assert_eq!(session.receive(frame(kind::RERR, 2, b"what?"), T0), Ok(None));
    assert_eq!(kinds(&mut session), [(kind::TREQ, 2)]);
}

#[test]
fn what_kills_a_session() {
    let unexpected = |kind| SessionError::Unexpected(kind);
    let cases = [
        (frame(kind::TDISPATCH, 9, b"\0\0\0\0\0\0"), unexpected(kind::TDISPATCH)),
        (frame(kind::TREQ, 9, b"\0"), unexpected(kind::TREQ)),
        (frame(kind::TINIT, 1, b"\0\x01"), unexpected(kind::TINIT)),
        (frame(kind::TLEASE, 0, &[1, 0, 0, 0, 0, 0, 0, 0, 0]), unexpected(kind::TLEASE)),
        (frame(69, 2, b""), SessionError::UnknownType(69)),
        (frame(kind::RERR, 1, b"no TLS"), SessionError::Peer("no TLS".into())),
    ];
    for (fatal, error) in cases {
        let mut session = running();
        send(&mut session, 1, "x").unwrap();
        written(&mut session);
        send(&mut session, 2, "y").unwrap();
        assert_eq!(session.receive(fatal, T0), Err(error));
        assert_eq!(session.status(T0), SessionStatus::Closed);
        let left = session.take_all();
        assert_eq!(left, [Unfinished { token: 1, written: true }, Unfinished { token: 2, written: false }]);
        assert_eq!(send(&mut session, 3, ""), Err((3, Refused::Closed)));
    }
    for malformed in [frame(kind::RDISPATCH, 2, b"\x03\0\0"), frame(kind::RREQ, 2, b""), frame(67, 0, b"\0")]
    {
        let error = running().receive(malformed, T0);
        assert!(matches!(error, Err(SessionError::Malformed { .. })), "{error:?}");
    }
}

#[test]
fn what_does_no_harm() {
    let mut session = running();
    send(&mut session, 1, "x").unwrap();
    written(&mut session);
    let calm = |session: &mut ClientSession<u32>, frame| assert_eq!(session.receive(frame, T0), Ok(None));
    calm(&mut session, frame(kind::TPING, 7, b"body"));
    calm(&mut session, frame(kind::RPING, 2, b""));
    calm(&mut session, frame(kind::TDISCARDED_OLD, 0, b"\0\0\x02x"));
    calm(&mut session, frame(kind::RERR, 99, b"x"));
    calm(&mut session, frame(5, 2, b""));
    let sent = written(&mut session);
    assert_eq!(sent, [frame(kind::RPING, 7, b""), frame(127, 2, b"Unexpected mux message type 5")]);
    assert_eq!(session.receive(ok(2), T0), Ok(replied(1)));
}

#[test]
fn replies_in_pieces() {
    let mut session = running();
    send(&mut session, 1, "x").unwrap();
    for part in [piece(-2, 2, b"\0"), piece(-2, 2, b""), frame(kind::TPING, 2, b"")] {
        assert_eq!(session.receive(part, T0), Ok(None));
    }
    assert_eq!(session.receive(frame(-2, 2, b"\0\0done"), T0), Ok(replied(1)));
    // An Rerr or Rdiscarded ends the stream, and its text is its own.
    for (end, why) in [
        (frame(-128, 2, b"oops"), CallFailure::Rerr(Bytes::from_static(b"oops"))),
        (frame(kind::RDISCARDED, 2, b""), CallFailure::Unexpected(kind::RDISCARDED)),
    ] {
        send(&mut session, 2, "x").unwrap();
        session.receive(piece(-2, 2, b"\0"), T0).unwrap();
        assert_eq!(session.receive(end, T0), Ok(Some(Event::Failed { token: 2, why })));
    }
    send(&mut session, 3, "x").unwrap();
    assert_eq!(session.receive(ok(2), T0), Ok(replied(3)));
    session.receive(piece(-2, 5, b"\0"), secs(1)).unwrap();
    assert_eq!(session.tick(secs(2)), Ok(Some(secs(1) + limits::PARTIAL_IDLE)));
    assert_eq!(session.tick(secs(61)), Err(SessionError::PartialIdle));
}

#[test]
fn a_reply_that_is_too_large_fails_its_call_only() {
    let mut session = running();
    send(&mut session, 1, "x").unwrap();
    let many = Pairs::build((0..200).map(|_| (&b"k"[..], &b""[..]))).unwrap();
    let mut body = BytesMut::new();
    Rdispatch { contexts: many, ..Rdispatch::default() }.encode(&mut body);
    let event = session.receive(frame(kind::RDISPATCH, 2, &body), T0);
    assert_eq!(event, Ok(Some(Event::Failed { token: 1, why: CallFailure::TooLarge })));
    assert_eq!(session.status(T0), SessionStatus::Open);
}

#[test]
fn running_to_draining_to_closed() {
    let mut session = running();
    send(&mut session, 1, "x").unwrap();
    assert_eq!(session.receive(frame(kind::TDRAIN, 9, b""), T0), Ok(Some(Event::Draining)));
    assert_eq!(kinds(&mut session), [(kind::TDISPATCH, 2), (kind::RDRAIN, 9)]);
    assert_eq!(session.status(T0), SessionStatus::Busy(Why::Draining));
    assert_eq!(send(&mut session, 2, ""), Err((2, Refused::Draining)));
    let lease = frame(kind::TLEASE, 0, &[0; 9]);
    assert_eq!(session.receive(lease, T0), Ok(None), "leases are ignored now");
    assert_eq!(session.receive(ok(2), T0), Ok(replied(1)));
    assert_eq!(session.status(T0), SessionStatus::Closed);
}

#[test]
fn leases() {
    let mut session = running();
    let lease = |amount: u64| {
        let mut body = BytesMut::new();
        Tlease { unit: 0, amount }.encode(&mut body);
        frame(kind::TLEASE, 5, &body)
    };
    let leased = |length| Ok(Some(Event::Leased(Some(length))));
    assert_eq!(session.receive(lease(1500), secs(1)), leased(Duration::from_millis(1500)));
    assert_eq!(session.status(secs(2)), SessionStatus::Open);
    assert_eq!(session.status(secs(3)), SessionStatus::Busy(Why::Lease));
    send(&mut session, 1, "").unwrap();
    assert_eq!(session.receive(lease(60_000), secs(3)), leased(secs(60)));
    assert_eq!(session.status(secs(3)), SessionStatus::Open);
    assert_eq!(session.receive(lease(u64::MAX), secs(3)), leased(T0));
    assert_eq!(session.status(secs(3)), SessionStatus::Busy(Why::Lease));
    session.receive(lease(i64::MAX as u64), secs(3)).unwrap();
    assert_eq!(session.status(secs(3)), SessionStatus::Open);
}

#[test]
fn pings() {
    let config = ClientConfig { handshake: false, ..ClientConfig::default() };
    let mut session: ClientSession<u32> = ClientSession::new(config);
    assert_eq!(session.tick(secs(1)), Ok(Some(secs(5))));
    assert_eq!(kinds(&mut session), [(kind::TPING, 1)]);
    // Any Rping will do; the next ping is counted from the last.
    session.receive(frame(kind::RPING, 7, b""), secs(2)).unwrap();
    assert_eq!(session.next_tick(), Some(secs(6)));
    assert_eq!(session.tick(secs(3)), Ok(Some(secs(6))));
    assert_eq!(kinds(&mut session), []);
    assert_eq!(session.tick(secs(6)), Ok(Some(secs(10))));
    assert_eq!(session.tick(secs(9)), Ok(Some(secs(10))));
    // A peer that does not know pings is alive all the same.
    session.receive(frame(-128, 1, b"what?"), secs(9)).unwrap();
    assert_eq!(session.tick(secs(11)), Ok(Some(secs(15))));
    assert_eq!(kinds(&mut session).len(), 2);
    assert_eq!(session.tick(secs(15)), Err(SessionError::PingTimeout));
    assert_eq!(session.status(secs(15)), SessionStatus::Closed);
}

#[test]
fn an_error_right_after_the_handshake_is_the_sessions_end() {
    let mut session: ClientSession<u32> = ClientSession::new(ClientConfig::default());
    session.receive(frame(127, 1, PROBE), T0).unwrap();
    session.receive(rinit(Offer::default()), T0).unwrap();
    let end = session.receive(frame(127, 1, b"Could not negotiate"), T0);
    assert_eq!(end, Err(SessionError::Peer("Could not negotiate".into())));
}

#[test]
fn cancelled_before_it_is_written() {
    let mut session = running();
    let call = send(&mut session, 1, "x").unwrap();
    assert_eq!(session.cancel(call, b"why"), Some(1));
    assert_eq!((kinds(&mut session), session.in_flight()), (vec![], 0));
    let again = send(&mut session, 2, "y").unwrap();
    assert_eq!(again.tag(), call.tag());
    // A late cancellation of the former use of the tag must not hit this one.
    assert_eq!(session.cancel(call, b"why"), None);
    assert_eq!(kinds(&mut session), [(kind::TDISPATCH, 2)]);
}

#[test]
fn cancelled_after_it_is_written() {
    for (answer, late) in [(frame(kind::RDISCARDED, 2, b""), 0), (ok(2), 1), (frame(-128, 2, b"x"), 1)] {
        let mut session = running();
        let call = send(&mut session, 1, "x").unwrap();
        written(&mut session);
        assert_eq!(session.cancel(call, b"gave up"), Some(1));
        assert_eq!(session.cancel(call, b"gave up"), None);
        let told = written(&mut session);
        let discarded = Tdiscarded::decode(told[0].body.clone()).unwrap();
        assert_eq!((told.len(), told[0].kind, told[0].tag), (1, -62, Tag::MARKER));
        assert_eq!(discarded, Tdiscarded { which: 2, why: Bytes::from_static(b"gave up") });
        assert_eq!(send(&mut session, 2, "y").unwrap().tag().get(), 3, "the tag is kept");
        assert_eq!(session.in_flight(), 2);
        assert_eq!(session.receive(answer, T0), Ok(None));
        assert_eq!((session.in_flight(), session.counts().late_replies), (1, late));
        assert_eq!(send(&mut session, 3, "z").unwrap().tag().get(), 2, "the tag is free");
    }
}

#[test]
fn cancelled_when_half_written() {
    let mut session = running();
    session.outbox_mut().set_window(1000);
    let call = send(&mut session, 1, vec![0; 100_000]).unwrap();
    session.outbox_mut().advance(10);
    assert_eq!(session.cancel(call, b"partial"), Some(1));
    assert_eq!((session.in_flight(), session.lost_tags()), (0, 1));
    let rest = session.outbox().remaining();
    assert_eq!(rest, 8 + 1000 - 10 + 8 + 3 + 7);
    assert_eq!(send(&mut session, 2, "x").unwrap().tag().get(), 3, "the tag is not used again");
    session.receive(frame(kind::RDISCARDED, 2, b""), T0).unwrap();
    assert_eq!(session.lost_tags(), 0);
    assert_eq!(send(&mut session, 3, "x").unwrap().tag().get(), 2);
}

#[test]
fn a_session_that_lost_too_many_tags_retires() {
    let mut session = running();
    session.outbox_mut().set_window(10);
    for token in 0..limits::MAX_LOST_TAGS as u32 {
        assert_eq!(session.status(T0), SessionStatus::Open);
        let call = send(&mut session, token, vec![0; 100]).unwrap();
        session.outbox_mut().advance(1);
        session.cancel(call, b"").unwrap();
        written(&mut session);
    }
    assert_eq!(send(&mut session, 0, ""), Err((0, Refused::Draining)));
    assert_eq!(session.status(T0), SessionStatus::Closed);
}

#[test]
fn bounds() {
    let mut session =
        ClientSession::new(ClientConfig { max_in_flight: 2, max_queued_bytes: 1000, ..config() });
    send(&mut session, 1, vec![0; 2000]).unwrap();
    assert_eq!(session.status(T0), SessionStatus::Busy(Why::Queued));
    assert_eq!(send(&mut session, 2, ""), Err((2, Refused::Queued)));
    written(&mut session);
    send(&mut session, 2, "").unwrap();
    assert_eq!(session.status(T0), SessionStatus::Busy(Why::InFlight));
    assert_eq!(send(&mut session, 3, ""), Err((3, Refused::InFlight)));
}

#[test]
fn a_peer_that_never_reads_but_pings_is_cut_off() {
    let mut session = running();
    let flood = (0..).find_map(|_| session.receive(frame(kind::TPING, 1, b""), T0).err());
    assert_eq!(flood, Some(SessionError::Flood));
    assert_eq!(session.outbox().remaining(), 8 * (limits::MAX_QUEUED_CONTROL + 1));
}

#[test]
fn what_cannot_be_encoded_is_refused_and_costs_no_tag() {
    for established in [true, false] {
        let config = ClientConfig { handshake: !established, ..config() };
        let mut session = ClientSession::new(config);
        written(&mut session);
        let long = vec![b'/'; 40_000];
        let head = DispatchHead { contexts: |_| {}, dst: &long, dtab: &Pairs::default() };
        let refused = session.dispatch(1, head, Bytes::new());
        let error = Refused::Encode(EncodeError::Pairs(PairsError::TooLong(0)));
        assert_eq!(refused, Err((1, error)));
        assert_eq!((kinds(&mut session), session.in_flight()), (vec![], 0));
        assert_eq!(send(&mut session, 2, "").unwrap().tag(), Tag::FIRST);
    }
}
