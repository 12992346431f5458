//! What is too much is refused at once, told as such, and leaves everything else alone.

mod calls;
mod connections;
mod messages;

use crate::support::{ADD, ADD_REPLY, House, echo, to, yaml};
use muxgate_testkit::backend::{Event, Plan, Reply};
use muxgate_testkit::mux::Dispatch;
use muxgate_testkit::raw::Raw;
use muxgate_testkit::thrift::{Message, Protocol};
use muxgate_testkit::{Backend, hex, mux};
use std::collections::HashMap;
use std::time::Duration;

async fn house(backend: &Backend, listener: &str) -> House {
    let text = yaml(&to(backend.addr()), "thriftmux", "");
    House::start(&text.replace("dst: /s/probe}", &format!("dst: /s/probe, {listener}}}"))).await
}

/// Waits until so many were refused or cut off for this cause.
async fn limited(house: &House, cause: &str, count: f64) {
    house.pages.until("muxgate_listener_limited_total", &[("cause", cause)], count).await;
}

/// A nack that says: retryable, rejected.
const REFUSED: Option<u64> = Some(3);

#[tokio::test(flavor = "multi_thread")]
async fn calls_beyond_a_limit_are_nacked() {
    for (limit, cause) in [("maxInFlight: 3", "in_flight"), ("maxConcurrentRequests: 3", "overload")] {
        let backend = Backend::start().await;
        backend.set(Plan::now(Reply::Hold));
        let house = house(&backend, limit).await;
        let mut client = house.mux().await;
        for tag in 2..5 {
            client.send(tag, &echo("/s/probe", "in")).await;
        }
        backend.wait_calls(3).await;
        client.send(9, &echo("/s/probe", "out")).await;
        let (tag, refused) = client.answer().await.expect("a nack");
        assert_eq!((tag, refused.status), (9, mux::NACK), "{limit}");
        if cause == "overload" {
            assert_eq!(refused.flags(), REFUSED, "{limit}");
        }
        // Pings are answered all the while.
        client.raw.send_bytes(&mux::frame(mux::TPING, 9, b"")).await;
        let pong = client.message().await.map(|(kind, tag, _)| (kind, tag));
        assert_eq!(pong, Some((mux::RPING, 9)));
        backend.release();
        for _ in 2..5 {
            assert_eq!(client.answer().await.expect("an answer").1.text(), "in");
        }
        assert_eq!(client.echo("/s/probe", "in again").await.text(), "in again");
        assert_eq!(backend.calls().len(), 4, "{limit}");
        let counted = ["limited", "failures"].map(|name| format!("muxgate_listener_{name}_total"));
        let metrics = house.pages.metrics().await;
        let sum: f64 = counted.iter().map(|name| metrics.sum(name, &[("cause", cause)])).sum();
        assert_eq!(sum, 1.0, "{limit}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_beyond_the_limit_are_closed_and_counted() {
    let backend = Backend::start().await;
    let house = house(&backend, "maxConnections: 2").await;
    let (mut one, two) = (Raw::connect(house.addr).await, Raw::connect(house.addr).await);
    one.send(ADD).await;
    one.expect(ADD_REPLY).await;
    house.pages.until("muxgate_listener_open_connections", &[], 2.0).await;
    Raw::connect(house.addr).await.expect_close().await;
    house.pages.until("muxgate_listener_refused_connections_total", &[], 1.0).await;
    limited(&house, "connections", 1.0).await;
    drop(two);
    house.pages.until("muxgate_listener_open_connections", &[], 1.0).await;
    let mut three = Raw::connect(house.addr).await;
    three.send(ADD).await;
    three.expect(ADD_REPLY).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_beyond_the_limit_cost_the_connection_and_nothing_else() {
    let backend = Backend::start().await;
    let house = house(&backend, "maxFrameBytes: 65536").await;
    let mut bystander = house.mux().await;
    let mut largest = house.mux().await;
    let fits = "x".repeat(65_000);
    assert_eq!(largest.echo("/s/probe", &fits).await.text(), fits);
    largest.send(2, &echo("/s/probe", &"x".repeat(66_000))).await;
    largest.raw.expect_close().await;
    let mut plain = Raw::connect(house.addr).await;
    plain.send(ADD).await;
    plain.expect(ADD_REPLY).await;
    plain.send("00010001").await;
    plain.expect_close().await;
    assert_eq!(bystander.echo("/s/probe", "well").await.text(), "well");
    limited(&house, "frame_too_long", 2.0).await;
}

/// First bytes of protocols that are not spoken here.
const STRANGE: [(&str, &str); 3] = [
    ("http", "474554202f20485454502f312e310d0a0d0a"),
    ("tls", "16030100c8010000c40303"),
    ("unknown_protocol", "00000004 deadbeef"),
];

#[tokio::test(flavor = "multi_thread")]
async fn strange_protocols_are_refused_by_name() {
    let backend = Backend::start().await;
    let house = house(&backend, "maxConnections: 100").await;
    for (cause, bytes) in STRANGE {
        let mut stranger = Raw::connect(house.addr).await;
        stranger.send_bytes(&hex::decode(bytes)).await;
        stranger.expect_close().await;
        let counted = house.pages.sum("muxgate_listener_decode_errors_total", &[("cause", cause)]).await;
        assert_eq!(counted, 1.0, "{cause}");
    }
    assert!(backend.calls().is_empty());
}

/// A caller that goes takes all of its calls with it.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_a_caller_that_goes() {
    const CALLS: u32 = 200;
    let backend = Backend::start().await;
    backend.set(Plan::now(Reply::Hang));
    let house = house(&backend, "maxConnections: 100").await;
    let mut client = house.mux().await;
    for tag in 2..2 + CALLS {
        client.send(tag, &echo("/s/probe", &tag.to_string())).await;
    }
    backend.wait_calls(CALLS as usize).await;
    client.raw.reset();
    let all = |events: &[Event]| {
        let told = events.iter().filter(|event| matches!(event, Event::Discarded(..))).count();
        (told == CALLS as usize).then_some(())
    };
    backend.wait("every call discarded", all).await;
    house.pages.until_idle().await;
    house.pages.until("muxgate_listener_open_connections", &[], 0.0).await;

    // The tags are free again: the next calls use the low ones.
    backend.set(Plan::default());
    let mut client = house.mux().await;
    let before = backend.calls().len();
    for n in 0..20 {
        assert_eq!(client.echo("/s/probe", &n.to_string()).await.text(), n.to_string());
    }
    let tags = backend.calls().into_iter().skip(before).filter_map(|call| call.tag);
    assert!(tags.max().is_some_and(|tag| tag < 2 + CALLS + 20));
}

/// What a connection may have begun and never ends.
const BEGUN: [(&str, &str); 8] = [
    // A length, and a piece of a call.
    ("slow_first_bytes", "0000"),
    ("slow_frame", "0000001e 80010001 00000003"),
    // Behind another call.
    ("slow_frame", "0000000c822108036164641502150400 0000001e 8001"),
    ("slow_frame", "00000030 02000002 0000"),
    // Behind a handshake, and behind a call.
    ("slow_frame", "0000000f7f00000174696e697420636865636b 00000006440000010001 00000030 02"),
    ("slow_frame", "00000009020000020000000000 00000030 02"),
    // A handshake without its second half, and a message without its last piece.
    ("slow_handshake", "0000000f7f00000174696e697420636865636b"),
    ("slow_message", "00000009020000020000000000 00000006 02800003 0000"),
];

#[tokio::test(flavor = "multi_thread")]
async fn who_begins_and_does_not_end_is_cut_off() {
    let backend = Backend::start().await;
    let house = house(&backend, "stallTimeoutMs: 300").await;
    let mut counts = HashMap::new();
    for (cause, bytes) in BEGUN {
        let mut stranger = Raw::connect(house.addr).await;
        stranger.send(bytes).await;
        while stranger.frame().await.is_some() {}
        let count = counts.entry(cause).or_insert(0.0);
        *count += 1.0;
        limited(&house, cause, *count).await;
    }
    // Who has begun nothing may be quiet for longer.
    let mut quiet = house.mux().await;
    let mut plain = house.plain().await;
    plain.raw.expect_silence(Duration::from_secs(1)).await;
    assert_eq!(plain.echo("", "still here").await.text(), "still here");
    assert_eq!(quiet.echo("/s/probe", "still here").await.text(), "still here");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_caller_that_does_not_read_is_cut_off() {
    let backend = Backend::start().await;
    let house = house(&backend, "stallTimeoutMs: 300").await;
    let mut deaf = house.plain().await;
    let large = Message::call(Protocol::Binary, "echo", 7, &"x".repeat(12 << 20)).to_bytes();
    deaf.tell(&Dispatch { body: large, ..Dispatch::default() }).await;
    limited(&house, "slow_reader", 1.0).await;
    house.pages.until("muxgate_listener_open_connections", &[], 0.0).await;
    house.pages.until_idle().await;
}

/// Every cause that the README names is shown by a test here.
#[test]
fn no_limit_of_the_readme_is_without_a_test() {
    let tests = [
        include_str!("limits.rs"),
        include_str!("limits/calls.rs"),
        include_str!("limits/connections.rs"),
        include_str!("limits/messages.rs"),
    ];
    let readme = include_str!("../../README.md");
    let table =
        readme.split("\n## Limits\n").nth(1).and_then(|rest| rest.split("What the gateway itself").next());
    let rows: Vec<_> =
        table.expect("the section").lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    let causes: Vec<_> = rows
        .iter()
        .filter_map(|row| row.rsplit("| ").next()?.trim_start().strip_prefix('`')?.split('`').next())
        .collect();
    assert!(causes.len() > 20, "{causes:?}");
    for cause in causes {
        let quoted = format!("\"{cause}\"");
        assert!(tests.iter().any(|test| test.contains(&quoted)), "{cause}");
    }
}
