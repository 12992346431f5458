//! A caller that gives up is heard at the service.

use crate::support::{House, echo};
use muxgate_testkit::backend::{Event, Plan, Reply};
use muxgate_testkit::{Backend, mux};

#[tokio::test(flavor = "multi_thread")]
async fn a_tdiscarded_reaches_the_service_with_its_reason_and_the_service_s_own_tag() {
    let backend = Backend::start().await;
    let house = House::before(backend.addr(), "thriftmux").await;
    let mut client = house.mux().await;
    backend.script([Plan::now(Reply::Hold), Plan::now(Reply::Hang)]);
    client.send(500, &echo("/s/probe", "stays")).await;
    backend.wait_calls(1).await;
    client.send(501, &echo("/s/probe", "goes")).await;
    let calls = backend.wait_calls(2).await;
    let reason = "not needed any more: \u{e9}";
    client.discard(501, reason).await;
    let why = |events: &[Event]| {
        events.iter().find_map(|e| {
            if let Event::Discarded(conn, tag, why) = e { Some((*conn, *tag, why.clone())) } else { None }
        })
    };
    let (conn, tag, why) = backend.wait("a Tdiscarded", why).await;
    assert_eq!((conn, Some(tag), why.as_str()), (calls[1].conn, calls[1].tag, reason));
    assert!(tag < 100, "the service's own tag, not the caller's");
    let (kind, tag, _) = client.message().await.expect("an Rdiscarded");
    assert_eq!((kind, tag), (mux::RDISCARDED, 501));

    backend.release();
    let (tag, answer) = client.answer().await.expect("an answer");
    assert_eq!((tag, answer.text().as_str()), (500, "stays"));
    assert_eq!(client.echo("/s/probe", "next").await.text(), "next");
    house.pages.until("muxgate_endpoint_discarded_total", &[], 1.0).await;
    house.pages.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_connection_with_an_abandoned_call_is_closed() {
    let backend = Backend::start().await;
    let house = House::before(backend.addr(), "framed").await;
    let mut client = house.mux().await;
    backend.script([Plan::now(Reply::Hang)]);
    client.send(2, &echo("/s/probe", "x")).await;
    backend.wait_calls(1).await;
    client.discard(2, "").await;
    backend
        .wait("the end of its connection", |e| e.iter().any(|e| matches!(e, Event::Closed(0))).then_some(()))
        .await;
    assert_eq!(client.message().await.map(|(kind, tag, _)| (kind, tag)), Some((mux::RDISCARDED, 2)));
    assert_eq!(client.echo("/s/probe", "next").await.text(), "next");
    house.pages.until_idle().await;
}
