//! BC-01: a one-way call to a dead service.

use crate::support::{ADD, ADD_REPLY, House, ROUTE, is_error, of_kind, to, yaml};
use muxgate_testkit::backend::ClosedPort;
use muxgate_testkit::raw::Raw;
use muxgate_testkit::{Backend, hex, until};
use std::time::Duration;
use tokio::net::TcpListener;

const NOTE_X: &str = "0000001980010004000000046e6f7465000000070b0001000000017800";
const NOTE_Y: &str = "0000001980010004000000046e6f7465000000090b0001000000017900";

#[tokio::test(flavor = "multi_thread")]
async fn bc_01_oneway_dead_upstream() {
    let port = ClosedPort::new();
    let address = port.addr();
    let house = House::start(&yaml(&to(address), "framed", "")).await;
    let mut client = Raw::connect(house.addr).await;
    client.send(NOTE_X).await;
    client.expect_silence(Duration::from_secs(1)).await;
    check_books(&house).await;

    let backend = Backend::of(port.listen());
    add(&mut client).await;

    // Slow to accept: the system takes the connection, nobody reads from it before the sender is gone.
    backend.stop().await;
    let listener = TcpListener::bind(address).await.unwrap();
    let mut other = Raw::connect(house.addr).await;
    other.send(NOTE_Y).await;
    drop(other);
    let noted =
        || async { (house.pages.sum("muxgate_listener_requests_total", &[]).await >= 3.0).then_some(()) };
    until("note(y) in the gateway", noted).await;
    let backend = Backend::of(listener);
    let calls = backend.wait_calls(1).await;
    assert_eq!(calls[0].bytes, hex::decode(&NOTE_Y[8..]));

    // Not twice: what comes next is the next call.
    add(&mut client).await;
    let methods: Vec<_> = backend.calls().iter().map(|call| call.method()).collect();
    assert_eq!(methods, ["note", "add"]);
    house.pages.until_idle().await;
    assert_eq!(house.pages.sum("muxgate_route_failures_total", &[("route", ROUTE)]).await, 1.0);
}

/// The failed call: one failure, a span with an error, nothing in flight.
async fn check_books(house: &House) {
    let metrics = house.pages.metrics().await;
    let route = [("route", ROUTE)];
    assert_eq!(metrics.sum("muxgate_route_requests_total", &route), 1.0);
    assert_eq!(metrics.sum("muxgate_route_failures_total", &route), 1.0);
    assert_eq!(metrics.sum("muxgate_route_in_flight_requests", &route), 0.0);
    let spans = house.collector.wait(1).await;
    let servers: Vec<_> = of_kind(&spans, "SERVER").collect();
    assert_eq!(servers.len(), 1);
    assert!(is_error(servers[0]), "{}", servers[0]);
}

/// The answer comes on the connection on which nothing was said before; while the address is in back-off, a refusal may.
async fn add(client: &mut Raw) {
    for _ in 0..100 {
        client.send(ADD).await;
        let reply = hex::encode(&client.frame().await.expect("an open connection"));
        if reply == ADD_REPLY[8..] {
            return;
        }
        assert!(
            reply.starts_with("80010003000000036164640000000008"),
            "neither answered nor refused: {reply}"
        );
    }
    panic!("add is always refused");
}
