//! What THeader's info headers say reaches services, and what services say in return reaches callers.

use crate::support::{House, inet, yaml};
use bytes::{BufMut, Bytes, BytesMut};
use muxgate_testkit::Backend;
use muxgate_testkit::backend::{Plan, Reply};
use muxgate_testkit::link::{Dialect, Link};
use muxgate_testkit::mux::Pairs;
use muxgate_testkit::theader::Header;
use muxgate_testkit::thrift::{Message, Protocol};

const REQUEST_HEADERS: &str = "com.twitter.finagle.thrift.Request.headers";
const RESPONSE_HEADERS: &str = "com.twitter.finagle.thrift.Response.headers";

fn pair(key: &str, value: &str) -> (Bytes, Bytes) {
    (Bytes::copy_from_slice(key.as_bytes()), Bytes::copy_from_slice(value.as_bytes()))
}

/// Pairs as the value of a context.
fn value(pairs: &Pairs) -> Bytes {
    let mut out = BytesMut::new();
    for text in pairs.iter().flat_map(|(key, value)| [key, value]) {
        out.put_u16(text.len() as u16);
        out.put_slice(text);
    }
    out.freeze()
}

async fn call(gateway: std::net::SocketAddr, info: Pairs, text: &str) -> Header {
    let mut link = Link::connect(gateway).await.expect("a connection");
    let message = Message::call(Protocol::Compact, "echo", 5, text);
    let header = Header { info, ..Header::around(&message, true) };
    let frame = header.to_bytes();
    link.send(&[&(frame.len() as u32).to_be_bytes()[..], &frame].concat()).await.expect("an open connection");
    Header::parse(&link.next(Dialect::Header).await.expect("a reply")).expect("a THeader frame")
}

#[tokio::test(flavor = "multi_thread")]
async fn info_headers_become_contexts_and_back() {
    let (usual, other) = (Backend::start().await, Backend::start().await);
    let dtab = format!("/s/probe => {} ; /s/other => {}", inet(usual.addr()), inet(other.addr()));
    let house = House::start(&yaml(&dtab, "thriftmux", "")).await;
    let reply = vec![pair("x-served-by", "b1"), pair("x-served-by", "")];
    let contexts = vec![(Bytes::from(RESPONSE_HEADERS), value(&reply)), pair("unknown", "context")];
    other.set(Plan::now(Reply::With(contexts)));
    let info = vec![
        pair("L5D-Dst", "/s/there"),
        pair("l5d-dtab", "/svc/s/there => /s/other"),
        pair("l5d-ctx-deadline", "1 9223372036854775807"),
        pair("client-id", "web.prod"),
        pair("X-B3-TraceId", "00000000000000ff463ac35c9f6413ad"),
        pair("X-B3-SpanId", "a2fb4a1d1a96d312"),
        pair("X-B3-Sampled", "1"),
        pair("x-tenant", "7"),
    ];
    let answer = call(house.addr, info, "hi").await;
    assert_eq!((answer.seqid, answer.zlib, &answer.info), (5, true, &reply));
    let call = Message::call(Protocol::Compact, "echo", 5, "hi");
    assert_eq!(Message::parse(&answer.message), call.served());

    assert!(usual.calls().is_empty());
    let call = &other.calls()[0];
    assert_eq!(call.context("com.twitter.finagle.thrift.ClientIdContext"), Some(&Bytes::from("web.prod")));
    assert_eq!(call.context(REQUEST_HEADERS), Some(&value(&vec![pair("x-tenant", "7")])));
    let deadline = call.context("com.twitter.finagle.Deadline").expect("a deadline");
    assert_eq!(deadline[..], [1i64.to_be_bytes(), i64::MAX.to_be_bytes()].concat());
    let trace = call.context("com.twitter.finagle.tracing.TraceContext").expect("a trace");
    assert_eq!(trace.len(), 40);
    assert_eq!(trace[8..16], 0xa2fb_4a1d_1a96_d312u64.to_be_bytes(), "the caller's span is the parent");
    assert_eq!(trace[16..24], 0x463a_c35c_9f64_13adu64.to_be_bytes());
    assert_eq!(trace[31] & 6, 6, "sampled");
    assert_eq!(trace[32..], 0xffu64.to_be_bytes());
    assert_eq!(call.dtab, [pair("/svc/s/there", "/s/other")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_in_info_is_kept() {
    let backend = Backend::start().await;
    backend.set(Plan::now(Reply::Hang));
    let house = House::before(backend.addr(), "framed").await;
    let late = call(house.addr, vec![pair("l5d-ctx-deadline", "1 2")], "late").await;
    let message = Message::parse(&late.message).expect("a Thrift message");
    assert_eq!((message.kind, message.seqid), (3, 5));
    assert!(backend.calls().is_empty(), "a call that comes too late is refused at once");
    let wall =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock").as_nanos();
    let soon = format!("{wall} {}", wall + 300_000_000);
    let cut = call(house.addr, vec![pair("l5d-ctx-deadline", &soon)], "soon").await;
    assert_eq!(Message::parse(&cut.message).expect("a Thrift message").kind, 3);
    assert_eq!(house.pages.sum("muxgate_listener_failures_total", &[]).await, 2.0);
}

/// From one gateway to the next by THeader: nothing that has a header of its own is lost.
#[tokio::test(flavor = "multi_thread")]
async fn info_headers_pass_from_hop_to_hop() {
    let backend = Backend::start().await;
    let inner = House::before(backend.addr(), "thriftmux").await;
    let outer = House::before(inner.addr, "header").await;
    let reply = vec![pair("x-served-by", "b1")];
    backend.set(Plan::now(Reply::With(vec![(Bytes::from(RESPONSE_HEADERS), value(&reply))])));
    let info = vec![
        pair("client-id", "web"),
        pair("b3", "463ac35c9f6413ad-a2fb4a1d1a96d312-0"),
        pair("x-tenant", "7"),
    ];
    let answer = call(outer.addr, info, "hi").await;
    assert_eq!(answer.info, reply);
    let call = &backend.calls()[0];
    assert_eq!(call.context("com.twitter.finagle.thrift.ClientIdContext"), Some(&Bytes::from("web")));
    assert_eq!(call.context(REQUEST_HEADERS), Some(&value(&vec![pair("x-tenant", "7")])));
    let trace = call.context("com.twitter.finagle.tracing.TraceContext").expect("a trace");
    assert_eq!(trace[16..24], 0x463a_c35c_9f64_13adu64.to_be_bytes());
    assert_eq!(trace[31] & 7, 2, "decided, not to be sampled");
}
