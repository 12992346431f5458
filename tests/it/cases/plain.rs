//! BC-04, BC-06, BC-11 and BC-12: plain Thrift connections.

use crate::support::{ADD, ADD_MUX, ADD_MUX_REPLY, ADD_REPLY, House, ROUTE, is_error, of_kind, to, yaml};
use muxgate_testkit::backend::{Event, Plan, Reply};
use muxgate_testkit::caller::framed;
use muxgate_testkit::raw::Raw;
use muxgate_testkit::thrift::{EXCEPTION, Message, REPLY};
use muxgate_testkit::{Backend, hex, until};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::task::JoinSet;

const ECHO_ONE: &str = "0000001b80010001000000046563686f000000010b0001000000036f6e6500";
const ECHO_TWO: &str = "0000001b80010001000000046563686f000000020b00010000000374776f00";
const ECHO_TWO_REPLY: &str = "0000001b80010002000000046563686f000000020b00000000000374776f00";

/// Connections at once, as in the case.
const CONNECTIONS: usize = 50;
/// Pairs on each connection; the case has 200, which take 20 s, as each waits for a time limit.
const PAIRS: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn bc_04_stale_reply_after_timeout() {
    let backend = Backend::start().await;
    backend.decide(|call| {
        let slow = call.message.as_ref().is_some_and(|m| m.string_argument().as_deref() == Some(b"one"));
        Plan::after(Duration::from_millis(if slow { 300 } else { 0 }))
    });
    let limits = "requestAttemptTimeoutMs: 100, hostConnectionPool: {maxSize: 4}";
    let house = House::start(&yaml(&to(backend.addr()), "framed", limits)).await;
    let mut callers = JoinSet::new();
    for _ in 0..CONNECTIONS {
        callers.spawn(pairs(house.addr));
    }
    callers.join_all().await;
    let sent = backend.calls().len() as f64;
    let endpoint = house.pages.metrics().await;
    let abandoned = endpoint.sum("muxgate_endpoint_abandoned_total", &[]);
    assert!(abandoned > 0.0 && abandoned <= sent, "{abandoned} of {sent} were abandoned");
    house.pages.until_idle().await;
}

async fn pairs(gateway: SocketAddr) {
    let mut client = Raw::connect(gateway).await;
    for _ in 0..PAIRS {
        client.send(ECHO_ONE).await;
        let first = message(&mut client).await;
        assert_eq!(first.seqid, 1);
        if first.kind != EXCEPTION {
            // Only if this machine has slept over the limit.
            assert_eq!(first.string_argument().as_deref(), Some(&b"one"[..]));
        }
        client.send(ECHO_TWO).await;
        let second = message(&mut client).await;
        assert_eq!(second.seqid, 2);
        if second.kind != EXCEPTION {
            assert_eq!(hex::encode(&framed(&second.to_bytes())), ECHO_TWO_REPLY);
        }
    }
}

async fn message(client: &mut Raw) -> Message {
    Message::parse(&client.frame().await.expect("an open connection").into()).expect("a Thrift message")
}

/// The case's three replies: a result, a TApplicationException, a declared exception.
const REPLIES: [&str; 3] = [
    ADD_REPLY,
    "000000228001000300000003616464000000080b000100000004626f6f6d0800020000000600",
    "0000001d8001000200000003616464000000080c00010b0001000000026e6f0000",
];

#[tokio::test(flavor = "multi_thread")]
async fn bc_06_exception_is_not_success() {
    // The setting decides whether (c) is a failure, and whether it marks endpoints.
    for (setting, c_fails) in [("success", false), ("failure", true)] {
        let backend = Backend::start().await;
        let clients = format!("declaredExceptions: {setting}");
        let house = House::start(&yaml(&to(backend.addr()), "framed", &clients)).await;
        let mut removals = Vec::new();
        let mut client = Raw::connect(house.addr).await;
        for reply in REPLIES {
            backend.set(Plan::now(Reply::Bytes(hex::decode(&reply[8..]).into())));
            for _ in 0..10 {
                client.send(ADD).await;
                client.expect(reply).await;
            }
            removals.push(house.pages.sum("muxgate_endpoint_removals_total", &[]).await);
            // A result brings an endpoint back, so that each kind of reply finds it alive.
            backend.set(Plan::default());
            client.send(ADD).await;
            client.expect(ADD_REPLY).await;
        }
        let extra = REPLIES.len() as f64;
        let metrics = house.pages.metrics().await;
        let of = |name: &str, label: (&str, &str)| metrics.sum(name, &[("route", ROUTE), label]);
        let failures = "muxgate_route_failures_total";
        let exceptions = "muxgate_route_exceptions_total";
        assert_eq!(metrics.sum("muxgate_route_requests_total", &[("route", ROUTE)]), 30.0 + extra);
        assert_eq!(metrics.sum("muxgate_route_successes_total", &[("route", ROUTE)]), 10.0 + extra);
        assert_eq!(of(failures, ("cause", "application_exception")), 10.0);
        assert_eq!(of(failures, ("cause", "declared_exception")), if c_fails { 10.0 } else { 0.0 });
        assert_eq!(of(exceptions, ("kind", "declared")), 10.0);
        assert_eq!(metrics.sum("muxgate_route_retries_total", &[]), 0.0);
        assert_eq!(backend.calls().len(), 30 + REPLIES.len(), "none is tried again");

        let spans = house.collector.wait(2 * (30 + REPLIES.len())).await;
        let failed = of_kind(&spans, "CLIENT").filter(|span| is_error(span)).count();
        assert_eq!(failed, 20, "the client spans of (b) and of (c), and none of (a)");

        assert_eq!(removals[0], 0.0);
        assert!(removals[1] >= 1.0, "(b) marks the endpoint");
        assert_eq!(removals[2] > removals[1], c_fails, "(c) does so only when told to");
    }
}

/// Rounds in which the service closes all quiet connections. The case has 100, each with 1.5 s of quiet.
const ROUNDS: usize = 10;

#[tokio::test(flavor = "multi_thread")]
async fn bc_11_upstream_closed_while_idle() {
    let backend = Backend::start().await;
    let clients = "hostConnectionPool: {idleTimeMs: 30000}";
    let house = House::start(&yaml(&to(backend.addr()), "framed", clients)).await;
    let mut callers = Vec::new();
    for _ in 0..10 {
        callers.push(Raw::connect(house.addr).await);
    }
    for round in 0..ROUNDS {
        for caller in &mut callers {
            caller.send(ADD).await;
        }
        for caller in &mut callers {
            caller.expect(ADD_REPLY).await;
        }
        backend.close_connections();
        let closed = |events: &[Event]| {
            let open = events.iter().filter(|e| matches!(e, Event::Open(_))).count();
            (open == events.iter().filter(|e| matches!(e, Event::Closed(_))).count()).then_some(())
        };
        backend.wait("all connections closed", closed).await;
        // Half of the rounds call at once, half wait until the pool has noticed by itself.
        if round % 2 == 0 {
            house.pages.until("muxgate_endpoint_idle_connections", &[], 0.0).await;
        }
    }
    house.pages.until("muxgate_endpoint_idle_connections", &[], 0.0).await;
    assert_eq!(backend.calls().len(), 10 * ROUNDS);
    assert_eq!(house.pages.sum("muxgate_endpoint_failures_total", &[]).await, 0.0);

    // The close crosses a call, and not one byte of a reply came: it was written, so it is not repeated.
    let before = backend.calls().len();
    backend.script([Plan::now(Reply::Close)]);
    callers[0].send(ADD).await;
    let refused = message(&mut callers[0]).await;
    assert_eq!((refused.kind, refused.seqid), (EXCEPTION, 8));
    callers[0].send(ADD).await;
    callers[0].expect(ADD_REPLY).await;
    assert_eq!(backend.calls().len(), before + 2);
    until("no socket in CLOSE_WAIT", || async { (close_wait(backend.addr()) == 0).then_some(()) }).await;
}

/// Sockets of this machine that are connected to `peer`, whose peer has closed and that are not closed.
fn close_wait(peer: SocketAddr) -> usize {
    let table = std::fs::read_to_string("/proc/net/tcp").expect("the table of sockets");
    let peer = format!("0100007F:{:04X}", peer.port());
    let states = table.lines().skip(1).filter_map(|line| {
        let mut words = line.split_whitespace().skip(2);
        (words.next()? == peer).then(|| words.next())?
    });
    states.filter(|state| *state == "08").count()
}

#[tokio::test(flavor = "multi_thread")]
async fn bc_12_client_half_close() {
    let slow = Plan::after(Duration::from_millis(200));
    for protocol in ["framed", "thriftmux"] {
        let backend = Backend::start().await;
        backend.set(slow.clone());
        let house = House::before(backend.addr(), protocol).await;
        let both = [ADD, ECHO_TWO].concat();
        let replies = [ADD_REPLY, ECHO_TWO_REPLY].concat();
        for (calls, answers) in [(ADD, ADD_REPLY), (&both, &replies), (ADD_MUX, ADD_MUX_REPLY)] {
            let mut client = Raw::connect(house.addr).await;
            client.send(calls).await;
            client.close_write().await;
            client.expect(answers).await;
            client.expect_close().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bc_12_a_reset_cancels_the_call() {
    for protocol in ["framed", "thriftmux"] {
        for call in [ADD, ADD_MUX] {
            let backend = Backend::start().await;
            backend.set(Plan::now(Reply::Hang));
            let house = House::before(backend.addr(), protocol).await;
            let mut client = Raw::connect(house.addr).await;
            client.send(call).await;
            backend.wait_calls(1).await;
            client.reset();
            backend.wait("the end of the call", ended).await;
            house.pages.until_idle().await;
        }
    }
}

/// A full close shows itself when the gateway writes: the answer to one call ends the others.
#[tokio::test(flavor = "multi_thread")]
async fn bc_12_a_full_close_cancels_the_call_when_it_shows() {
    let backend = Backend::start().await;
    backend.script([Plan::now(Reply::Hang), Plan::now(Reply::Hold)]);
    let house = House::before(backend.addr(), "thriftmux").await;
    let mut client = Raw::connect(house.addr).await;
    for (n, tag) in ["000002", "000003"].into_iter().enumerate() {
        client.send(&ADD_MUX.replacen("000002", tag, 1)).await;
        backend.wait_calls(n + 1).await;
    }
    drop(client);
    backend.release();
    backend.wait("the end of the call", ended).await;
    house.pages.until_idle().await;
}

/// By Mux a call is discarded; by plain Thrift its connection is closed.
fn ended(events: &[Event]) -> Option<()> {
    events.iter().any(|e| matches!(e, Event::Discarded(..) | Event::Closed(_))).then_some(())
}

#[tokio::test(flavor = "multi_thread")]
async fn bc_06_the_same_by_mux() {
    let backend = Backend::start().await;
    let house = House::before(backend.addr(), "thriftmux").await;
    let mut client = Raw::connect(house.addr).await;
    for reply in REPLIES {
        let bytes = hex::decode(&reply[8..]);
        backend.set(Plan::now(Reply::Bytes(bytes.clone().into())));
        client.send(ADD_MUX).await;
        let frame = client.frame().await.expect("an open connection");
        assert_eq!(frame[..7], [0xfe, 0, 0, 2, 0, 0, 0]);
        assert_eq!(frame[7..], bytes);
        assert_eq!(Message::parse(&bytes.into()).map(|m| m.kind == REPLY), Some(reply != REPLIES[1]));
    }
    let metrics = house.pages.metrics().await;
    assert_eq!(metrics.sum("muxgate_route_successes_total", &[("route", ROUTE)]), 1.0);
    assert_eq!(metrics.sum("muxgate_route_exceptions_total", &[("kind", "declared")]), 1.0);
}
