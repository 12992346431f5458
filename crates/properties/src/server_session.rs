//! The server's session machine, under a script of ours and of its client.

use crate::peer::{self, FROM_CLIENT};
use crate::script::Script;
use crate::tap::{ROUNDS, Tap};
use bytes::Bytes;
use muxgate_wire::mux::frame::{Frame, HEADER, Tag, kind};
use muxgate_wire::mux::handshake::{Offer, TlsLevel};
use muxgate_wire::mux::limits::MAX_TEXT;
use muxgate_wire::mux::message::{Status, Tdiscarded};
use muxgate_wire::mux::server::{ServerConfig, ServerEvent, ServerSession};
use muxgate_wire::mux::session::Call;
use std::collections::BTreeMap;
use std::time::Duration;

/// Longest body of a reply.
const LONGEST: usize = 5000;
static BODY: [u8; LONGEST] = [b'r'; LONGEST];

/// Plays a script: replies, drains, leases, bytes written, time passing, and frames of a client that may be mad.
///
/// # Panics
/// When a call is not answered exactly once or handed back, a drain does not end, more is queued than may be, or the
/// session panics.
pub fn server_session(data: &[u8]) {
    let mut script = Script::new(data);
    let mut model = Model::new(&mut script);
    while !script.is_over() && !model.session.is_closed() {
        model.step(&mut script);
        model.check();
    }
    model.finish();
}

/// The session, and what must be true of it.
struct Model {
    session: ServerSession<u32>,
    config: ServerConfig,
    tap: Tap,
    now: Duration,
    tokens: u32,
    /// Calls without an answer, by tag, and what was given to `accept`.
    serving: BTreeMap<u32, (Call, Option<u32>)>,
    /// Calls that are over.
    over: Vec<Call>,
    answers: BTreeMap<u32, Answers>,
    causes: usize,
    drain_asked: bool,
    drain_told: bool,
    acknowledged: bool,
}

/// How often the client was to be answered on a tag, and was.
#[derive(Default)]
struct Answers {
    due: usize,
    /// Cancellations that may have been acknowledged beside them.
    perhaps: usize,
    written: usize,
}

impl Model {
    fn new(script: &mut Script<'_>) -> Self {
        let tls = script.pick(&[TlsLevel::Off, TlsLevel::Off, TlsLevel::Desired, TlsLevel::Required]);
        let config = ServerConfig {
            offer: Offer { tls, compression: peer::compression(script), ..Offer::default() },
            max_in_flight: 1 + script.below(9),
            max_queued_bytes: script.pick(&[100, 2000, 100_000]),
            nack_expired_lease: script.flag(),
            limits: peer::limits(script),
            ..ServerConfig::default()
        };
        Self {
            session: ServerSession::new(config.clone()),
            config,
            tap: Tap::new(script.flag()),
            now: Duration::ZERO,
            tokens: 0,
            serving: BTreeMap::new(),
            over: Vec::new(),
            answers: BTreeMap::new(),
            causes: 1,
            drain_asked: false,
            drain_told: false,
            acknowledged: false,
        }
    }

    fn step(&mut self, script: &mut Script<'_>) {
        match script.below(16) {
            0..3 => {
                let nth = script.below(self.serving.len().max(1));
                let status = script.pick(&[Status::Ok, Status::Ok, Status::Ok, Status::Error, Status::Nack]);
                let size = usize::from(script.word()) % LONGEST;
                if let Some(tag) = self.serving.keys().nth(nth).copied() {
                    self.reply(tag, status, size);
                }
            }
            3 => {
                if let Some(call) = self.over.get(script.below(self.over.len().max(1))).copied() {
                    assert!(!self.session.reply(call, Status::Ok, |_| {}, Bytes::new()), "answered twice");
                    assert!(!self.session.accept(call, 0), "it is over");
                }
            }
            4 | 5 => self.write(usize::from(script.word()) % 4000),
            6 => {
                self.now += Duration::from_millis(u64::from(script.word()));
                match self.session.tick(self.now) {
                    Ok(next) => {
                        assert_eq!(next, self.session.next_tick());
                        assert!(next.is_none_or(|at| at > self.now), "due again at once");
                    }
                    Err(_) => assert!(self.session.is_closed()),
                }
            }
            7 => self.rare(script),
            _ => {
                let frame = peer::frame(script, &FROM_CLIENT);
                self.receive(frame, script.byte() != 255);
            }
        }
    }

    fn rare(&mut self, script: &mut Script<'_>) {
        self.causes += 1;
        match script.byte() {
            0..200 => {
                self.session.lease(script.pick(&[0, 10, 1000, u32::MAX]), self.now);
                return;
            }
            200..250 => self.session.drain(),
            _ => self.session.refuse(),
        }
        self.drain_asked = true;
    }

    fn reply(&mut self, tag: u32, status: Status, size: usize) {
        let (call, _) = self.serving.remove(&tag).expect("a call that is served");
        let body = Bytes::from_static(&BODY[..size]);
        assert!(self.session.reply(call, status, |out| out.put(b"k", b"v"), body));
        self.over.push(call);
        self.answers.entry(tag).or_default().due += 1;
    }

    fn receive(&mut self, frame: Frame, accept: bool) {
        self.causes += 1;
        let tag = frame.tag.get();
        let discards = matches!(frame.kind, kind::TDISCARDED | kind::TDISCARDED_OLD) && !frame.fragment;
        let which = discards.then(|| Tdiscarded::decode(frame.body.clone()).ok()).flatten();
        match self.session.receive(frame, self.now) {
            Ok(ServerEvent::Dispatch { call, .. }) => {
                assert_eq!(call.tag().get(), tag);
                let token = accept.then_some(self.tokens);
                self.tokens += 1;
                if let Some(token) = token {
                    assert!(self.session.accept(call, token));
                }
                assert!(self.serving.insert(tag, (call, token)).is_none(), "a tag is served twice");
            }
            Ok(ServerEvent::Refused { tag: refused, .. }) => {
                assert!(refused.get() == tag && !self.serving.contains_key(&tag));
                self.answers.entry(tag).or_default().due += 1;
            }
            Ok(ServerEvent::Discarded { tag, token, .. }) => {
                assert_eq!(which.map(|discarded| discarded.which), Some(tag.get()));
                let (call, given) = self.serving.remove(&tag.get()).expect("a call that is served");
                assert_eq!(token, given);
                self.over.push(call);
                self.answers.entry(tag.get()).or_default().due += 1;
            }
            Ok(event) => {
                self.acknowledged |= event == ServerEvent::DrainAcknowledged;
                if let Some(discarded) = which {
                    assert!(!self.serving.contains_key(&discarded.which), "a call that goes on for nobody");
                    self.answers.entry(discarded.which).or_default().perhaps += 1;
                }
            }
            Err(_) => assert!(self.session.is_closed()),
        }
    }

    fn write(&mut self, count: usize) {
        let frames = self.tap.write(self.session.outbox_mut(), count);
        self.written(&frames);
    }

    fn written(&mut self, frames: &[Frame]) {
        for frame in frames {
            let answer = matches!(frame.kind, kind::RDISPATCH | kind::RREQ | kind::RDISCARDED);
            if answer && !frame.fragment {
                self.answers.entry(frame.tag.get()).or_default().written += 1;
            }
            if frame.kind == kind::TDRAIN {
                assert!(self.drain_asked && !self.drain_told, "told once, when asked to");
                self.drain_told = true;
            }
        }
    }

    fn check(&self) {
        assert_eq!(self.session.in_flight(), self.serving.len());
        assert!(self.serving.len() <= self.config.max_in_flight);
        // All calls that are served may be answered before any of it is written.
        let calls = self.over.len();
        let most =
            self.config.max_queued_bytes + calls * 2 * LONGEST + ROUNDS + self.causes * (HEADER + MAX_TEXT);
        assert!(
            self.session.outbox().queued_bytes() <= most,
            "{} of {most}",
            self.session.outbox().queued_bytes()
        );
    }

    /// Lets everything come to its end.
    fn finish(mut self) {
        if !self.session.is_closed() {
            for tag in self.serving.keys().copied().collect::<Vec<_>>() {
                self.reply(tag, Status::Ok, 3);
            }
            let frames = self.tap.write_all(self.session.outbox_mut());
            self.written(&frames);
            for (tag, answers) in &self.answers {
                assert!(answers.written >= answers.due, "tag {tag} waits for ever");
                assert!(answers.written <= answers.due + answers.perhaps, "tag {tag} is answered twice");
            }
            if self.drain_told && !self.acknowledged {
                assert!(!self.session.is_drained());
                let tag = Tag::SESSION;
                self.receive(Frame { kind: kind::RDRAIN, tag, fragment: false, body: Bytes::new() }, true);
                assert!(self.acknowledged);
            }
            assert_eq!(self.session.is_drained(), self.drain_asked, "a drain ends when it is asked for");
        }
        let back: BTreeMap<_, _> = self.session.take_all().map(|(tag, token)| (tag.get(), token)).collect();
        let serving = self.serving.iter().map(|(tag, (_, token))| (*tag, *token)).collect();
        assert_eq!(back, serving, "what is left is handed back");
        assert_eq!((self.session.take_all().count(), self.session.in_flight()), (0, 0));
        for call in self.over.into_iter().chain(self.serving.into_values().map(|(call, _)| call)) {
            assert!(!self.session.reply(call, Status::Ok, |_| {}, Bytes::new()), "the session is over");
        }
    }
}
