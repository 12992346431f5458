//! Services that speak anything: each transport with each protocol, told by setting, whatever the caller speaks.

use crate::support::{House, echo, to, yaml};
use bytes::{BufMut, Bytes, BytesMut};
use muxgate_testkit::backend::{Event, Plan, Reply};
use muxgate_testkit::caller::Form;
use muxgate_testkit::link::Dialect;
use muxgate_testkit::mux::Dispatch;
use muxgate_testkit::theader::Header;
use muxgate_testkit::thrift::{EXCEPTION, Message, ONEWAY, Protocol, REPLY};
use muxgate_testkit::{Backend, Caller};

/// What a service may speak, as in the configuration.
const TRANSPORTS: [(&str, Dialect); 5] = [
    ("thriftmux", Dialect::Mux),
    ("framed", Dialect::Framed),
    ("ttwitter", Dialect::TTwitter),
    ("buffered", Dialect::Buffered),
    ("header", Dialect::Header),
];

const PROTOCOLS: [(&str, Option<Protocol>); 3] =
    [("same", None), ("binary", Some(Protocol::Binary)), ("compact", Some(Protocol::Compact))];

/// Largest reply that is taken where that is tested.
const LIMIT: usize = 4096;

/// A service with a gateway before it and a caller.
struct Scene {
    backend: Backend,
    house: House,
    caller: Caller,
    form: Form,
}

impl Scene {
    async fn new(form: Form, transport: &str, settings: &str) -> Self {
        let backend = Backend::start().await;
        backend.accept_upgrades();
        let settings = format!("{settings}, failureAccrual: {{kind: none}}");
        let house = House::start(&yaml(&to(backend.addr()), transport, &settings)).await;
        let caller = Caller::connect(form, house.addr).await;
        Self { backend, house, caller, form }
    }

    fn message(&self, text: &str) -> Message {
        Message::call(self.form.protocol(), "echo", 9, text)
    }

    async fn call(&mut self, call: &Message) -> Message {
        let dispatch = Dispatch { body: call.to_bytes(), ..echo("/s/probe", "") };
        self.caller.call(&dispatch).await.expect("an answer").message().expect("a Thrift message")
    }

    /// Makes a call that is answered like this; what is said to its caller.
    async fn answered(&mut self, reply: Reply) -> Message {
        self.backend.script([Plan::now(reply)]);
        self.call(&self.message("x")).await
    }

    /// Connections that the service has seen.
    fn connections(&self) -> usize {
        self.backend.events().iter().filter(|event| matches!(event, Event::Open(_))).count()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_transport_and_protocol_carries_every_kind_of_answer() {
    println!("{:15}{:12}{:10}works", "caller", "service", "protocol");
    for form in Form::ALL {
        for (transport, dialect) in TRANSPORTS {
            for (word, protocol) in PROTOCOLS {
                let scene = Scene::new(form, transport, &format!("thriftProtocol: {word}")).await;
                answers(scene, dialect, protocol.unwrap_or(form.protocol())).await;
                println!("{:15}{transport:12}{word:10}yes", format!("{form:?}"));
            }
        }
    }
}

async fn answers(mut scene: Scene, dialect: Dialect, protocol: Protocol) {
    for text in ["", "text", &"long ".repeat(20_000)] {
        let call = scene.message(text);
        assert_eq!(Some(scene.call(&call).await), call.served());
        let came = scene.backend.calls().pop().expect("a call");
        let message = came.message.expect("a message");
        assert_eq!((came.how.dialect, message.protocol), (dialect, protocol));
        assert_eq!((&message.name[..], message.seqid), (&b"echo"[..], 9));
        assert_eq!(message.string_argument().as_deref(), Some(text.as_bytes()));
    }
    let call = scene.message("x");
    assert_eq!(scene.answered(Reply::Declared("no".into())).await, call.declared_exception("no"));
    assert_eq!(scene.answered(Reply::Exception(6, "boom".into())).await, call.exception(6, "boom"));
    let note = Message { kind: ONEWAY, ..scene.message("later") };
    let dispatch = Dispatch { body: note.to_bytes(), ..echo("/s/probe", "") };
    if scene.form == Form::ThriftMux {
        assert_eq!(scene.caller.call(&dispatch).await.expect("an answer").body, Bytes::new());
    } else {
        scene.caller.tell(&dispatch).await;
    }
    assert_eq!(scene.caller.echo("/s/probe", "next").await.text(), "next");
    let was_noted = |call: &&muxgate_testkit::backend::Call| {
        call.message.as_ref().is_some_and(|message| message.kind == ONEWAY && message.protocol == protocol)
    };
    assert_eq!(scene.backend.calls().iter().filter(was_noted).count(), 1);
    // One connection served all of it, save that a oneway call and the next one may have gone side by side.
    assert!(scene.connections() <= 2, "{}", scene.connections());
}

/// Plain transports: Mux has the rest of its session to lose, and tests of its own.
fn plain() -> impl Iterator<Item = (&'static str, &'static str)> {
    let transports = TRANSPORTS.into_iter().filter(|(_, dialect)| *dialect != Dialect::Mux);
    transports.flat_map(|(transport, _)| PROTOCOLS.map(|(protocol, _)| (transport, protocol)))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_answer_fails_its_call_and_costs_the_connection() {
    for (transport, protocol) in plain() {
        let settings = format!("thriftProtocol: {protocol}, maxFrameBytes: {LIMIT}");
        let mut scene = Scene::new(Form::FramedCompact, transport, &settings).await;
        let large = match protocol {
            "binary" => Protocol::Binary,
            _ => Protocol::Compact,
        };
        let large = Message { kind: REPLY, ..Message::call(large, "echo", 9, &"x".repeat(2 * LIMIT)) };
        let garbage = Bytes::from_static(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
        let cases = [
            (Reply::Bytes(large.to_bytes()), "bad_reply"),
            (Reply::Raw(garbage), "bad_reply"),
            (Reply::Cut, "connection_lost"),
            (Reply::Close, "connection_lost"),
        ];
        for (n, (reply, cause)) in cases.into_iter().enumerate() {
            let case = format!("{transport} {protocol} {reply:?}");
            let answer = scene.answered(reply).await;
            assert_eq!(
                (answer.kind, answer.seqid, answer.protocol),
                (EXCEPTION, 9, Protocol::Compact),
                "{case}"
            );
            let failed = scene.house.pages.sum("muxgate_endpoint_failures_total", &[("cause", cause)]).await;
            assert_eq!(failed, (n % 2 + 1) as f64, "{case}");
            // The caller's connection lives on; the service's does not.
            assert_eq!(scene.caller.echo("/s/probe", "next").await.text(), "next", "{case}");
            assert_eq!(scene.connections(), n + 2, "{case}");
        }
        assert_eq!(scene.house.pages.sum("muxgate_route_retries_total", &[]).await, 0.0);
    }
}

/// More than one reply came: the second one must reach nobody.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_says_more_than_it_was_asked_is_closed() {
    for (transport, _) in plain().filter(|(_, protocol)| *protocol == "same") {
        let mut scene = Scene::new(Form::FramedBinary, transport, "thriftProtocol: same").await;
        let reply = scene.message("x").served().expect("a reply");
        let wrapped = match transport {
            "buffered" => reply.to_bytes(),
            "header" => framed(&Header::around(&reply, false).to_bytes()),
            "ttwitter" => framed(&[&[0], &reply.to_bytes()[..]].concat()),
            _ => framed(&reply.to_bytes()),
        };
        scene.backend.set(Plan::now(Reply::Hang));
        let call = scene.message("x");
        scene.caller.tell(&Dispatch { body: call.to_bytes(), ..echo("", "") }).await;
        scene.backend.wait_calls(1).await;
        scene.backend.set(Plan::default());
        scene.backend.send(wrapped.repeat(2).into());
        let answer = Bytes::from(scene.caller.raw.frame().await.expect("an answer"));
        assert_eq!(answer, reply.to_bytes(), "{transport}");
        for _ in 0..3 {
            let next = scene.message("next");
            assert_eq!(Some(scene.call(&next).await), next.served(), "{transport}");
        }
        assert_eq!(scene.connections(), 2, "{transport}");
    }
}

fn framed(content: &[u8]) -> Bytes {
    let mut out = BytesMut::new();
    out.put_u32(content.len() as u32);
    out.put_slice(content);
    out.freeze()
}

/// What contexts say, THeader services are told in info headers, and theirs come back as the context of headers.
#[tokio::test(flavor = "multi_thread")]
async fn info_headers_carry_what_contexts_say_both_ways() {
    let mut scene = Scene::new(Form::ThriftMux, "header", "thriftProtocol: same").await;
    let call = scene.message("x");
    let context = |key: &'static str, value: &'static [u8]| (key.into(), Bytes::from_static(value));
    let dispatch = Dispatch {
        body: call.to_bytes(),
        contexts: vec![
            context("com.twitter.finagle.thrift.ClientIdContext", b"me"),
            context("com.twitter.finagle.thrift.Request.headers", b"\0\x04mine\0\x03yes"),
        ],
        ..echo("/s/probe", "")
    };
    let reply = call.served().expect("a reply");
    let info = vec![(Bytes::from_static(b"theirs"), Bytes::from_static(b"too"))];
    let frame = Header { info, ..Header::around(&reply, true) };
    scene.backend.script([Plan::now(Reply::Raw(framed(&frame.to_bytes())))]);
    let answer = scene.caller.call(&dispatch).await.expect("an answer");
    assert_eq!(answer.message(), Some(reply));
    let headers = answer.contexts.iter().find(|(key, _)| key.ends_with(b"Response.headers"));
    assert_eq!(headers.map(|(_, value)| &value[..]), Some(&b"\0\x06theirs\0\x03too"[..]));
    let came = scene.backend.calls().pop().expect("a call");
    let told = |key: &str| came.context(key).map(|value| &value[..]);
    assert_eq!(told("client-id"), Some(&b"me"[..]));
    assert_eq!(told("mine"), Some(&b"yes"[..]));
    assert!(told("x-b3-traceid").or(told("b3")).is_some(), "{:?}", came.contexts);
}

/// A frame that holds more than a call, or less, never reaches a service without frames.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_smuggled_past_a_frame() {
    let mut scene = Scene::new(Form::FramedBinary, "buffered", "thriftProtocol: same").await;
    let call = scene.message("x");
    let twice = [&call.to_bytes()[..], &scene.message("smuggled").to_bytes()].concat();
    let short = call.to_bytes().slice(..call.to_bytes().len() - 1);
    for body in [Bytes::from(twice), short] {
        let dispatch = Dispatch { body, ..echo("", "") };
        let answer = scene.caller.call(&dispatch).await.expect("an answer");
        let exception = answer.message().expect("an exception");
        assert_eq!((exception.kind, exception.seqid), (EXCEPTION, 9));
    }
    assert!(scene.backend.calls().is_empty());
    assert_eq!(scene.call(&call).await, call.served().expect("a reply"));
}

/// Mux carries anything: what is not Thrift passes a Mux service's translation, and no other service takes it.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_thrift_is_not_translated() {
    for (transport, _) in TRANSPORTS {
        let mut scene = Scene::new(Form::ThriftMux, transport, "thriftProtocol: compact").await;
        scene.backend.set(Plan::now(Reply::Bytes(Bytes::from_static(b"opaque too"))));
        let dispatch = Dispatch { body: Bytes::from_static(b"opaque"), ..echo("/s/probe", "") };
        let answer = scene.caller.call(&dispatch).await.expect("an answer");
        match transport {
            "thriftmux" => assert_eq!((answer.status, &answer.body[..]), (0, &b"opaque too"[..])),
            _ => assert_eq!((answer.status, answer.flags()), (1, Some(4)), "{transport}"),
        }
    }
}

/// Headers longer than a frame's may be: the call fails, and its service's connection lives on.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_cannot_be_written_costs_no_connection() {
    let mut scene = Scene::new(Form::ThriftMux, "header", "thriftProtocol: same").await;
    let call = scene.message("x");
    assert_eq!(Some(scene.call(&call).await), call.served());
    let headers = Bytes::from([&b"\0\x01k\x9c\x40"[..], &[b'v'; 40_000]].concat());
    let contexts = vec![("com.twitter.finagle.thrift.Request.headers".into(), headers)];
    let dispatch = Dispatch { body: call.to_bytes(), contexts, ..echo("/s/probe", "") };
    let answer = scene.caller.call(&dispatch).await.expect("an answer");
    assert_eq!((answer.status, answer.flags()), (1, Some(4)), "{}", answer.text());
    assert_eq!(Some(scene.call(&call).await), call.served());
    assert_eq!((scene.connections(), scene.backend.calls().len()), (1, 2));
}
