//! Leases of ours, and what one side's leases and drains mean for the other side: nothing.

use crate::support::{House, echo, to, yaml};
use bytes::Bytes;
use muxgate_testkit::backend::{Event, Plan, Reply};
use muxgate_testkit::{Backend, mux};

/// What a Finagle server sends for "without end".
const ENDLESS: u64 = u32::MAX as u64;

#[tokio::test(flavor = "multi_thread")]
async fn overload_sends_callers_away_and_calls_them_back() {
    let backend = Backend::start().await;
    backend.set(Plan::now(Reply::Hold));
    let text = yaml(&to(backend.addr()), "thriftmux", "");
    let text = text.replace("dst: /s/probe}", "dst: /s/probe, maxConcurrentRequests: 1}");
    let house = House::start(&text).await;
    let (mut one, mut two) = (house.mux().await, house.mux().await);
    one.send(2, &echo("/s/probe", "x")).await;
    backend.wait_calls(1).await;
    two.send(2, &echo("/s/probe", "x")).await;
    let (_, refused) = two.answer().await.expect("a nack");
    assert_eq!(refused.status, mux::NACK);
    // All callers of the listener hear of it, once.
    assert_eq!((one.lease().await, two.lease().await), (0, 0));
    backend.release();
    assert_eq!(one.answer().await.expect("an answer").1.text(), "x");
    assert_eq!((one.lease().await, two.lease().await), (ENDLESS, ENDLESS));
    assert_eq!(two.echo("/s/probe", "again").await.text(), "again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_is_told_by_a_lease_first() {
    let backend = Backend::start().await;
    let house = House::before(backend.addr(), "thriftmux").await;
    let mut client = house.mux().await;
    let drained = tokio::spawn(house.drain());
    assert_eq!(client.lease().await, 0);
    assert_eq!(client.message().await.map(|(kind, tag, _)| (kind, tag)), Some((mux::TDRAIN, 1)));
    client.raw.send_bytes(&mux::frame(mux::RDRAIN, 1, b"")).await;
    client.raw.expect_close().await;
    drained.await.expect("the drain ends");
}

fn opened(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event, Event::Open(_))).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_drains_closes_no_caller() {
    let backend = Backend::start().await;
    backend.set(Plan::now(Reply::Hold));
    let house = House::before(backend.addr(), "thriftmux").await;
    let mut client = house.mux().await;
    client.send(2, &echo("/s/probe", "in flight")).await;
    backend.wait_calls(1).await;
    backend.drain();
    let acknowledged = |events: &[Event]| events.iter().any(|e| matches!(e, Event::Drained(0))).then_some(());
    backend.wait("the Rdrain", acknowledged).await;
    // What comes now goes over a new session; what was in flight finishes on the old one, which is then closed.
    client.send(3, &echo("/s/probe", "late")).await;
    assert_eq!(backend.wait_calls(2).await.last().map(|call| call.conn), Some(1));
    backend.release();
    let mut answers = Vec::new();
    for _ in 0..2 {
        let (tag, answer) = client.answer().await.expect("an answer");
        answers.push((tag, answer.text()));
    }
    answers.sort();
    assert_eq!(answers, [(2, "in flight".to_owned()), (3, "late".to_owned())]);
    let closed = |events: &[Event]| events.iter().any(|e| matches!(e, Event::Closed(0))).then_some(());
    backend.wait("the end of the first session", closed).await;
    assert_eq!(client.echo("/s/probe", "on").await.text(), "on");
    assert_eq!(opened(&backend.events()), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_leaves_closes_no_session_to_a_service() {
    let backend = Backend::start().await;
    let house = House::before(backend.addr(), "thriftmux").await;
    let (mut one, mut two) = (house.mux().await, house.mux().await);
    assert_eq!(one.echo("/s/probe", "x").await.text(), "x");
    drop(one);
    house.pages.until("muxgate_listener_open_connections", &[], 1.0).await;
    assert_eq!(two.echo("/s/probe", "y").await.text(), "y");
    assert_eq!(opened(&backend.events()), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_until_a_time_ends_that_session_alone() {
    let backend = Backend::start().await;
    backend.set(Plan::now(Reply::Hang));
    let house = House::before(backend.addr(), "thriftmux").await;
    let mut client = house.mux().await;
    client.send(2, &echo("/s/probe", "in flight")).await;
    backend.wait_calls(1).await;
    // Unit 1: no Finagle client takes it either.
    backend.send(mux::frame(mux::TLEASE, 0, &[1, 0, 0, 0, 0, 0, 0, 0, 9]));
    let (_, failed) = client.answer().await.expect("an answer");
    assert_eq!(failed.status, mux::ERROR, "{}", failed.text());
    backend.set(Plan::default());
    assert_eq!(client.echo("/s/probe", "on").await.text(), "on");
    assert_eq!(opened(&backend.events()), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_knows_only_treq_is_spoken_to_in_treqs() {
    let backend = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = backend.local_addr().expect("an address");
    let served = tokio::spawn(async move {
        let mut raw = muxgate_testkit::raw::Raw::accept(&backend).await;
        let mut treqs = Vec::new();
        while let Some(frame) = raw.frame().await {
            let (kind, tag, body) = mux::split(&Bytes::from(frame)).expect("a message");
            match kind {
                mux::TREQ => {
                    // Two keys: trace and flags, 1 + 26 + 3 bytes; then the call, which a result answers.
                    let mut reply = body.get(30..).expect("a trace").to_vec();
                    reply[3] = 2;
                    let field = reply.windows(3).position(|head| head == [11, 0, 1]).expect("a string");
                    reply[field + 2] = 0;
                    treqs.push(reply.clone());
                    raw.send_bytes(&mux::frame(mux::RREQ, tag, &[&[0], &reply[..]].concat())).await;
                }
                mux::TPING => raw.send_bytes(&mux::frame(mux::RPING, tag, b"")).await,
                _ => raw.send_bytes(&mux::frame(mux::OLD_RERR, tag, b"unknown")).await,
            }
        }
        treqs.len()
    });
    let house = House::before(address, "thriftmux").await;
    let mut client = house.mux().await;
    for text in ["one", "two"] {
        assert_eq!(client.echo("/s/probe", text).await.text(), text);
    }
    drop(client);
    house.drain().await;
    served.abort();
}
