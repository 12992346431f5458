use super::super::context::MuxFailure;
use super::super::frame::{Frame, next_frame};
use super::super::handshake::{Compressed, Compression, CompressionLevel, HandshakeError, PROBE, TlsLevel};
use super::super::message::{Init, Rdispatch, Rreq, Status};
use super::*;
use crate::pairs::MAX_STR16;
use bytes::Buf;

const T0: Duration = Duration::ZERO;

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn tag(number: u32) -> Tag {
    Tag::new(number).unwrap()
}

fn frame(kind: i8, number: u32, body: &[u8]) -> Frame {
    Frame { kind, tag: tag(number), fragment: false, body: Bytes::copy_from_slice(body) }
}

fn piece(kind: i8, number: u32, body: &[u8]) -> Frame {
    Frame { fragment: true, ..frame(kind, number, body) }
}

fn tdispatch(number: u32) -> Frame {
    frame(kind::TDISPATCH, number, b"\0\0\0\0\0\0echo")
}

fn tinit(offer: Offer) -> Frame {
    let mut body = BytesMut::new();
    offer.to_tinit().encode(&mut body);
    frame(kind::TINIT, 1, &body)
}

fn written<U>(session: &mut ServerSession<U>) -> Vec<Frame> {
    let outbox = session.outbox_mut();
    let mut bytes = BytesMut::new();
    while outbox.has_remaining() {
        let chunk = outbox.chunk().to_vec();
        outbox.advance(chunk.len());
        bytes.extend_from_slice(&chunk);
    }
    std::iter::from_fn(|| next_frame(&mut bytes, u32::MAX).unwrap()).collect()
}

fn kinds<U>(session: &mut ServerSession<U>) -> Vec<(i8, u32)> {
    written(session).iter().map(|frame| (frame.kind, frame.tag.get())).collect()
}

fn new() -> ServerSession<u32> {
    ServerSession::new(ServerConfig::default())
}

/// A session past its beginning.
fn open() -> ServerSession<u32> {
    let mut session = new();
    session.receive(frame(kind::TPING, 1, b""), T0).unwrap();
    written(&mut session);
    session
}

fn dispatch(session: &mut ServerSession<u32>, frame: Frame) -> Call {
    let number = frame.tag.get();
    match session.receive(frame, T0) {
        Ok(ServerEvent::Dispatch { call, .. }) => {
            assert!(session.accept(call, number));
            call
        }
        other => panic!("{other:?}"),
    }
}

fn answer(session: &mut ServerSession<u32>, call: Call, body: &'static str) -> bool {
    session.reply(call, Status::Ok, |_| {}, Bytes::from_static(body.as_bytes()))
}

fn nack(failure: Option<MuxFailure>) -> Rdispatch {
    let contexts = failure.map(MuxFailure::to_pairs).unwrap_or_default();
    Rdispatch { status: Status::Nack, contexts, body: Bytes::new() }
}

fn refused(session: &mut ServerSession<u32>, frame: Frame, why: Refusal) -> Rdispatch {
    let number = frame.tag;
    assert_eq!(session.receive(frame, T0), Ok(ServerEvent::Refused { tag: number, why }));
    let reply = written(session).pop().unwrap();
    assert_eq!((reply.kind, reply.tag), (kind::RDISPATCH, number));
    Rdispatch::decode(reply.body).unwrap()
}

#[test]
fn fresh_to_probed_to_open() {
    let mut session = new();
    assert_eq!(session.receive(frame(-128, 1, PROBE), T0), Ok(ServerEvent::Nothing));
    assert_eq!(written(&mut session), [frame(127, 1, PROBE)]);
    let offer = Offer { window: 5, tls: TlsLevel::Desired, ..Offer::default() };
    let agreed = Agreed { handshake: true, window: 5, ..Agreed::NOTHING };
    let offered = Frame { tag: tag(9), ..tinit(offer) };
    assert_eq!(session.receive(offered, T0), Ok(ServerEvent::Established(agreed)));
    let rinit = written(&mut session).pop().unwrap();
    assert_eq!((rinit.kind, rinit.tag), (kind::RINIT, tag(9)));
    assert_eq!(Init::decode(rinit.body), Ok(Offer::default().to_rinit(&Init::default())));
    let call = dispatch(&mut session, tdispatch(2));
    assert!(answer(&mut session, call, "abcd"));
    let pieces: Vec<_> = written(&mut session).iter().map(|f| (f.fragment, f.body.len())).collect();
    assert_eq!(pieces, [(true, 5), (false, 2)]);
}

/// A session that has agreed upon TLS, its Rinit written.
fn switching() -> ServerSession<u32> {
    let offer = Offer { tls: TlsLevel::Desired, ..Offer::default() };
    let mut session = ServerSession::new(ServerConfig { offer, ..ServerConfig::default() });
    session.receive(frame(127, 1, PROBE), T0).unwrap();
    let event = session.receive(tinit(offer), T0);
    assert!(matches!(event, Ok(ServerEvent::Established(agreed)) if agreed.tls && agreed.switches()));
    assert_eq!(kinds(&mut session), [(127, 1), (kind::RINIT, 1)]);
    session
}

#[test]
fn probed_to_switching_to_open() {
    let mut session = switching();
    session.lease(1000, T0);
    assert_eq!(kinds(&mut session), [], "nothing in clear after Rinit");
    session.switched();
    assert_eq!(kinds(&mut session), [(kind::TLEASE, 0)]);
    dispatch(&mut session, tdispatch(2));
    session.switched();
    assert_eq!(session.in_flight(), 1, "once is enough");
}

#[test]
fn probed_to_switching_by_compression() {
    let compression = Compression::both(CompressionLevel::Accepted);
    let offer = Offer { compression, ..Offer::default() };
    let mut session: ServerSession<u32> =
        ServerSession::new(ServerConfig { offer, ..ServerConfig::default() });
    session.receive(frame(127, 1, PROBE), T0).unwrap();
    let theirs = Compression { responses: CompressionLevel::Desired, ..Compression::default() };
    let event = session.receive(tinit(Offer { compression: theirs, ..Offer::default() }), T0);
    let compressed = Compressed { requests: false, responses: true };
    assert!(matches!(event, Ok(ServerEvent::Established(agreed)) if agreed.compressed == compressed));
    let rinit = Init::decode(written(&mut session).pop().unwrap().body).unwrap();
    assert_eq!(rinit.header(b"compress").unwrap(), ";lz4");
}

#[test]
fn switching_to_closed() {
    let mut session = switching();
    assert_eq!(session.receive(tdispatch(2), T0), Err(SessionError::Unexpected(kind::TDISPATCH)));
    assert!(session.is_closed());
    let mut session = switching();
    session.tick(secs(1)).unwrap();
    assert_eq!(session.tick(secs(11)), Err(SessionError::HandshakeTimeout));
    let mut session = switching();
    session.drain();
    assert!(session.is_drained() && kinds(&mut session).is_empty(), "it has nothing to lose");
}

#[test]
fn open_without_handshake() {
    for probed in [false, true] {
        let mut session = new();
        if probed {
            session.receive(frame(127, 1, PROBE), T0).unwrap();
            written(&mut session);
        }
        let call = dispatch(&mut session, tdispatch(2));
        assert!(answer(&mut session, call, "x"));
        // It is too late for a handshake now.
        for late in [tinit(Offer::default()), frame(-128, 1, PROBE)] {
            assert_eq!(session.receive(late, T0), Ok(ServerEvent::Nothing));
        }
        let sent = written(&mut session);
        assert_eq!(sent[1].body, "Unexpected mux message type 68");
        assert_eq!(sent[2].body, "Unexpected mux message type 127");
    }
    let mut session = new();
    assert_eq!(session.receive(piece(2, 2, b"\0\0"), T0), Ok(ServerEvent::Nothing));
    assert!(matches!(session.receive(frame(2, 2, b"\0\0\0\0x"), T0), Ok(ServerEvent::Dispatch { .. })));
}

#[test]
fn beginnings_that_fail() {
    let malformed = |frame| {
        let mut session = new();
        let error = session.receive(frame, T0).unwrap_err();
        assert_eq!(written(&mut session), []);
        error
    };
    assert_eq!(malformed(frame(71, 0, b"ET")), SessionError::UnknownType(71));
    assert_eq!(malformed(frame(9, 1, b"")), SessionError::UnknownType(9), "this is not Mux at all");
    assert!(matches!(malformed(frame(66, 0, b"\0")), SessionError::Malformed { .. }));
    let handshake = |config, frames: Vec<Frame>| {
        let mut session: ServerSession<u32> = ServerSession::new(config);
        let error = frames.into_iter().find_map(|frame| session.receive(frame, T0).err());
        (error, kinds(&mut session))
    };
    let probe = || frame(127, 1, PROBE);
    let version = handshake(ServerConfig::default(), vec![probe(), frame(68, 4, b"\0\x02")]);
    let expected = Some(SessionError::Handshake(HandshakeError::Version(2)));
    assert_eq!(version, (expected, vec![(127, 1), (127, 4)]));
    let required = Offer { tls: TlsLevel::Required, ..Offer::default() };
    let tls = Some(SessionError::Handshake(HandshakeError::Tls));
    let refused = handshake(ServerConfig::default(), vec![probe(), tinit(required)]);
    assert_eq!(refused, (tls.clone(), vec![(127, 1), (kind::RINIT, 1), (127, 1)]));
    let config = ServerConfig { offer: required, ..ServerConfig::default() };
    assert_eq!(handshake(config, vec![tdispatch(2)]), (tls, vec![(127, 2)]));
    let (error, sent) = handshake(ServerConfig::default(), vec![probe(), frame(68, 1, b"\0")]);
    assert!(matches!(error, Some(SessionError::Malformed { .. })) && sent == [(127, 1)]);
}

#[test]
fn a_beginning_has_its_time() {
    let mut session = new();
    assert_eq!(session.tick(secs(1)), Ok(Some(secs(11))));
    session.receive(frame(127, 1, PROBE), secs(2)).unwrap();
    assert_eq!(session.tick(secs(11)), Err(SessionError::HandshakeTimeout));
    assert!(session.is_closed());
    assert_eq!(session.tick(secs(11)), Err(SessionError::Closed));
    assert_eq!(session.receive(tdispatch(2), T0), Err(SessionError::Closed));
    let mut session = open();
    assert_eq!(session.tick(secs(99)), Ok(None));
    session.receive(piece(2, 2, b"\0"), secs(100)).unwrap();
    assert_eq!(session.tick(secs(101)), Ok(Some(secs(110))));
    assert_eq!(session.tick(secs(110)), Err(SessionError::PartialIdle));
}

#[test]
fn replies_come_in_any_order_and_form() {
    let mut session = open();
    let two = dispatch(&mut session, tdispatch(2));
    let old = dispatch(&mut session, frame(kind::TREQ, Tag::MAX.get(), b"\0body"));
    assert_eq!(session.in_flight(), 2);
    assert!(session.reply(old, Status::Ok, |c| c.put(b"k", b"lost"), Bytes::from_static(b"r")));
    let long = Bytes::from(vec![b'x'; 10_000]);
    assert!(session.reply(two, Status::Error, |c| c.put_failure(MuxFailure::REJECTED), long));
    assert!(!answer(&mut session, two, "twice"));
    let sent = written(&mut session);
    let rreq = Rreq::decode(sent[0].body.clone()).unwrap();
    assert_eq!((sent[0].kind, rreq.body), (kind::RREQ, Bytes::from_static(b"r")));
    let error = Rdispatch::decode(sent[1].body.clone()).unwrap();
    assert_eq!(MuxFailure::find(&error.contexts), Some(MuxFailure::REJECTED));
    assert_eq!((error.status, error.body.len()), (Status::Error, limits::MAX_TEXT));
    assert_eq!((session.in_flight(), session.counts().dropped_replies), (0, 1));
}

#[test]
fn a_reply_that_cannot_be_encoded_is_answered_all_the_same() {
    let mut session = open();
    let call = dispatch(&mut session, tdispatch(2));
    assert!(session.reply(call, Status::Ok, |c| c.put(b"k", &[0; MAX_STR16 + 1]), Bytes::new()));
    let sent = written(&mut session);
    let error = Rdispatch::decode(sent[0].body.clone()).unwrap();
    assert_eq!((sent.len(), error.status), (1, Status::Error));
}

#[test]
fn discarded_in_flight() {
    for kind in [kind::TDISCARDED, kind::TDISCARDED_OLD] {
        let mut session = open();
        let call = dispatch(&mut session, tdispatch(5));
        let why = Bytes::from_static(b"timed out");
        let event = session.receive(frame(kind, 7, b"\0\0\x05timed out"), T0);
        assert_eq!(event, Ok(ServerEvent::Discarded { tag: tag(5), token: Some(5), why }));
        let again = dispatch(&mut session, tdispatch(5));
        assert!(!answer(&mut session, call, "late"), "nobody waits for it");
        assert!(!session.accept(call, 9));
        assert!(answer(&mut session, again, "new"));
        assert_eq!(kinds(&mut session), [(kind::RDISCARDED, 5), (kind::RDISPATCH, 5)]);
    }
}

#[test]
fn discarded_before_it_was_accepted() {
    let mut session = open();
    let Ok(ServerEvent::Dispatch { call, .. }) = session.receive(tdispatch(5), T0) else { panic!() };
    let event = session.receive(frame(-62, 0, b"\0\0\x05"), T0);
    assert_eq!(event, Ok(ServerEvent::Discarded { tag: tag(5), token: None, why: Bytes::new() }));
    assert!(!session.accept(call, 5));
}

#[test]
fn discarded_when_the_reply_is_on_its_way() {
    let discard = || frame(-62, 0, b"\0\0\x05x");
    let mut session = open();
    session.outbox_mut().set_window(100);
    // Still queued: taken back.
    let call = dispatch(&mut session, tdispatch(5));
    answer(&mut session, call, "reply");
    assert_eq!(session.receive(discard(), T0), Ok(ServerEvent::Nothing));
    assert_eq!(kinds(&mut session), [(kind::RDISCARDED, 5)]);
    // Partly written: the rest is dropped.
    let call = dispatch(&mut session, tdispatch(5));
    session.reply(call, Status::Ok, |_| {}, Bytes::from(vec![0; 100_000]));
    session.outbox_mut().advance(108);
    session.receive(discard(), T0).unwrap();
    assert_eq!(kinds(&mut session), [(kind::RDISCARDED, 5)]);
    // Written: nothing is said, the tag is free already.
    let call = dispatch(&mut session, tdispatch(5));
    answer(&mut session, call, "reply");
    written(&mut session);
    session.receive(discard(), T0).unwrap();
    session.receive(frame(-62, 0, b"\0\0\x09x"), T0).unwrap();
    session.receive(frame(-62, 0, b"\xff\xff\xffx"), T0).unwrap();
    assert_eq!(kinds(&mut session), []);
    assert_eq!(session.counts().orphan_discards, 3);
}

#[test]
fn discarded_when_only_part_of_the_request_was_there() {
    let mut session = open();
    session.receive(piece(2, 2, b"\0\0\0\0\0\0AAA"), T0).unwrap();
    assert_eq!(session.receive(frame(-62, 0, b"\0\0\x02x"), T0), Ok(ServerEvent::Nothing));
    assert_eq!(kinds(&mut session), [(kind::RDISCARDED, 2)], "else Finagle clients wait for ever");
    dispatch(&mut session, tdispatch(2));
}

#[test]
fn a_duplicate_tag_is_the_end() {
    let mut session = open();
    dispatch(&mut session, tdispatch(2));
    let other = dispatch(&mut session, tdispatch(90_000));
    session.receive(piece(2, 2, b"\0\0"), T0).unwrap();
    let end = session.receive(frame(2, 2, b"\0\0\0\0"), T0);
    assert_eq!(end, Err(SessionError::DuplicateTag(tag(2))));
    let sent = written(&mut session);
    assert_eq!(sent.iter().map(|f| (f.kind, f.tag.get())).collect::<Vec<_>>(), [(127, 2), (127, 90_000)]);
    assert_eq!(sent[1].body, "Received duplicate tag 2 from client.");
    assert!(!answer(&mut session, other, "late"));
    let stopped: Vec<_> = session.take_all().collect();
    assert_eq!(stopped, [(tag(2), Some(2)), (tag(90_000), Some(90_000))]);
}

#[test]
fn a_malformed_request_is_nobody_elses_business() {
    let mut session = open();
    let call = dispatch(&mut session, tdispatch(2));
    let Ok(ServerEvent::Refused { tag: bad, why: Refusal::Malformed(error) }) =
        session.receive(frame(2, 3, b"\0\x01\0\x01"), T0)
    else {
        panic!()
    };
    let reply = Rdispatch::decode(written(&mut session).pop().unwrap().body).unwrap();
    assert_eq!((bad, reply.status), (tag(3), Status::Error));
    assert_eq!(reply.body, error.to_string());
    assert_eq!(MuxFailure::find(&reply.contexts), Some(MuxFailure::NON_RETRYABLE));
    session.receive(frame(kind::TREQ, 4, b""), T0).unwrap();
    let rreq = written(&mut session).pop().unwrap();
    assert_eq!((rreq.kind, Rreq::decode(rreq.body).unwrap().status), (kind::RREQ, Status::Error));
    assert!(answer(&mut session, call, "x"));
}

#[test]
fn a_request_that_is_too_large_is_refused_at_its_end() {
    let mut session = open();
    let part = vec![0; limits::MAX_MESSAGE / 2 + 1];
    session.receive(piece(2, 2, &part), T0).unwrap();
    session.receive(piece(2, 2, &part), T0).unwrap();
    let reply = refused(&mut session, frame(2, 2, b""), Refusal::TooLarge);
    assert_eq!(MuxFailure::find(&reply.contexts), Some(MuxFailure::NON_RETRYABLE));
}

#[test]
fn limits_are_settings() {
    let limits = Limits { contexts: 1, dtab_entries: 0, destination_bytes: 2, ..Limits::DEFAULT }
        .with_message_bytes(100);
    let mut session: ServerSession<u32> =
        ServerSession::new(ServerConfig { limits, ..ServerConfig::default() });
    dispatch(&mut session, frame(2, 2, b"\0\x01\0\x01k\0\0\0\x02/a\0\0"));
    let bodies = [&b"\0\x02\0\0\0\0\0\0\0\0\0\0\0\0"[..], b"\0\0\0\0\0\x01\0\0\0\0", b"\0\0\0\x03/ab\0\0"];
    for (body, number) in bodies.into_iter().zip(3..) {
        let event = session.receive(frame(2, number, body), T0);
        assert!(
            matches!(event, Ok(ServerEvent::Refused { why: Refusal::Malformed(error), .. }) if error.is_limit())
        );
    }
    written(&mut session);
    session.receive(piece(2, 9, &[0; 60]), T0).unwrap();
    refused(&mut session, frame(2, 9, &[0; 41]), Refusal::TooLarge);
}

#[test]
fn bounds_are_answered_by_nacks() {
    let config = ServerConfig { max_in_flight: 1, max_queued_bytes: 100, ..ServerConfig::default() };
    let mut session = ServerSession::new(config);
    let call = dispatch(&mut session, tdispatch(2));
    let reply = refused(&mut session, tdispatch(3), Refusal::InFlight);
    assert_eq!(reply, nack(Some(MuxFailure::RETRYABLE_REJECTED)));
    session.reply(call, Status::Ok, |_| {}, Bytes::from(vec![0; 100]));
    let reply = refused(&mut session, tdispatch(3), Refusal::Queued);
    assert_eq!(reply, nack(Some(MuxFailure::RETRYABLE_REJECTED)));
    dispatch(&mut session, tdispatch(3));
}

#[test]
fn a_peer_that_never_reads_is_cut_off() {
    for frame in [frame(kind::TPING, 1, b""), frame(kind::RPING, 1, b""), frame(kind::TDISPATCH, 3, b"")] {
        let mut session = open();
        let flood = (0..).find_map(|_| session.receive(frame.clone(), T0).err());
        assert_eq!(flood, Some(SessionError::Flood));
    }
}

#[test]
fn messages_out_of_place() {
    let mut session = open();
    let cases = [
        (-2, &b"\0\0\0"[..]),
        (-1, b"\0"),
        (64, b""),
        (-64, b""),
        (-65, b""),
        (67, &[0; 9]),
        (-66, b""),
        (5, b"?"),
    ];
    for (kind, body) in cases {
        assert_eq!(session.receive(frame(kind, 9, body), T0), Ok(ServerEvent::Nothing));
        let text = format!("Unexpected mux message type {kind}");
        assert_eq!(written(&mut session), [frame(127, 9, text.as_bytes())]);
    }
    for (kind, body) in [(0, &b""[..]), (69, b""), (-67, b"")] {
        assert_eq!(open().receive(frame(kind, 9, body), T0), Err(SessionError::UnknownType(kind)));
    }
    for (kind, body) in [(-2, &b"\x07\0\0"[..]), (67, b"\0"), (66, b"\0\0"), (68, b"")] {
        let end = open().receive(frame(kind, 9, body), T0);
        assert!(matches!(end, Err(SessionError::Malformed { .. })), "{end:?}");
    }
}

#[test]
fn open_to_draining_to_drained() {
    let mut session = open();
    let slow = dispatch(&mut session, tdispatch(2));
    session.drain();
    session.drain();
    assert_eq!(kinds(&mut session), [(kind::TDRAIN, 1)]);
    let late = dispatch(&mut session, tdispatch(3));
    assert!(answer(&mut session, late, "still served"));
    // Only tag 1 acknowledges.
    session.receive(frame(kind::RDRAIN, 9, b""), T0).unwrap();
    assert_eq!(kinds(&mut session), [(kind::RDISPATCH, 3), (127, 9)]);
    assert!(!session.is_drained());
    assert_eq!(session.receive(frame(kind::RDRAIN, 1, b""), T0), Ok(ServerEvent::DrainAcknowledged));
    assert_eq!(refused(&mut session, tdispatch(4), Refusal::Draining), nack(None));
    session.receive(frame(kind::TREQ, 5, b"\0"), T0).unwrap();
    session.receive(frame(kind::TPING, 1, b""), T0).unwrap();
    assert_eq!(written(&mut session), [frame(kind::RREQ, 5, b"\x02"), frame(kind::RPING, 1, b"")]);
    assert!(!session.is_drained());
    assert!(answer(&mut session, slow, "done"));
    assert!(!session.is_drained(), "the reply is not written yet");
    written(&mut session);
    assert!(session.is_drained());
}

#[test]
fn a_client_that_does_not_acknowledge_is_not_waited_for_without_end() {
    let mut session = open();
    assert!(!session.stop_waiting(), "it was not asked to go");
    let slow = dispatch(&mut session, tdispatch(2));
    session.drain();
    written(&mut session);
    assert!(session.stop_waiting() && !session.stop_waiting());
    assert!(!session.is_drained(), "what is in flight is answered");
    assert_eq!(refused(&mut session, tdispatch(3), Refusal::Draining), nack(None));
    assert!(answer(&mut session, slow, "done"));
    written(&mut session);
    assert!(session.is_drained());
}

#[test]
fn the_last_call_may_be_discarded() {
    let mut session = open();
    dispatch(&mut session, tdispatch(2));
    session.drain();
    session.receive(frame(kind::RDRAIN, 1, b""), T0).unwrap();
    session.receive(frame(-62, 0, b"\0\0\x02why"), T0).unwrap();
    assert_eq!(kinds(&mut session), [(kind::TDRAIN, 1), (kind::RDISCARDED, 2)]);
    assert!(session.is_drained());
}

#[test]
fn a_drain_that_comes_before_the_session() {
    let mut session = new();
    session.drain();
    assert!(session.is_drained(), "nothing to lose");
    session.receive(frame(127, 1, PROBE), T0).unwrap();
    session.receive(tinit(Offer::default()), T0).unwrap();
    assert_eq!(kinds(&mut session), [(127, 1), (kind::RINIT, 1), (kind::TDRAIN, 1)]);
    assert!(!session.is_drained());
    dispatch(&mut session, tdispatch(2));
}

#[test]
fn turned_away() {
    let mut session = new();
    session.refuse();
    let reply = refused(&mut session, tdispatch(2), Refusal::Draining);
    assert_eq!(reply, nack(Some(MuxFailure::RETRYABLE_REJECTED)));
    assert!(!session.is_drained());
    session.receive(frame(kind::RDRAIN, 1, b""), T0).unwrap();
    assert!(session.is_drained());
}

#[test]
fn leases() {
    let config = ServerConfig { nack_expired_lease: true, ..ServerConfig::default() };
    let mut session = ServerSession::new(config);
    session.lease(700, T0);
    let call = dispatch(&mut session, tdispatch(2));
    assert!(answer(&mut session, call, "x"));
    let lease = |amount: u8| frame(kind::TLEASE, 0, &[0, 0, 0, 0, 0, 0, 0, 2, amount]);
    assert_eq!(written(&mut session)[0], lease(0xbc));
    let event = session.receive(tdispatch(2), secs(1));
    assert_eq!(event, Ok(ServerEvent::Refused { tag: tag(2), why: Refusal::Lease }));
    session.lease(u32::MAX, secs(1));
    assert_eq!(kinds(&mut session), [(kind::RDISPATCH, 2), (kind::TLEASE, 0)]);
    assert!(matches!(session.receive(tdispatch(2), secs(9)), Ok(ServerEvent::Dispatch { .. })));
    let mut lenient = open();
    lenient.lease(0, T0);
    dispatch(&mut lenient, tdispatch(2));
}

#[test]
fn requests_in_pieces() {
    let mut session = open();
    for part in [piece(9, 2, b"\0\0"), piece(2, 2, b""), piece(2, 3, b"\0\0\0"), frame(kind::TPING, 2, b"")] {
        assert_eq!(session.receive(part, T0), Ok(ServerEvent::Nothing));
    }
    dispatch(&mut session, frame(2, 2, b"\0\0\0\0A"));
    let old = dispatch(&mut session, frame(1, 3, b"echo"));
    assert!(answer(&mut session, old, "x"));
    assert_eq!(kinds(&mut session), [(kind::RPING, 2), (kind::RREQ, 3)]);
}
