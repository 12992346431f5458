//! BC-17 and BC-18: traces that stay whole.

use crate::support::{ADD_MUX_REPLY, Disco, House, is_error, of_kind};
use bytes::Bytes;
use muxgate_testkit::mux::Dispatch;
use muxgate_testkit::{Backend, hex};
use serde_json::Value;
use std::collections::HashSet;

const TRACE: &str = "com.twitter.finagle.tracing.TraceContext";
const LONG: &str = "000000840200000200010028636f6d2e747769747465722e66696e61676c652e74726163696e672e5472616365436f6e7465787400\
    2811111111111111112222222222222222463ac35c9f6413ad000000000000000648485a3953bb612400082f732f70726f6265000080010001\
    0000000361646400000008080001000000010800020000000200";
const SHORT: &str = "0000007c0200000300010028636f6d2e747769747465722e66696e61676c652e74726163696e672e5472616365436f6e746578740\
    02011111111111111112222222222222222463ac35c9f6413ad000000000000000600082f732f70726f626500008001000100000003616464\
    00000008080001000000010800020000000200";
const LONG_ID: &str = "48485a3953bb6124463ac35c9f6413ad";
const SHORT_ID: &str = "463ac35c9f6413ad";

#[tokio::test(flavor = "multi_thread")]
async fn bc_17_trace_id_128() {
    let backend = Backend::start().await;
    let house = House::before(backend.addr(), "thriftmux").await;
    let mut client = house.mux().await;
    client.raw.send(LONG).await;
    client.raw.expect(ADD_MUX_REPLY).await;
    client.raw.send(SHORT).await;
    client.raw.expect(&ADD_MUX_REPLY.replacen("000002", "000003", 1)).await;

    let calls = backend.calls();
    let long = calls[0].context(TRACE).expect("a trace context");
    assert_eq!(long.len(), 40);
    assert_eq!(hex::encode(&long[16..]), "463ac35c9f6413ad000000000000000648485a3953bb6124");
    let short = calls[1].context(TRACE).expect("a trace context");
    assert_eq!(short.len(), 32);
    assert_eq!(hex::encode(&short[16..]), "463ac35c9f6413ad0000000000000006");

    let spans = house.collector.wait(4).await;
    let mut ids: Vec<_> = spans.iter().map(|span| span["traceId"].as_str().unwrap_or_default()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [SHORT_ID, SHORT_ID, LONG_ID, LONG_ID]);

    // Of any other length it is no trace context.
    for length in [0, 31, 33] {
        let contexts = vec![(Bytes::from(TRACE), Bytes::from(vec![0x11; length]))];
        let call = Dispatch { contexts, ..crate::support::echo("/s/probe", "x") };
        let answer = client.call(&call).await.expect("an answer");
        assert_eq!(answer.text(), "x");
        let seen = backend.calls().pop().expect("a call");
        let fresh = seen.contexts.iter().rev().find(|(key, value)| key == TRACE && value.len() != length);
        let fresh = fresh.map(|(_, value)| hex::encode(value)).expect("a trace of its own");
        assert!(!fresh.contains("11111111111111"), "{fresh}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bc_18_parent_of_each_hop() {
    let backend = Backend::start().await;
    let disco = Disco::new();
    let listeners: String =
        (1..=3).map(|n| format!("  - {{name: hop{n}, port: 0, dstPrefix: /{n}, dst: /s/probe}}\n")).collect();
    let dtab = "/1/s/probe => /#/fs/two; /2/s/probe => /#/fs/three; /3/s/probe => /#/fs/last";
    let yaml = format!("{}admin: {{port: 0}}\nlisteners:\n{listeners}dtab: {dtab}\n", disco.namer());
    let house = House::start(&yaml).await;
    disco.put("two", &[house.listeners["hop2"]]);
    disco.put("three", &[house.listeners["hop3"]]);
    disco.put("last", &[backend.addr()]);
    for n in 1..=3 {
        let page = format!("/delegator.json?path=/{n}/s/probe");
        let known =
            || async { house.pages.json(&page).await.to_string().contains("127.0.0.1").then_some(()) };
        muxgate_testkit::until("the hop's address", known).await;
    }

    let mut client = house.mux().await;
    client.raw.send(LONG).await;
    client.raw.expect(ADD_MUX_REPLY).await;
    let spans = house.collector.wait(6).await;
    assert_eq!(spans.len(), 6, "one of each kind for each hop");

    let text = |span: &Value, key: &str| span[key].as_str().unwrap_or_default().to_owned();
    let ids: HashSet<_> = spans.iter().map(|span| text(span, "id")).collect();
    for span in &spans {
        assert_eq!(text(span, "traceId"), LONG_ID);
        let parent = text(span, "parentId");
        let known = ids.contains(&parent) || parent == "1111111111111111" || parent == "2222222222222222";
        assert!(known, "{parent} is not reported: {span:#}");
        assert!(span["remoteEndpoint"].is_object(), "{span:#}");
        assert!(!is_error(span), "{span:#}");
    }
    let kinds: HashSet<_> = spans.iter().map(|span| (text(span, "kind"), text(span, "id"))).collect();
    assert_eq!(kinds.len(), 6, "no id twice with the same kind");

    // From the caller's span down: server, client below it, and the next server shares the client's id.
    let servers: Vec<_> = of_kind(&spans, "SERVER").collect();
    let mut at = "1111111111111111".to_owned();
    let mut last = Value::Null;
    for _ in 0..3 {
        let server =
            servers.iter().find(|span| text(span, "id") == at).expect("a server span of the caller's id");
        assert_eq!(server["shared"], true);
        last = of_kind(&spans, "CLIENT")
            .find(|span| text(span, "parentId") == at)
            .expect("a client span")
            .clone();
        at = text(&last, "id");
    }
    let calls = backend.calls();
    let seen = hex::encode(calls[0].context(TRACE).expect("a trace context"));
    assert_eq!(seen[..32], format!("{}{}", text(&last, "id"), text(&last, "parentId")));
}
