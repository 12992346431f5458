//! BC-15: what strangers say about their calls, and what services of one's own say.

use crate::support::{House, echo, inet, to};
use bytes::Bytes;
use muxgate_testkit::backend::Call;
use muxgate_testkit::caller::{Form, framed};
use muxgate_testkit::mux::{self, Dispatch};
use muxgate_testkit::raw::Raw;
use muxgate_testkit::theader::Header;
use muxgate_testkit::thrift::{Message, Protocol};
use muxgate_testkit::{Backend, Caller, hex};

const TRACE: &str = "com.twitter.finagle.tracing.TraceContext";
const DEADLINE: &str = "com.twitter.finagle.Deadline";
const RETRIES: &str = "com.twitter.finagle.Retries";
const CLIENT: &str = "com.twitter.finagle.thrift.ClientIdContext";

/// The case's Tdispatch: add(1, 2) to /s/probe, an override that leads to port 9, and a trace with the debug flag.
const OVERRIDDEN: &str = "0000009b0200000200010028636f6d2e747769747465722e66696e61676c652e74726163696e672e5472616365436f6e\
    7465787400\
    2000000000000000aa00000000000000aa00000000000000aa000000000000000100082f732f70726f6265000100082f732f70726f626500132f\
    242f696e65742f3132372e302e302e312f39800100010000000361646400000008080001000000010800020000000200";
const ADD_REPLY: &str = "0000001efe0000020000008001000200000003616464000000080800000000000300";

/// A listener of each kind before one service.
async fn house(backend: &Backend, protocol: &str) -> House {
    let yaml = format!(
        "admin: {{port: 0}}\nlisteners:\n- {{name: outside, port: 0, dst: /s/probe, trust: outside}}\n\
         - {{name: inside, port: 0, dst: /s/probe, trust: inside}}\n\
         clients: [{{protocol: {protocol}}}]\ndtab: /svc => / ; {}\n",
        to(backend.addr()),
    );
    House::sampling(&yaml, 0.0).await
}

async fn connect(house: &House, form: Form, listener: &str) -> Caller {
    Caller::connect(form, house.listeners[listener]).await
}

/// Whether the gateway has an endpoint at port 9.
async fn knows_port_9(house: &House) -> bool {
    let metrics = house.pages.metrics().await;
    let labels = [("endpoint", "127.0.0.1:9")];
    metrics.with("muxgate_endpoint_requests_total", &labels).next().is_some()
}

#[tokio::test(flavor = "multi_thread")]
async fn bc_15_untrusted_contexts() {
    let backend = Backend::start().await;
    let house = house(&backend, "thriftmux").await;

    let mut stranger = connect(&house, Form::ThriftMux, "outside").await;
    stranger.raw.send(OVERRIDDEN).await;
    stranger.raw.expect(ADD_REPLY).await;
    assert!(!knows_port_9(&house).await);
    let seen = backend.calls().pop().expect("the call went where the base table says");
    assert!(seen.dtab.is_empty(), "{seen:?}");
    assert_own_trace(&seen);

    let mut friend = connect(&house, Form::ThriftMux, "inside").await;
    friend.raw.send(OVERRIDDEN).await;
    let (_, failed) = friend.answer().await.expect("an answer");
    assert_ne!(failed.status, mux::OK, "nobody listens at port 9");
    assert!(knows_port_9(&house).await);
    assert_eq!(backend.calls().len(), 1);

    // The only spans are those that the friend's debug flag forced.
    let spans = house.collector.wait(2).await;
    assert!(spans.iter().all(|span| span["traceId"] == "00000000000000aa"), "{spans:#?}");
    for (form, protocol) in [
        (Form::ThriftMux, "thriftmux"),
        (Form::ThriftMux, "ttwitter"),
        (Form::TTwitter, "thriftmux"),
        (Form::TTwitter, "ttwitter"),
    ] {
        everything_that_a_call_can_bring(form, protocol).await;
    }
    everything_that_a_header_can_bring().await;
}

/// What of a THeader call's answer counts here: the text of its result or exception.
async fn header_call(caller: &mut Raw, info: &[(&str, &str)]) -> String {
    let mut frame = Header::around(&Message::call(Protocol::Binary, "echo", 7, "x"), false);
    let pair =
        |(key, value): &(&str, &str)| (Bytes::from((*key).to_owned()), Bytes::from((*value).to_owned()));
    frame.info = info.iter().map(pair).collect();
    caller.send_bytes(&framed(&frame.to_bytes())).await;
    let reply = Header::parse(&caller.frame().await.expect("an answer").into()).expect("a THeader frame");
    let message = Message::parse(&reply.message).expect("a Thrift message");
    String::from_utf8_lossy(&message.string_argument().unwrap_or_default()).into_owned()
}

async fn everything_that_a_header_can_bring() {
    let backend = Backend::start().await;
    let house = house(&backend, "thriftmux").await;
    let elsewhere = ("l5d-dtab", "/s/probe=>/$/inet/127.0.0.1/9");
    let info = [
        ("l5d-dst", "/s/probe"),
        ("client-id", "the.bank"),
        ("b3", "00000000000000aa-00000000000000aa-d"),
        ("of-somebody", "raw"),
        ("l5d-ctx-deadline", "1 2"),
    ];
    let with = |more| [&info[..4], &[more]].concat();
    let mut stranger = Raw::connect(house.listeners["outside"]).await;
    assert_eq!(header_call(&mut stranger, &with(elsewhere)).await, "x");
    assert_eq!(header_call(&mut stranger, &info).await, "x");
    assert!(!knows_port_9(&house).await);
    for seen in backend.calls() {
        assert!(seen.dtab.is_empty(), "{seen:?}");
        assert_own_trace(&seen);
    }

    let mut friend = Raw::connect(house.listeners["inside"]).await;
    let expired = header_call(&mut friend, &info).await;
    assert!(expired.contains("deadline"), "{expired}");
    header_call(&mut friend, &with(elsewhere)).await;
    assert!(knows_port_9(&house).await);
    assert_eq!(backend.calls().len(), 2);
    let there = format!("/s/probe=>{}", inet(backend.addr()));
    assert_eq!(header_call(&mut friend, &with(("l5d-dtab", &there))).await, "x");
    let seen = backend.calls().pop().expect("a call");
    assert_eq!(seen.dtab.len(), 1);
    assert_eq!(seen.context(CLIENT), Some(&Bytes::from_static(b"the.bank")));
    let trace = hex::encode(seen.context(TRACE).expect("a trace"));
    assert_eq!(trace[32..48], *"00000000000000aa");
}

fn pair(key: &str, value: &[u8]) -> (Bytes, Bytes) {
    (Bytes::copy_from_slice(key.as_bytes()), Bytes::copy_from_slice(value))
}

/// The neighbours: other protocols, other contexts, a deadline that has passed.
async fn everything_that_a_call_can_bring(form: Form, protocol: &str) {
    let backend = Backend::start().await;
    backend.accept_upgrades();
    let house = house(&backend, protocol).await;
    let trace = [[0, 0, 0, 0, 0, 0, 0, 0xaa].repeat(3), 1_u64.to_be_bytes().to_vec()].concat();
    let passed = [1_u64.to_be_bytes(), 2_u64.to_be_bytes()].concat();
    let override_ = vec![pair("/s/probe", inet(backend.addr()).as_bytes())];
    let mut call = Dispatch {
        contexts: vec![
            pair("of.somebody", b"raw"),
            pair(CLIENT, b"the.bank"),
            pair(RETRIES, &7_i32.to_be_bytes()),
            pair(TRACE, &trace),
            pair(DEADLINE, &passed),
        ],
        dtab: vec![pair("/s/probe", b"/$/inet/127.0.0.1/9")],
        ..echo("/s/probe", "x")
    };
    let what = format!("{form:?} to {protocol}");
    let mut stranger = connect(&house, form, "outside").await;
    assert_eq!(stranger.call(&call).await.expect("an answer").text(), "x", "{what}");
    let seen = backend.calls().pop().expect("a call");
    assert!(seen.dtab.is_empty(), "{what}: {seen:?}");
    assert_own_trace(&seen);

    let mut friend = connect(&house, form, "inside").await;
    let expired = friend.call(&call).await.expect("an answer").text();
    assert!(expired.contains("deadline"), "{what}: {expired}");
    call.contexts.pop();
    assert!(!knows_port_9(&house).await, "{what}");
    friend.call(&call).await.expect("a refusal");
    assert!(knows_port_9(&house).await, "{what}");
    call.dtab.clone_from(&override_);
    assert_eq!(friend.call(&call).await.expect("an answer").text(), "x", "{what}");
    let seen = backend.calls().pop().expect("a call");
    assert_eq!(seen.dtab, override_, "{what}");
    assert_eq!(seen.context("of.somebody"), Some(&Bytes::from_static(b"raw")), "{what}");
    assert_eq!(seen.context(CLIENT), Some(&Bytes::from_static(b"the.bank")), "{what}");
    let trace = hex::encode(seen.context(TRACE).expect("a trace"));
    assert_eq!(trace[32..48], *"00000000000000aa", "{what}");
}

/// Only what the gateway says itself: a trace that begins here, without the debug flag, and a first attempt.
fn assert_own_trace(call: &Call) {
    let keys: Vec<_> = call.contexts.iter().map(|(key, _)| String::from_utf8_lossy(key)).collect();
    assert!(keys.iter().all(|key| key == TRACE || key == RETRIES), "{keys:?}");
    let trace = call.context(TRACE).expect("a trace of the gateway's own");
    let id = hex::encode(trace);
    assert!(!id.contains("00000000000000aa"), "{id}");
    assert_eq!(trace[31] & 1, 0, "the debug flag: {id}");
    let retries = call.context(RETRIES).expect("a count of retries");
    assert_eq!(retries[..], 0_i32.to_be_bytes());
}
