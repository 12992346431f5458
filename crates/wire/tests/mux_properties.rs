//! Mux under chance: any bytes, any chunks, and both session machines against each other with a naive model of what must
//! come of it.

use bytes::{Buf, Bytes, BytesMut};
use muxgate_properties::{feed_client, feed_server};
use muxgate_wire::mux::client::{ClientConfig, ClientSession, DispatchHead, Event, SessionStatus};
use muxgate_wire::mux::context::{Deadline, TraceContext};
use muxgate_wire::mux::frame::{self, Frame, Tag, next_frame};
use muxgate_wire::mux::handshake::Offer;
use muxgate_wire::mux::lz4::{self, Encoder, Next, next_block};
use muxgate_wire::mux::message::{
    Init, Message, Rdispatch, Rreq, Status, Tdiscarded, Tdispatch, Tlease, Treq,
};
use muxgate_wire::mux::outbox::Outbox;
use muxgate_wire::mux::server::{Request, ServerConfig, ServerEvent, ServerSession};
use muxgate_wire::mux::session::Call;
use muxgate_wire::pairs::Pairs;
use proptest::prelude::*;
use proptest::sample::Index;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

const NOW: Duration = Duration::ZERO;

fn blob(max: usize) -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..max).prop_map(Bytes::from)
}

fn pairs() -> impl Strategy<Value = Pairs> {
    prop::collection::vec((blob(20), blob(40)), 0..5)
        .prop_map(|list| Pairs::build(list.iter().map(|(key, value)| (&key[..], &value[..]))).unwrap())
}

fn status() -> impl Strategy<Value = Status> {
    prop_oneof![Just(Status::Ok), Just(Status::Error), Just(Status::Nack)]
}

fn trace() -> impl Strategy<Value = TraceContext> {
    let ids = any::<(u64, u64, u64, u64, Option<u64>)>();
    ids.prop_map(|(span_id, parent_id, trace_id, flags, trace_id_high)| TraceContext {
        span_id,
        parent_id,
        trace_id,
        trace_id_high,
        flags,
    })
}

fn init() -> impl Strategy<Value = Init> {
    let headers = prop::collection::vec((blob(20), blob(20)), 0..6);
    (any::<u16>(), headers).prop_map(|(version, headers)| Init { version, headers })
}

fn message() -> impl Strategy<Value = Message> {
    // All that a Treq can carry.
    let old = |trace: TraceContext| TraceContext { flags: trace.flags & 0xff, trace_id_high: None, ..trace };
    prop_oneof![
        (prop::option::of(trace().prop_map(old)), blob(50))
            .prop_map(|(trace, body)| Message::Treq(Treq { trace, body })),
        (status(), blob(50)).prop_map(|(status, body)| Message::Rreq(Rreq { status, body })),
        (pairs(), blob(30), pairs(), blob(3000)).prop_map(|(contexts, dst, dtab, body)| {
            Message::Tdispatch(Tdispatch { contexts, dst, dtab, body })
        }),
        (status(), pairs(), blob(3000)).prop_map(|(status, contexts, body)| {
            Message::Rdispatch(Rdispatch { status, contexts, body })
        }),
        Just(Message::Tdrain),
        Just(Message::Rdrain),
        Just(Message::Tping),
        Just(Message::Rping),
        (0..1u32 << 24, blob(50)).prop_map(|(which, why)| Message::Tdiscarded(Tdiscarded { which, why })),
        Just(Message::Rdiscarded),
        any::<(u8, u64)>().prop_map(|(unit, amount)| Message::Tlease(Tlease { unit, amount })),
        init().prop_map(Message::Tinit),
        init().prop_map(Message::Rinit),
        blob(50).prop_map(Message::Rerr),
    ]
}

fn tag() -> impl Strategy<Value = Tag> {
    // Small ones, so that they meet.
    prop_oneof![0..6u32, 0..=Tag::MAX.get()].prop_map(|number| Tag::new(number).unwrap())
}

fn encode(message: &Message) -> Bytes {
    let mut out = BytesMut::new();
    message.encode(&mut out);
    out.freeze()
}

/// The bytes of a stream of messages, in one of the two ways in which they can be in pieces.
fn stream(messages: &[(Tag, Message)], window: u32) -> BytesMut {
    let mut outbox = Outbox::default();
    outbox.set_window(window);
    for (tag, message) in messages {
        let pushed = match message {
            Message::Tdispatch(_) | Message::Rdispatch(_) => {
                outbox.push(message.kind(), *tag, encode(message), |_| Ok(())).map(|_| ())
            }
            _ => outbox.push_whole(message.kind(), *tag, encode(message), |_| {}).map(|_| ()),
        };
        pushed.unwrap();
    }
    take(&mut outbox, usize::MAX)
}

fn take(outbox: &mut Outbox, mut count: usize) -> BytesMut {
    let mut out = BytesMut::new();
    while outbox.has_remaining() && count > 0 {
        let step = outbox.chunk().len().min(count);
        out.extend_from_slice(&outbox.chunk()[..step]);
        outbox.advance(step);
        count -= step;
    }
    out
}

fn frames(buf: &mut BytesMut) -> Vec<Frame> {
    std::iter::from_fn(|| next_frame(buf, frame::MAX_LEN).unwrap()).collect()
}

proptest! {
    #[test]
    fn messages_round_trip(message in message()) {
        prop_assert_eq!(Message::decode(message.kind(), encode(&message)), Ok(message));
    }

    #[test]
    fn contexts_round_trip(trace in trace(), timestamp: i64, deadline: i64, value in blob(60)) {
        let (bytes, len) = trace.encode();
        prop_assert_eq!(TraceContext::decode(&bytes[..len]), Some(trace));
        let both = Deadline { timestamp, deadline };
        prop_assert_eq!(Deadline::decode(&both.encode()), Some(both));
        if let Some(trace) = TraceContext::decode(&value) {
            let (bytes, len) = trace.encode();
            prop_assert_eq!(&bytes[..len], &value[..]);
        }
    }

    #[test]
    fn what_decodes_is_written_as_it_came(kind: i8, body in blob(200)) {
        // Shorter bodies than these are refused, longer ones are cut; the rest must survive.
        if let Ok(message @ (Message::Tdispatch(_) | Message::Rdispatch(_) | Message::Rreq(_) | Message::Rerr(_)
            | Message::Tdiscarded(_) | Message::Tinit(_) | Message::Rinit(_))) = Message::decode(kind, body.clone()) {
            prop_assert_eq!(encode(&message), body);
        }
    }

    #[test]
    fn a_prefix_of_a_request_is_never_another_request(request in (pairs(), blob(30), pairs()), cut: Index) {
        let (contexts, dst, dtab) = request;
        let whole = encode(&Message::Tdispatch(Tdispatch { contexts, dst, dtab, body: Bytes::new() }));
        let cut = whole.slice(..cut.index(whole.len()));
        prop_assert!(Tdispatch::decode(cut).is_err());
    }

    #[test]
    fn frames_do_not_depend_on_chunks(
        messages in prop::collection::vec((tag(), message()), 0..10),
        window in prop_oneof![Just(u32::MAX), 1..200u32],
        cuts in prop::collection::vec(1..700usize, 1..50),
    ) {
        let mut whole = stream(&messages, window);
        let bytes = whole.clone();
        let expected = frames(&mut whole);
        let (mut buf, mut got, mut rest) = (BytesMut::new(), Vec::new(), &bytes[..]);
        for cut in cuts.iter().cycle() {
            let (chunk, later) = rest.split_at(rest.len().min(*cut));
            buf.extend_from_slice(chunk);
            rest = later;
            got.extend(frames(&mut buf));
            let missing = frame::needed(&buf);
            prop_assert!(missing > 0 && (rest.is_empty() || missing <= rest.len()));
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(got, expected);
        prop_assert!(buf.is_empty());
    }

    #[test]
    fn corruption_is_never_a_panic_nor_a_large_allocation(
        messages in prop::collection::vec((tag(), message()), 1..12),
        window in prop_oneof![Just(u32::MAX), 1..200u32],
        flips in prop::collection::vec((any::<Index>(), any::<u8>()), 0..12),
        cut: Index,
        handshake: bool,
    ) {
        let mut bytes = stream(&messages, window);
        for (at, byte) in flips {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.index(bytes.len() + 1));
        feed_server(bytes.clone());
        feed_client(bytes, handshake);
    }

    #[test]
    fn noise_is_never_a_panic(noise in blob(400), kinds in prop::collection::vec((any::<i8>(), tag(), any::<bool>(), blob(40)), 0..30)) {
        feed_server(BytesMut::from(&noise[..]));
        feed_client(BytesMut::from(&noise[..]), true);
        let mut server: ServerSession<()> = ServerSession::new(ServerConfig::default());
        let mut client: ClientSession<()> = ClientSession::new(ClientConfig::default());
        for (kind, tag, fragment, body) in kinds {
            let frame = Frame { kind, tag, fragment, body };
            let _ = Message::decode(frame.kind, frame.body.clone());
            let _ = server.receive(frame.clone(), NOW);
            let _ = client.receive(frame, NOW);
        }
    }
}

/// What happens next between a client and a server.
#[derive(Clone, Debug)]
enum Step {
    Dispatch { size: usize },
    Cancel(Index),
    Reply { which: Index, size: usize, nack: bool },
    ToServer(usize),
    ToClient(usize),
    Ping,
    Drain,
}

fn step() -> impl Strategy<Value = Step> {
    let size = || prop_oneof![4 => 0..50usize, 1 => 0..5000usize];
    prop_oneof![
        8 => size().prop_map(|size| Step::Dispatch { size }),
        4 => any::<Index>().prop_map(Step::Cancel),
        8 => (any::<Index>(), size(), prop::bool::weighted(0.1))
            .prop_map(|(which, size, nack)| Step::Reply { which, size, nack }),
        8 => (1..2000usize).prop_map(Step::ToServer),
        8 => (1..2000usize).prop_map(Step::ToClient),
        1 => Just(Step::Ping),
        1 => prop::bool::weighted(0.2).prop_map(|yes| if yes { Step::Drain } else { Step::Ping }),
    ]
}

/// Both machines, the bytes between them, and what is known of each dispatch.
struct World {
    client: ClientSession<u32>,
    server: ServerSession<u32>,
    to_server: BytesMut,
    to_client: BytesMut,
    /// By token: how it ended, `None` = not yet.
    ends: Vec<Option<&'static str>>,
    calls: HashMap<u32, Call>,
    serving: BTreeMap<u32, Call>,
    draining: bool,
    now: Duration,
}

impl World {
    fn new(client_window: u32, server_window: u32, handshake: bool) -> Self {
        let offer = |window| Offer { window, ..Offer::default() };
        let client = ClientConfig {
            handshake,
            offer: offer(client_window),
            max_in_flight: 20,
            ..ClientConfig::default()
        };
        let server =
            ServerConfig { offer: offer(server_window), max_in_flight: 10, ..ServerConfig::default() };
        Self {
            client: ClientSession::new(client),
            server: ServerSession::new(server),
            to_server: BytesMut::new(),
            to_client: BytesMut::new(),
            ends: Vec::new(),
            calls: HashMap::new(),
            serving: BTreeMap::new(),
            draining: false,
            now: NOW,
        }
    }

    fn run(&mut self, step: Step) {
        self.now += Duration::from_millis(1);
        match step {
            Step::Dispatch { size } => self.dispatch(size),
            Step::Cancel(index) => {
                let mut live: Vec<_> = self.calls.keys().copied().collect();
                live.sort_unstable();
                if !live.is_empty() {
                    let token = *index.get(&live);
                    let call = self.calls.remove(&token).unwrap();
                    assert_eq!(self.client.cancel(call, b"reason"), Some(token));
                    assert_eq!(self.client.cancel(call, b"reason"), None);
                    self.end(token, "cancelled");
                }
            }
            Step::Reply { which, size, nack } => {
                let serving: Vec<_> = self.serving.keys().copied().collect();
                if !serving.is_empty() {
                    self.reply(*which.get(&serving), size, if nack { Status::Nack } else { Status::Ok });
                }
            }
            Step::ToServer(count) => self.move_to_server(count),
            Step::ToClient(count) => self.move_to_client(count),
            Step::Ping => {
                self.now += Duration::from_secs(1);
                // A slow wire may be too slow for pings and handshakes; that end is tried elsewhere.
                if self.client.next_tick().is_none_or(|at| at > self.now) {
                    self.client.tick(self.now).unwrap();
                }
            }
            Step::Drain => {
                self.server.drain();
                self.draining = true;
            }
        }
    }

    fn dispatch(&mut self, size: usize) {
        let token = self.ends.len() as u32;
        let body = [&token.to_be_bytes()[..], &vec![b'x'; size]].concat();
        let head =
            DispatchHead { contexts: |out| out.put(b"key", b"value"), dst: b"/s", dtab: &Pairs::default() };
        match self.client.dispatch(token, head, body.into()) {
            Ok(call) => {
                assert!(self.calls.values().all(|other| other.tag() != call.tag()), "tag used twice");
                self.calls.insert(token, call);
                self.ends.push(None);
            }
            Err((back, _)) => {
                assert_eq!(back, token);
                self.ends.push(Some("refused"));
            }
        }
    }

    fn end(&mut self, token: u32, how: &'static str) {
        let end = &mut self.ends[token as usize];
        assert_eq!(*end, None, "ended twice");
        *end = Some(how);
    }

    fn reply(&mut self, token: u32, size: usize, status: Status) {
        let call = self.serving.remove(&token).unwrap();
        let body = [&token.to_be_bytes()[..], &vec![b'r'; size]].concat();
        let sent = self.server.reply(call, status, |out| out.put(b"k", b"v"), body.clone().into());
        assert!(sent);
        assert!(!self.server.reply(call, status, |_| {}, body.into()), "answered twice");
    }

    fn move_to_server(&mut self, count: usize) {
        self.to_server.extend_from_slice(&take(self.client.outbox_mut(), count));
        while let Some(frame) = next_frame(&mut self.to_server, frame::MAX_LEN).unwrap() {
            // Never an error: no tag is used twice, nothing is malformed.
            match self.server.receive(frame, self.now).unwrap() {
                ServerEvent::Dispatch { call, request: Request::Tdispatch(request) } => {
                    let token = u32::from_be_bytes(*request.body.first_chunk().unwrap());
                    assert_eq!((&request.dst[..], request.contexts.len()), (&b"/s"[..], 1));
                    assert!(request.body[4..].iter().all(|byte| *byte == b'x'));
                    assert!(self.server.accept(call, token));
                    self.serving.insert(token, call);
                }
                ServerEvent::Discarded { token, why, .. } => {
                    let token = token.unwrap();
                    assert_eq!(self.ends[token as usize], Some("cancelled"));
                    assert_eq!(why, "reason");
                    self.serving.remove(&token).unwrap();
                }
                ServerEvent::Dispatch { request, .. } => panic!("{request:?}"),
                _ => {}
            }
        }
    }

    fn move_to_client(&mut self, count: usize) {
        self.to_client.extend_from_slice(&take(self.server.outbox_mut(), count));
        while let Some(frame) = next_frame(&mut self.to_client, frame::MAX_LEN).unwrap() {
            match self.client.receive(frame, self.now).unwrap() {
                Some(Event::Replied { token, reply }) => {
                    self.calls.remove(&token).unwrap();
                    if reply.status == Status::Ok {
                        assert_eq!(reply.body[..4], token.to_be_bytes());
                        assert!(reply.body[4..].iter().all(|byte| *byte == b'r'));
                    }
                    self.end(token, "replied");
                }
                Some(Event::Failed { why, .. }) => panic!("{why:?}"),
                _ => {}
            }
        }
    }

    /// Lets everything come to its end.
    fn finish(&mut self) {
        for _ in 0..5 {
            // All that is on its way arrives, in rounds, for an answer asks for another.
            while self.client.outbox().has_remaining() || self.server.outbox().has_remaining() {
                self.move_to_server(usize::MAX);
                self.move_to_client(usize::MAX);
            }
            for token in self.serving.keys().copied().collect::<Vec<_>>() {
                self.reply(token, 3, Status::Ok);
            }
        }
    }
}

fn converse(client_window: u32, server_window: u32, handshake: bool, steps: Vec<Step>) {
    let mut world = World::new(client_window, server_window, handshake);
    for step in steps {
        world.run(step);
    }
    world.finish();
    assert!(world.ends.iter().all(Option::is_some), "a dispatch without an end: {:?}", world.ends);
    assert!(world.calls.is_empty() && world.serving.is_empty());
    assert_eq!((world.client.in_flight(), world.client.lost_tags(), world.server.in_flight()), (0, 0, 0));
    assert!(world.client.outbox().is_empty() && world.server.outbox().is_empty());
    if world.draining {
        assert!(world.server.is_drained(), "the drain did not end");
        // A client that never spoke has not heard of it.
        let heard = world.client.status(world.now) == SessionStatus::Closed;
        assert!(heard || !handshake && world.ends.iter().all(|end| *end != Some("replied")));
    }
    assert_eq!(world.client.close(), []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn every_dispatch_has_one_end_and_a_drain_ends(
        client_window in prop_oneof![1..40u32, 100..4000u32, Just(1 << 20)],
        server_window in prop_oneof![1..40u32, 100..4000u32, Just(1 << 20)],
        handshake in prop::bool::weighted(0.7),
        steps in prop::collection::vec(step(), 0..150),
    ) {
        converse(client_window, server_window, handshake, steps);
    }
}

/// Blocks out of a stream that comes in chunks of `chunk` bytes.
fn decompress(stream: &[u8], chunk: usize) -> Result<BytesMut, lz4::Lz4Error> {
    let (mut input, mut out) = (BytesMut::new(), BytesMut::new());
    for part in stream.chunks(chunk) {
        input.extend_from_slice(part);
        loop {
            match next_block(&mut input, &mut out, lz4::MAX_BLOCK)? {
                Next::Block => {}
                Next::End => return Ok(out),
                Next::Missing(count) => {
                    assert!(count > 0);
                    break;
                }
            }
        }
    }
    Ok(out)
}

proptest! {
    #[test]
    fn what_is_compressed_comes_back(
        writes in prop::collection::vec((any::<u8>(), 1..40_000usize, blob(300)), 0..6),
        chunk in 1..5000usize,
    ) {
        let (mut encoder, mut stream, mut all) = (Encoder::default(), BytesMut::new(), Vec::new());
        for (byte, count, noise) in writes {
            let write = [&vec![byte; count][..], &noise[..]].concat();
            encoder.encode(&write, &mut stream);
            all.extend_from_slice(&write);
        }
        prop_assert_eq!(&decompress(&stream, chunk).unwrap()[..], &all[..]);
        lz4::put_end(&mut stream);
        stream.extend_from_slice(b"junk");
        prop_assert_eq!(&decompress(&stream, chunk).unwrap()[..], &all[..]);
    }

    #[test]
    fn no_stream_makes_the_decompressor_panic_or_grow(
        text in prop::collection::vec(0..4u8, 100..2000),
        flips in prop::collection::vec((any::<Index>(), any::<u8>()), 1..5),
        junk in blob(200),
    ) {
        let mut stream = BytesMut::new();
        Encoder::default().encode(&text, &mut stream);
        for (at, byte) in flips {
            let at = at.index(stream.len());
            stream[at] = byte;
        }
        stream.extend_from_slice(&junk);
        if let Ok(out) = decompress(&stream, 100) {
            prop_assert!(out.is_empty() || out[..] == text[..]);
        }
        let _ = decompress(&junk, 7);
    }
}
