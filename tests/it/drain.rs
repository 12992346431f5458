//! Leaving: Tdrain to callers, calls in flight finish, late ones are nacked, a limit ends it.

use crate::support::{ADD, ADD_REPLY, House, echo, to, yaml};
use muxgate_testkit::backend::{Event, Plan, Reply};
use muxgate_testkit::{Backend, http, mux, until};
use tokio::net::TcpStream;

#[tokio::test(flavor = "multi_thread")]
async fn calls_in_flight_finish_and_late_ones_are_nacked() {
    for protocol in ["thriftmux", "framed"] {
        let backend = Backend::start().await;
        backend.set(Plan::now(Reply::Hold));
        let house = House::before(backend.addr(), protocol).await;
        let (mut client, mut plain, mut quiet) = (house.mux().await, house.plain().await, house.mux().await);
        client.send(2, &echo("/s/probe", "in flight")).await;
        plain.raw.send(ADD).await;
        backend.wait_calls(2).await;
        let (addr, pages) = (house.addr, house.pages);
        let drained = tokio::spawn(house.drain());

        let (kind, tag, _) = client.message().await.expect("a Tdrain");
        assert_eq!(kind, mux::TDRAIN);
        client.raw.send_bytes(&mux::frame(mux::RDRAIN, tag, b"")).await;
        client.send(3, &echo("/s/probe", "late")).await;
        let (tag, late) = client.answer().await.expect("a nack");
        assert_eq!((tag, late.status), (3, mux::NACK));

        // Who has nothing in flight is free to go, and says so.
        let (kind, tag, _) = quiet.message().await.expect("a Tdrain");
        assert_eq!(kind, mux::TDRAIN);
        quiet.raw.send_bytes(&mux::frame(mux::RDRAIN, tag, b"")).await;
        quiet.raw.expect_close().await;
        until("a closed port", || async { TcpStream::connect(addr).await.is_err().then_some(()) }).await;
        let ready = http::get(&format!("http://{}/ready", pages.0)).await.expect("a page");
        assert_eq!(ready.0, 503);

        backend.release();
        let (tag, answer) = client.answer().await.expect("an answer");
        assert_eq!((tag, answer.text().as_str()), (2, "in flight"));
        client.raw.expect_close().await;
        plain.raw.expect(ADD_REPLY).await;
        plain.raw.expect_close().await;
        drained.await.expect("the drain ends");
        assert_eq!(backend.calls().len(), 2, "the late one went nowhere");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_grace_time_ends_a_drain() {
    let backend = Backend::start().await;
    backend.set(Plan::now(Reply::Hang));
    let text =
        yaml(&to(backend.addr()), "thriftmux", "").replace("{port: 0}", "{port: 0, shutdownGraceMs: 300}");
    let house = House::start(&text).await;
    let (mut client, mut plain) = (house.mux().await, house.plain().await);
    client.send(2, &echo("/s/probe", "x")).await;
    plain.raw.send(ADD).await;
    backend.wait_calls(2).await;
    house.drain().await;
    assert_eq!(client.message().await.map(|(kind, ..)| kind), Some(mux::TDRAIN));
    client.raw.expect_close().await;
    plain.raw.expect_close().await;
    let discarded = |events: &[Event]| {
        (events.iter().filter(|e| matches!(e, Event::Discarded(..))).count() == 2).then_some(())
    };
    backend.wait("both calls discarded at the service", discarded).await;
}
