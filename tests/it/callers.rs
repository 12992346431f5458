//! Plain callers of every form: what they are answered, in which order, and what their connection lives through.

use crate::support::{House, to, yaml};
use bytes::Bytes;
use muxgate_testkit::Backend;
use muxgate_testkit::backend::{Event, Plan, Reply};
use muxgate_testkit::link::{Dialect, Link};
use muxgate_testkit::mux::Dispatch;
use muxgate_testkit::raw::LIMIT;
use muxgate_testkit::theader::Header;
use muxgate_testkit::thrift::{EXCEPTION, Message, ONEWAY, Protocol, REPLY};
use muxgate_testkit::ttwitter;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::timeout;

/// Calls that are sent without waiting.
const PIPELINED: i32 = 20;

#[derive(Clone, Copy, Debug)]
struct Form {
    dialect: Dialect,
    protocol: Protocol,
    zlib: bool,
}

const fn form(dialect: Dialect, protocol: Protocol, zlib: bool) -> Form {
    Form { dialect, protocol, zlib }
}

const FORMS: [Form; 9] = [
    form(Dialect::Framed, Protocol::Binary, false),
    form(Dialect::Framed, Protocol::Compact, false),
    form(Dialect::TTwitter, Protocol::Binary, false),
    form(Dialect::Buffered, Protocol::Binary, false),
    form(Dialect::Buffered, Protocol::Compact, false),
    form(Dialect::Header, Protocol::Binary, false),
    form(Dialect::Header, Protocol::Binary, true),
    form(Dialect::Header, Protocol::Compact, false),
    form(Dialect::Header, Protocol::Compact, true),
];

/// A caller of some form.
struct Peer {
    link: Link,
    form: Form,
}

impl Peer {
    async fn connect(form: Form, gateway: SocketAddr) -> Self {
        let mut link = Link::connect(gateway).await.expect("a connection");
        if form.dialect == Dialect::TTwitter {
            link.send(&framed(&ttwitter::upgrade().to_bytes())).await.expect("an open connection");
            link.next(Dialect::Framed).await.expect("the answer to the upgrade");
        }
        Self { link, form }
    }

    /// The message as it goes over the wire.
    fn wrapped(&self, message: &Message) -> Bytes {
        let body = message.to_bytes();
        match self.form.dialect {
            Dialect::Buffered => body,
            Dialect::Header => framed(&Header::around(message, self.form.zlib).to_bytes()),
            Dialect::TTwitter => framed(&ttwitter::to_bytes(&Dispatch { body, ..Dispatch::default() })),
            _ => framed(&body),
        }
    }

    async fn send(&mut self, bytes: &[u8]) {
        timeout(LIMIT, self.link.send(bytes)).await.expect("room in time").expect("an open connection");
    }

    async fn tell(&mut self, message: &Message) {
        let bytes = self.wrapped(message);
        self.send(&bytes).await;
    }

    /// The next reply; none at the end.
    async fn hear(&mut self) -> Option<Message> {
        let next = timeout(LIMIT, self.link.next(self.form.dialect)).await.expect("an answer in time");
        let frame = next.ok()?;
        let body = match self.form.dialect {
            Dialect::TTwitter => ttwitter::reply(&frame).expect("a reply header"),
            Dialect::Header => {
                let header = Header::parse(&frame).expect("a THeader frame");
                assert_eq!(header.zlib, self.form.zlib);
                header.message
            }
            _ => frame,
        };
        Some(Message::parse(&body).expect("a Thrift message"))
    }

    async fn ask(&mut self, message: &Message) -> Message {
        self.tell(message).await;
        self.hear().await.expect("an open connection")
    }

    fn echo(&self, seqid: i32, text: &str) -> Message {
        Message::call(self.form.protocol, "echo", seqid, text)
    }
}

fn framed(content: &[u8]) -> Bytes {
    [&(content.len() as u32).to_be_bytes()[..], content].concat().into()
}

async fn gateway(backend: &Backend, upstream: &str, listener: &str) -> House {
    let text = yaml(&to(backend.addr()), upstream, "failureAccrual: {kind: none}");
    House::start(&text.replace("dst: /s/probe}", &format!("dst: /s/probe, {listener}}}"))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_answer_reaches_every_kind_of_caller() {
    println!("{:40}{:12}works", "caller", "service");
    for form in FORMS {
        for upstream in ["framed", "thriftmux"] {
            let backend = Backend::start().await;
            let house = gateway(&backend, upstream, "maxFrameBytes: 1000000").await;
            let mut peer = Peer::connect(form, house.addr).await;
            for (seqid, text) in [(1, ""), (-1, "text"), (i32::MAX, &"long ".repeat(40_000)[..])] {
                let call = peer.echo(seqid, text);
                assert_eq!(Some(peer.ask(&call).await), call.served(), "{form:?}");
                let came = backend.calls().last().map(|call| call.bytes.clone());
                assert_eq!(came, Some(call.to_bytes()), "{form:?}: the message as it came");
            }
            for (reply, kind) in [
                (Reply::Exception(1, "no such method".into()), EXCEPTION),
                (Reply::Exception(6, "boom".into()), EXCEPTION),
                (Reply::Declared("no".into()), REPLY),
                (Reply::Close, EXCEPTION),
            ] {
                backend.script([Plan::now(reply.clone())]);
                let call = peer.echo(7, "x");
                let answer = peer.ask(&call).await;
                assert_eq!(
                    (answer.kind, answer.seqid, &answer.name[..]),
                    (kind, 7, &b"echo"[..]),
                    "{form:?}"
                );
                if let Reply::Exception(code, text) = &reply {
                    assert_eq!(answer, call.exception(*code, text), "{form:?}: as the service said it");
                }
            }
            let note = Message { kind: ONEWAY, ..Message::call(form.protocol, "note", 3, "x") };
            peer.tell(&note).await;
            let call = peer.echo(8, "next");
            assert_eq!(
                Some(peer.ask(&call).await),
                call.served(),
                "{form:?}: nothing came of the oneway call"
            );
            // It may need a connection of its own to be made, and come in later.
            backend.wait("the note", |events| (count(events, "note") == 1).then_some(())).await;
            house.pages.until_idle().await;
            println!("{:40}{upstream:12}yes", format!("{form:?}"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_sent_without_waiting_are_answered_in_order() {
    for form in FORMS {
        let backend = Backend::start().await;
        // The later a call is sent, the earlier its service answers.
        backend.decide(|call| {
            let seqid = call.message.as_ref().map_or(0, |message| message.seqid);
            Plan::after(Duration::from_millis(5 * (PIPELINED - seqid).max(0) as u64))
        });
        let house = gateway(&backend, "thriftmux", "maxInFlight: 16").await;
        let mut peer = Peer::connect(form, house.addr).await;
        let calls: Vec<_> =
            (1..=PIPELINED).map(|seqid| peer.echo(seqid, &"x".repeat(seqid as usize * 500))).collect();
        let bytes: Vec<_> = calls.iter().map(|call| peer.wrapped(call)).collect();
        peer.send(&bytes.concat()).await;
        for call in &calls {
            assert_eq!(peer.hear().await, call.served(), "{form:?}");
        }
        assert_eq!(backend.calls().len(), calls.len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_may_come_one_at_a_time() {
    let backend = Backend::start().await;
    let house = gateway(&backend, "framed", "maxConnections: 100").await;
    for form in FORMS {
        let mut peer = Peer::connect(form, house.addr).await;
        for seqid in [1, 2] {
            let call = peer.echo(seqid, "slowly");
            for byte in peer.wrapped(&call) {
                peer.send(&[byte]).await;
                tokio::task::yield_now().await;
            }
            assert_eq!(peer.hear().await, call.served(), "{form:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_costs_its_connection_and_no_call_before_it() {
    let backend = Backend::start().await;
    let house = gateway(&backend, "framed", "maxConnections: 100").await;
    let mut bystander = Peer::connect(FORMS[0], house.addr).await;
    for form in FORMS {
        let mut peer = Peer::connect(form, house.addr).await;
        let calls = [peer.echo(1, "a"), peer.echo(2, "b")];
        let before = calls.each_ref().map(|call| peer.wrapped(call)).concat();
        peer.send(&[&before[..], b"\x00\x00\x00\x07garbage", &before].concat()).await;
        for call in &calls {
            assert_eq!(peer.hear().await, call.served(), "{form:?}");
        }
        assert_eq!(peer.hear().await, None, "{form:?}");
        let call = bystander.echo(3, "well");
        assert_eq!(Some(bystander.ask(&call).await), call.served());
    }
    assert_eq!(house.pages.sum("muxgate_listener_decode_errors_total", &[]).await, FORMS.len() as f64);
    house.pages.until_idle().await;
}

/// Without frames the old binary form can be taken only where nothing else is.
#[tokio::test(flavor = "multi_thread")]
async fn a_listener_may_speak_one_protocol_alone() {
    let forms = [FORMS[0], FORMS[3], FORMS[5]];
    for (word, taken) in [("framed", 0), ("buffered", 1), ("header", 2), ("thriftmux", 3)] {
        let backend = Backend::start().await;
        let house = gateway(&backend, "framed", &format!("protocol: {word}")).await;
        for (n, form) in forms.into_iter().enumerate() {
            let mut peer = Peer::connect(form, house.addr).await;
            let call = peer.echo(1, "in");
            peer.tell(&call).await;
            let want = if n == taken { call.served() } else { None };
            assert_eq!(peer.hear().await, want, "{word}: {form:?}");
        }
        for (n, cause) in ["framed", "unframed", "theader"].into_iter().enumerate() {
            let counted = house.pages.sum("muxgate_listener_decode_errors_total", &[("cause", cause)]).await;
            assert_eq!(counted, f64::from(u8::from(n != taken)), "{word}: {cause}");
        }
        let old = "0000000470696e67 01 00000007 00";
        let mut peer = muxgate_testkit::raw::Raw::connect(house.addr).await;
        peer.send(old).await;
        if word == "buffered" {
            peer.expect("0000000470696e67 02 00000007 00").await;
        } else {
            peer.close_write().await;
            peer.expect_close().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_may_speak_one_encoding_alone() {
    let backend = Backend::start().await;
    let house = gateway(&backend, "thriftmux", "thriftProtocol: compact").await;
    for form in FORMS {
        let mut peer = Peer::connect(form, house.addr).await;
        let call = peer.echo(4, "x");
        let answer = peer.ask(&call).await;
        if form.protocol == Protocol::Compact {
            assert_eq!(Some(answer), call.served(), "{form:?}");
        } else {
            assert_eq!(answer, call.exception(9, "only the compact protocol is spoken here"), "{form:?}");
        }
    }
    let mut client = house.mux().await;
    let refused = client.echo("/s/probe", "binary").await;
    assert_eq!((refused.status, &refused.text()[..]), (1, "only the compact protocol is spoken here"));
}

/// Methods that old senders send as ordinary calls and expect no reply to.
#[tokio::test(flavor = "multi_thread")]
async fn oneway_methods_have_no_reply_whatever_their_callers_say() {
    for upstream in ["framed", "thriftmux"] {
        for form in FORMS {
            let backend = Backend::start().await;
            // By Mux its service never answers, which nobody waits for; the other answers with an empty frame, as some do.
            let answer = if upstream == "thriftmux" { Reply::Hang } else { Reply::Bytes(Bytes::new()) };
            backend.decide(move |call| match call.method().as_str() {
                "note" => Plan::now(answer.clone()),
                _ => Plan::default(),
            });
            let house = gateway(&backend, upstream, "onewayMethods: [note]").await;
            let mut peer = Peer::connect(form, house.addr).await;
            let note = Message::call(form.protocol, "note", 3, "x");
            for seqid in [4, 5] {
                peer.tell(&note).await;
                let call = peer.echo(seqid, "next");
                assert_eq!(Some(peer.ask(&call).await), call.served(), "{form:?}");
            }
            let notes = |events: &[_]| (count(events, "note") == 2).then_some(());
            backend.wait("both notes", notes).await;
        }
        let backend = Backend::start().await;
        let house = gateway(&backend, upstream, "onewayMethods: [note]").await;
        let mut client = house.mux().await;
        let body = Message::call(Protocol::Binary, "note", 3, "x").to_bytes();
        let answer =
            client.call(&Dispatch { body, ..crate::support::echo("/s/probe", "") }).await.expect("an answer");
        assert_eq!((answer.status, answer.body), (0, Bytes::new()));
        assert_eq!(client.echo("/s/probe", "next").await.text(), "next");
    }
}

fn count(events: &[Event], method: &str) -> usize {
    events.iter().filter(|event| matches!(event, Event::Call(call) if call.method() == method)).count()
}
