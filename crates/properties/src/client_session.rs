//! The client's session machine, under a script of ours and of its server.

use crate::peer::{self, FROM_SERVER};
use crate::script::Script;
use crate::tap::{ROUNDS, Tap};
use bytes::Bytes;
use muxgate_wire::mux::client::{ClientConfig, ClientSession, DispatchHead, Event, SessionStatus};
use muxgate_wire::mux::frame::{Frame, HEADER, Tag, kind};
use muxgate_wire::mux::handshake::{Offer, TlsLevel};
use muxgate_wire::mux::limits::MAX_TEXT;
use muxgate_wire::mux::message::Tdiscarded;
use muxgate_wire::mux::session::Call;
use muxgate_wire::pairs::Pairs;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Longest body of a dispatch.
const LONGEST: usize = 5000;
static BODY: [u8; LONGEST] = [b'x'; LONGEST];
/// Bytes around it.
const AROUND: usize = 100;

/// Plays a script: dispatches, cancellations, bytes written, time passing, and frames of a server that may be mad.
///
/// # Panics
/// When a tag is used twice while it is in flight, a dispatch has another number of ends than one, a drain does not end,
/// more is queued than may be, or the session panics.
pub fn client_session(data: &[u8]) {
    let mut script = Script::new(data);
    let mut model = Model::new(&mut script);
    while !script.is_over() && !model.dead {
        model.step(&mut script);
        model.check();
    }
    model.finish();
}

/// The session, and what must be true of it.
struct Model {
    session: ClientSession<u32>,
    config: ClientConfig,
    tap: Tap,
    now: Duration,
    tokens: u32,
    /// Dispatches without an end.
    live: BTreeMap<u32, Call>,
    /// Those that were sent again in the old form, which happens once, and not after a handshake.
    again: BTreeSet<u32>,
    shook_hands: bool,
    /// Calls that have ended: nothing may come of them.
    over: Vec<Call>,
    on_wire: OnWire,
    highest: u32,
    /// Frames, cancellations and ticks: each may have been answered by a message of ours.
    causes: usize,
    draining: bool,
    dead: bool,
}

impl Model {
    fn new(script: &mut Script<'_>) -> Self {
        let tls = script.pick(&[TlsLevel::Off, TlsLevel::Off, TlsLevel::Desired, TlsLevel::Required]);
        let config = ClientConfig {
            handshake: script.flag(),
            offer: Offer { tls, compression: peer::compression(script), ..Offer::default() },
            max_in_flight: 1 + script.below(9),
            tag_rest: script.below(4),
            max_held: script.below(5),
            max_queued_bytes: script.pick(&[100, 2000, 100_000]),
            limits: peer::limits(script),
            ping_interval: script.flag().then_some(Duration::from_secs(5)),
            ..ClientConfig::default()
        };
        Self {
            session: ClientSession::new(config.clone()),
            config,
            tap: Tap::new(script.flag()),
            now: Duration::ZERO,
            tokens: 0,
            live: BTreeMap::new(),
            again: BTreeSet::new(),
            shook_hands: false,
            over: Vec::new(),
            on_wire: OnWire::default(),
            highest: Tag::FIRST.get(),
            causes: 1,
            draining: false,
            dead: false,
        }
    }

    fn step(&mut self, script: &mut Script<'_>) {
        match script.below(16) {
            0..4 => self.dispatch(usize::from(script.word()) % LONGEST),
            4 | 5 => {
                let nth = script.below(self.live.len().max(1));
                if let Some((&token, &call)) = self.live.iter().nth(nth) {
                    assert_eq!(self.session.cancel(call, b"reason"), Some(token));
                    self.end(token);
                    self.causes += 1;
                }
            }
            6 => {
                if let Some(call) = self.over.get(script.below(self.over.len().max(1))) {
                    assert_eq!(self.session.cancel(*call, b"reason"), None, "it is over");
                }
            }
            7 | 8 => self.write(usize::from(script.word()) % 4000),
            9 => {
                self.now += Duration::from_millis(u64::from(script.word()));
                self.tick();
            }
            10 => {
                self.session.switched(self.now);
                self.causes += 1;
            }
            _ => {
                let frame = peer::frame(script, &FROM_SERVER);
                self.receive(frame);
            }
        }
    }

    fn dispatch(&mut self, size: usize) {
        let token = self.tokens;
        self.tokens += 1;
        let open = self.session.status(self.now) == SessionStatus::Open;
        let head =
            DispatchHead { contexts: |out| out.put(b"key", b"value"), dst: b"/s", dtab: &Pairs::default() };
        match self.session.dispatch(token, head, Bytes::from_static(&BODY[..size])) {
            Ok(call) => {
                assert!(call.tag() >= Tag::FIRST);
                assert!(self.live.values().all(|other| other.tag() != call.tag()), "a tag is used twice");
                // The smallest one that is free: what is not given back would be missed soon.
                let taken = self.config.max_in_flight + self.session.lost_tags() + self.config.tag_rest;
                assert!(((call.tag().get() - Tag::FIRST.get()) as usize) < taken, "tags are lost");
                self.highest = self.highest.max(call.tag().get());
                self.live.insert(token, call);
            }
            Err((back, refused)) => {
                assert_eq!(back, token);
                assert!(!open, "an open session refuses: {refused}");
            }
        }
    }

    fn end(&mut self, token: u32) -> Call {
        let call = self.live.remove(&token).expect("a dispatch that has no end yet");
        self.over.push(call);
        call
    }

    fn write(&mut self, count: usize) {
        let frames = self.tap.write(self.session.outbox_mut(), count);
        self.written(&frames);
    }

    fn written(&mut self, frames: &[Frame]) {
        let live: BTreeSet<u32> = self.live.values().map(|call| call.tag().get()).collect();
        for frame in frames {
            self.on_wire.sent(frame, |tag| live.contains(&tag));
        }
    }

    fn tick(&mut self) {
        self.causes += 1;
        match self.session.tick(self.now) {
            Ok(next) => {
                assert_eq!(next, self.session.next_tick());
                assert!(next.is_none_or(|at| at > self.now), "due again at once");
            }
            Err(_) => self.die(),
        }
    }

    fn receive(&mut self, frame: Frame) {
        self.causes += 1;
        let answers = self.session.is_established() && !frame.fragment && is_answer(frame.kind);
        let (tag, kind) = (frame.tag, frame.kind);
        let asked = self.live.iter().find(|(_, call)| answers && call.tag() == tag).map(|(token, _)| *token);
        if answers {
            self.on_wire.answered(tag.get());
        }
        match self.session.receive(frame, self.now) {
            Ok(Some(Event::Replied { token, .. } | Event::Failed { token, .. })) => {
                assert_eq!(Some(token), asked);
                self.end(token);
            }
            Ok(event) => {
                if let Some(token) = asked {
                    let rerr = matches!(kind, kind::RERR | kind::RERR_OLD);
                    let first = self.again.insert(token);
                    assert!(rerr && first && !self.shook_hands, "an answer that is lost");
                }
                if let Some(Event::Established(agreed)) = &event {
                    self.shook_hands = agreed.handshake;
                }
                self.draining |= matches!(event, Some(Event::Draining));
                // A drain that comes in place of the handshake shows in the status alone.
                let status = self.session.status(self.now);
                self.draining |= status == SessionStatus::Busy(muxgate_wire::mux::client::Why::Draining);
                self.draining |= status == SessionStatus::Closed;
            }
            Err(_) => self.die(),
        }
    }

    fn die(&mut self) {
        self.dead = true;
        assert_eq!(self.session.status(self.now), SessionStatus::Closed);
    }

    fn check(&self) {
        assert!(self.session.in_flight() >= self.live.len());
        assert!(self.session.in_flight() <= self.config.max_in_flight);
        let most =
            self.config.max_queued_bytes + LONGEST + AROUND + ROUNDS + self.causes * (HEADER + MAX_TEXT);
        assert!(
            self.session.outbox().queued_bytes() <= most,
            "{} of {most}",
            self.session.outbox().queued_bytes()
        );
        if self.draining && self.session.in_flight() == 0 {
            assert_eq!(self.session.status(self.now), SessionStatus::Closed, "the drain has ended");
        }
    }

    /// Lets everything come to its end.
    fn finish(mut self) {
        if !self.dead && self.session.is_established() {
            self.write_all();
            for tag in Tag::FIRST.get()..=self.highest {
                let tag = Tag::new(tag).expect("a tag in use");
                self.receive(Frame { kind: kind::RDISCARDED, tag, fragment: false, body: Bytes::new() });
                assert!(!self.dead);
            }
            assert!(self.live.is_empty());
            assert_eq!((self.session.in_flight(), self.session.lost_tags()), (0, 0));
            self.check();
            self.write_all();
        }
        let mut back: Vec<_> = self.session.take_all().into_iter().map(|call| call.token).collect();
        back.sort_unstable();
        assert_eq!(back, self.live.into_keys().collect::<Vec<_>>(), "each has one end");
        assert_eq!((self.session.take_all().len(), self.session.in_flight()), (0, 0));
        let head = DispatchHead { contexts: |_| {}, dst: b"/s", dtab: &Pairs::default() };
        assert!(self.session.dispatch(0, head, Bytes::new()).is_err());
    }

    fn write_all(&mut self) {
        let frames = self.tap.write_all(self.session.outbox_mut());
        self.written(&frames);
    }
}

/// Whether a frame of this kind frees its tag.
fn is_answer(kind: i8) -> bool {
    let known = [
        kind::RDISPATCH,
        kind::RREQ,
        kind::RERR,
        kind::RERR_OLD,
        kind::RDISCARDED,
        kind::RINIT,
        kind::RDRAIN,
    ];
    known.contains(&kind) || (kind < 0 && kind::is_application(kind) && kind != kind::TDISCARDED_OLD)
}

/// Tags as the server sees them.
#[derive(Default)]
struct OnWire {
    /// Asked and not answered.
    asked: BTreeSet<u32>,
    /// Those of which the last piece is still to come.
    partial: BTreeSet<u32>,
    /// Answered before they were asked: a server that does this has itself to blame for what it gets.
    confused: BTreeSet<u32>,
}

impl OnWire {
    fn sent(&mut self, frame: &Frame, live: impl Fn(u32) -> bool) {
        let tag = frame.tag.get();
        match frame.kind {
            kind::TDISPATCH | kind::TREQ => {
                if !self.partial.contains(&tag) {
                    let new = self.asked.insert(tag);
                    assert!(new || self.confused.contains(&tag), "tag {tag} is used twice on the wire");
                }
                if frame.fragment {
                    self.partial.insert(tag);
                } else {
                    self.partial.remove(&tag);
                }
            }
            kind::TDISCARDED_OLD => {
                let which = Tdiscarded::decode(frame.body.clone()).expect("a Tdiscarded of ours").which;
                // It may have been answered in the meantime; but it must not hit who has the tag now.
                let hits = live(which) && self.asked.contains(&which) && !self.confused.contains(&which);
                assert!(!hits, "tag {which} is given up and somebody waits");
                self.partial.remove(&which);
            }
            other => assert!(
                [kind::TPING, kind::RPING, kind::RDRAIN, kind::TINIT, kind::RERR_OLD].contains(&other),
                "a client that sends {other}"
            ),
        }
    }

    fn answered(&mut self, tag: u32) {
        if self.partial.contains(&tag) || !self.asked.remove(&tag) {
            self.confused.insert(tag);
        }
    }
}
