//! How many connections there may be, and for how long.

use super::{house, limited};
use crate::support::{ADD, ADD_REPLY, House, echo};
use muxgate_testkit::backend::{Event, Plan, Reply};
use muxgate_testkit::raw::Raw;
use muxgate_testkit::{Backend, Caller, mux};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpSocket;

/// A connection that comes from another address of the loopback network.
async fn from(source: &str, to: SocketAddr) -> tokio::net::TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(format!("{source}:0").parse().expect("an address")).expect("a source");
    socket.connect(to).await.expect("a connection")
}

/// Reads a Tdrain.
async fn asked_to_go(client: &mut Caller) {
    let told = client.message().await.map(|(kind, tag, _)| (kind, tag));
    assert_eq!(told, Some((mux::TDRAIN, 1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_beyond_an_addresses_share_are_closed_and_counted() {
    let backend = Backend::start().await;
    let house = house(&backend, "maxConnectionsPerPeer: 2").await;
    let (mut one, two) = (house.plain().await, house.mux().await);
    assert_eq!(one.echo("", "one").await.text(), "one");
    Raw::connect(house.addr).await.expect_close().await;
    limited(&house, "connections_per_peer", 1.0).await;
    // Another address has a share of its own.
    let other = from("127.0.0.2", house.addr).await;
    house.pages.until("muxgate_listener_open_connections", &[], 3.0).await;
    drop((two, other));
    house.pages.until("muxgate_listener_open_connections", &[], 1.0).await;
    let mut three = Raw::connect(house.addr).await;
    three.send(ADD).await;
    three.expect(ADD_REPLY).await;
    limited(&house, "connections_per_peer", 1.0).await;
    let refused = house.pages.sum("muxgate_listener_refused_connections_total", &[]).await;
    assert_eq!(refused, 1.0);
}

/// On a socket of both families an IPv4 caller has a mapped address.
#[tokio::test(flavor = "multi_thread")]
async fn an_address_is_the_same_in_both_families() {
    let backend = Backend::start().await;
    let text = crate::support::yaml(&crate::support::to(backend.addr()), "thriftmux", "");
    let listener = "port: 0, ip: '::', maxConnectionsPerPeer: 1";
    let house = House::start(&text.replacen("name: in, port: 0", &format!("name: in, {listener}"), 1)).await;
    let port = house.addr.port();
    let mut one = Raw::connect(SocketAddr::from(([127, 0, 0, 1], port))).await;
    one.send(ADD).await;
    one.expect(ADD_REPLY).await;
    let mapped = std::net::Ipv4Addr::LOCALHOST.to_ipv6_mapped();
    Raw::connect(SocketAddr::from((mapped, port))).await.expect_close().await;
    limited(&house, "connections_per_peer", 1.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_connection_is_asked_to_go_and_its_calls_are_answered() {
    let backend = Backend::start().await;
    backend.set(Plan::now(Reply::Hold));
    let house = house(&backend, "lifeTimeMs: 500").await;
    let (mut client, mut plain) = (house.mux().await, Raw::connect(house.addr).await);
    let silent = Raw::connect(house.addr).await;
    client.send(2, &echo("/s/probe", "begun before")).await;
    plain.send(ADD).await;
    backend.wait_calls(2).await;
    asked_to_go(&mut client).await;
    // Until it has heard, it may still call.
    client.send(3, &echo("/s/probe", "begun after")).await;
    backend.wait_calls(3).await;
    client.raw.send_bytes(&mux::frame(mux::RDRAIN, 1, b"")).await;
    limited(&house, "life_time", 3.0).await;
    house.pages.until("muxgate_listener_open_connections", &[], 2.0).await;
    backend.release();
    for _ in 0..2 {
        let (_, answer) = client.answer().await.expect("an answer");
        assert!(answer.text().starts_with("begun"));
    }
    client.raw.expect_close().await;
    plain.expect(ADD_REPLY).await;
    plain.expect_close().await;
    drop(silent);
    assert_eq!(house.pages.sum("muxgate_route_failures_total", &[]).await, 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_does_not_hear_is_not_waited_for_without_end() {
    let backend = Backend::start().await;
    let house = house(&backend, "lifeTimeMs: 300, stallTimeoutMs: 300").await;
    let mut deaf = house.mux().await;
    assert_eq!(deaf.echo("/s/probe", "x").await.text(), "x");
    asked_to_go(&mut deaf).await;
    deaf.raw.expect_close().await;
    limited(&house, "unheard_drain", 1.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unused_connection_is_closed() {
    let backend = Backend::start().await;
    let house = house(&backend, "idleTimeMs: 300").await;
    let mut silent = Raw::connect(house.addr).await;
    silent.expect_close().await;
    limited(&house, "idle_time", 1.0).await;
    let mut plain = Raw::connect(house.addr).await;
    plain.send(ADD).await;
    plain.expect(ADD_REPLY).await;
    plain.expect_close().await;
    limited(&house, "idle_time", 2.0).await;
    let mut client = house.mux().await;
    assert_eq!(client.echo("/s/probe", "x").await.text(), "x");
    asked_to_go(&mut client).await;
    limited(&house, "idle_time", 3.0).await;
    client.raw.send_bytes(&mux::frame(mux::RDRAIN, 1, b"")).await;
    client.raw.expect_close().await;
    // A call in progress is use.
    backend.set(Plan::after(Duration::from_millis(700)));
    let mut busy = house.mux().await;
    assert_eq!(busy.echo("/s/probe", "slow").await.text(), "slow");
}

/// An old session to a service takes no more calls, and answers those it has.
#[tokio::test(flavor = "multi_thread")]
async fn an_old_session_to_a_service_is_replaced_and_its_calls_are_answered() {
    let backend = Backend::start().await;
    let text = crate::support::yaml(
        &crate::support::to(backend.addr()),
        "thriftmux",
        "hostConnectionPool: {lifeTimeMs: 300}",
    );
    let house = House::start(&text).await;
    let mut client = house.mux().await;
    backend.script([Plan::now(Reply::Hold)]);
    client.send(2, &echo("/s/probe", "held")).await;
    backend.wait_calls(1).await;
    // Others go on, and at some time over a second session.
    let mut other = house.mux().await;
    while backend.calls().iter().all(|call| call.conn == 0) {
        assert_eq!(other.echo("/s/probe", "well").await.text(), "well");
    }
    assert!(!backend.events().iter().any(|event| matches!(event, Event::Closed(0))));
    backend.release();
    let (_, answer) = client.answer().await.expect("an answer");
    assert_eq!(answer.text(), "held");
    let gone = |events: &[Event]| events.iter().any(|event| matches!(event, Event::Closed(0))).then_some(());
    backend.wait("the end of the old session", gone).await;
    assert_eq!(house.pages.sum("muxgate_route_failures_total", &[]).await, 0.0);
}

/// A pooled connection is used up to its age, and then no more.
#[tokio::test(flavor = "multi_thread")]
async fn old_connections_to_a_service_are_replaced_between_two_calls() {
    let backend = Backend::start().await;
    let pool = "hostConnectionPool: {maxSize: 1, lifeTimeMs: 300}";
    let house =
        House::start(&crate::support::yaml(&crate::support::to(backend.addr()), "framed", pool)).await;
    let mut client = house.plain().await;
    while backend.calls().iter().all(|call| call.conn < 2) {
        assert_eq!(client.echo("", "well").await.text(), "well");
    }
    assert!(backend.calls().len() > 10, "a young connection serves many calls");
    // An unused one goes as well.
    let closed =
        |events: &[Event]| events.iter().any(|event| matches!(event, Event::Closed(2))).then_some(());
    backend.wait("the end of the third connection", closed).await;
    assert_eq!(house.pages.sum("muxgate_route_failures_total", &[]).await, 0.0);
}
