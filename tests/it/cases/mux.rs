//! BC-05, BC-09 and BC-13: Mux sessions.

use crate::support::{ADD, ADD_MUX, ADD_MUX_REPLY, ADD_REPLY, Disco, House, ROUTE, echo, yaml};
use bytes::Bytes;
use muxgate_testkit::backend::{Event, Plan, Reply};
use muxgate_testkit::mux::{self, Dispatch};
use muxgate_testkit::raw::Raw;
use muxgate_testkit::{Backend, hex};
use std::time::{Duration, SystemTime};

const MARKER: &str = "0000000f7f00000174696e697420636865636b";

#[tokio::test(flavor = "multi_thread")]
async fn bc_05_thriftmux_tinit_check() {
    for protocol in ["thriftmux", "framed"] {
        let backend = Backend::start().await;
        let house = House::before(backend.addr(), protocol).await;

        let mut first = Raw::connect(house.addr).await;
        first.send(MARKER).await;
        first.expect(MARKER).await;
        first.send("00000006440000010001").await;
        let rinit = first.frame().await.expect("an Rinit");
        assert!(rinit.starts_with(&hex::decode("bc0000010001")), "{}", hex::encode(&rinit));
        first.send(ADD_MUX).await;
        first.expect(ADD_MUX_REPLY).await;

        let mut second = Raw::connect(house.addr).await;
        second.send(ADD).await;
        second.expect(ADD_REPLY).await;

        let mut third = Raw::connect(house.addr).await;
        third.send("0000000c822108036164641502150400").await;
        third.expect("0000000b8241080361646405000600").await;

        let mut fourth = Raw::connect(house.addr).await;
        fourth.send(ADD_MUX).await;
        fourth.expect(ADD_MUX_REPLY).await;
    }
}

const EXPIRED: &str = "00000060020000020001001c636f6d2e747769747465722e66696e61676c652e446561646c696e6500100de0b6b3a7640000\
    0de0b6b3a7b04b4000082f732f70726f62650000800100010000000361646400000008080001000000010800020000000200";
const EMPTY_DEADLINE: &str = "00000050020000030001001c636f6d2e747769747465722e66696e61676c652e446561646c696e6500000008\
    2f732f70726f62650000800100010000000361646400000008080001000000010800020000000200";
/// The third call's deadline, in ns from now. The case has 100 ms; a busy machine may need as long to deliver it.
const SOON: u64 = 700_000_000;
const DEADLINE: &str = "com.twitter.finagle.Deadline";

#[tokio::test(flavor = "multi_thread")]
async fn bc_09_deadline_enforced() {
    let backend = Backend::start().await;
    backend.set(Plan::after(Duration::from_secs(1)));
    let house = House::before(backend.addr(), "thriftmux").await;
    let mut client = house.mux().await;

    client.raw.send(EXPIRED).await;
    let (tag, refused) = client.answer().await.expect("a refusal");
    assert_eq!((tag, refused.status), (2, mux::ERROR));
    assert!(refused.text().contains("deadline had passed"), "{}", refused.text());
    assert_eq!(refused.flags(), Some(6), "rejected and non-retryable");
    assert!(backend.calls().is_empty());

    backend.set(Plan::default());
    client.raw.send(EMPTY_DEADLINE).await;
    client.raw.expect(&ADD_MUX_REPLY.replacen("000002", "000003", 1)).await;
    assert_eq!(backend.calls()[0].context(DEADLINE).map(|value| value.len()), Some(0));

    backend.set(Plan::after(Duration::from_secs(20)));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64;
    let value = [now.to_be_bytes(), (now + SOON).to_be_bytes()].concat();
    let third = Dispatch {
        contexts: vec![(Bytes::from(DEADLINE), Bytes::from(value.clone()))],
        ..echo("/s/probe", "late")
    };
    client.send(4, &third).await;
    let (tag, late) = client.answer().await.expect("a refusal");
    assert_eq!((tag, late.status), (4, mux::ERROR));
    assert!(late.text().contains("deadline"), "{}", late.text());
    assert_eq!(late.flags(), Some(4), "non-retryable");
    let call = backend.wait_calls(2).await.remove(1);
    assert_eq!(call.context(DEADLINE).map(|got| &got[..]), Some(&value[..]), "the same deadline");
    let told = |events: &[Event]| {
        let hit = |e: &Event| matches!(e, Event::Discarded(_, tag, _) if Some(*tag) == call.tag);
        events.iter().any(hit).then_some(())
    };
    backend.wait("a Tdiscarded for its tag", told).await;

    let metrics = house.pages.metrics().await;
    let deadline = [("listener", "in"), ("cause", "deadline")];
    assert_eq!(metrics.sum("muxgate_listener_failures_total", &deadline), 2.0);
    assert_eq!(metrics.sum("muxgate_listener_failures_total", &[]), 2.0);
    assert_eq!(metrics.sum("muxgate_route_retries_total", &[]), 0.0);
    assert_eq!(backend.calls().len(), 2);
}

/// Calls after the drain began; the case has 250 in five seconds.
const LATER: usize = 250;

#[tokio::test(flavor = "multi_thread")]
async fn bc_13_upstream_drains() {
    let (u1, u2) = (Backend::start().await, Backend::start().await);
    let disco = Disco::new();
    disco.put("probe", &[u1.addr(), u2.addr()]);
    let house = House::start(&(disco.namer() + &yaml("/s => /#/fs", "thriftmux", ""))).await;
    let mut client = house.mux().await;

    // The least loaded endpoint is taken, so both get two of four.
    let hold = |call: &muxgate_testkit::backend::Call| {
        let text = call.message.as_ref().and_then(|m| m.string_argument()).unwrap_or_default();
        if text == "slow" { Plan::now(Reply::Hold) } else { Plan::default() }
    };
    u1.decide(hold);
    u2.decide(hold);
    for tag in 2..6 {
        client.send(tag, &echo("/s/probe", "slow")).await;
    }
    u1.wait_calls(2).await;
    u2.wait_calls(2).await;

    // The backend notes an Rdrain only if it has the tag of its Tdrain, 1.
    u1.drain();
    u1.wait("Rdrain", |events| events.iter().any(|e| matches!(e, Event::Drained(0))).then_some(())).await;
    for n in 0..LATER {
        let tag = 10 + n as u32;
        client.send(tag, &echo("/s/probe", &n.to_string())).await;
        let (got, answer) = client.answer().await.expect("an answer");
        assert_eq!((got, answer.status, answer.text()), (tag, mux::OK, n.to_string()));
    }
    assert_eq!(u1.calls().len(), 2, "no call after the Rdrain");
    assert_eq!(u2.calls().len(), 2 + LATER);

    u1.release();
    u2.release();
    let mut slow = Vec::new();
    for _ in 0..4 {
        let (tag, answer) = client.answer().await.expect("an answer");
        assert_eq!((answer.status, answer.text().as_str()), (mux::OK, "slow"));
        slow.push(tag);
    }
    slow.sort_unstable();
    assert_eq!(slow, [2, 3, 4, 5]);
    u1.close_connections();

    // U1 accepts, so a new session may be opened to it.
    for n in 0..20 {
        client.send(2, &echo("/s/probe", &n.to_string())).await;
        assert_eq!(client.answer().await.expect("an answer").1.text(), n.to_string());
    }
    assert!(u1.calls().iter().skip(2).all(|call| call.conn > 0), "nothing more on the drained session");

    let metrics = house.pages.metrics().await;
    assert_eq!(metrics.sum("muxgate_endpoint_failures_total", &[]), 0.0);
    assert_eq!(metrics.sum("muxgate_endpoint_removals_total", &[]), 0.0);
    assert_eq!(metrics.sum("muxgate_route_failures_total", &[("route", ROUTE)]), 0.0);
}
