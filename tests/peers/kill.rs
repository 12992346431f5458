//! Three endpoints under load; one is killed and comes back. Only calls that were in flight on it may fail.

use crate::world::{FINAGLE, GO, MUX, THRIFTMUX, cluster};
use muxgate_testkit::language::{FRAMED, Server};
use muxgate_testkit::load::{Call, Load};
use muxgate_testkit::proc::LIMIT;
use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::Instant;

const CALLERS: usize = 8;
const PAUSE: Duration = Duration::from_millis(5);

/// Runs a load against `endpoints`; `kill` ends the victim, `restart` brings it back and returns once it has been
/// called again. Returns the calls, and when the victim was alive for the last time and dead for the first.
fn run(
    endpoints: &[SocketAddr],
    upstream: &str,
    kill: impl FnOnce(),
    restart: impl FnOnce(),
) -> (Vec<Call>, Instant, Instant) {
    let cluster = cluster(endpoints, upstream);
    let load = Load::start(cluster.gateway.addr, CALLERS, PAUSE);
    load.more(400);
    let alive = Instant::now();
    kill();
    let dead = Instant::now();
    load.more(400);
    restart();
    load.more(400);
    let calls = load.stop();
    cluster.gateway.stop();
    (calls, alive, dead)
}

/// The calls that failed, after a check that each of them was under way when the victim died.
fn failed(calls: &[Call], alive: Instant, dead: Instant) -> Vec<&Call> {
    let failed: Vec<&Call> = calls.iter().filter(|c| c.failure.is_some()).collect();
    for call in &failed {
        let why = call.failure.as_deref().unwrap_or("");
        assert!(!why.starts_with("WRONG REPLY"), "{why}");
        assert!(
            call.start <= dead && call.end >= alive,
            "failed, but was not under way at the kill: {call:?}"
        );
    }
    assert!(failed.len() <= CALLERS, "more calls failed than can have been in flight: {failed:#?}");
    assert!(calls.len() >= 1200);
    failed
}

/// A server that logs its calls.
fn go(args: &[&str]) -> Server {
    GO.server(FRAMED, &[&["--log"], args].concat())
}

#[test]
fn a_killed_thrift_server_costs_only_its_calls_in_flight() {
    let (a, b, victim) = (go(&[]), go(&[]), go(&[]));
    let port = victim.addr.port().to_string();
    let mut back = None;
    let (calls, alive, dead) = run(
        &[a.addr, b.addr, victim.addr],
        "framed",
        || victim.proc.kill(),
        || {
            let server = back.insert(go(&["--port", &port]));
            server.proc.wait_line("a call", LIMIT, |l| l.contains("\"arrival\"").then_some(()));
        },
    );
    let failed = failed(&calls, alive, dead);
    assert!(!victim.args_of("done").is_empty(), "the victim was never called");
    // What failed was on the victim, or on its way to it: no other server has seen it.
    let elsewhere: HashSet<String> = a.args_of("arrival").into_iter().chain(b.args_of("arrival")).collect();
    for call in failed {
        assert!(!elsewhere.contains(&call.text), "failed, but was on another server: {call:?}");
    }
    // Nothing was done twice that was done once and for all.
    let mut done = HashSet::new();
    for text in [&a, &b, &victim].into_iter().chain(&back).flat_map(|s| s.args_of("done")) {
        assert!(done.insert(text.clone()), "done twice: {text}");
    }
}

#[test]
fn a_killed_thriftmux_server_costs_only_its_calls_in_flight() {
    let victim = FINAGLE.server("victim", &[]);
    let port = victim.addr.port().to_string();
    let mut back = None;
    let (calls, alive, dead) = run(
        &[THRIFTMUX.addr, MUX.addr, victim.addr],
        "thriftmux",
        || victim.proc.kill(),
        || {
            let server = back.insert(FINAGLE.server("victim again", &["--port", &port]));
            server.wait_log(0, "a call", |e| (e["event"] == "request").then_some(()));
        },
    );
    failed(&calls, alive, dead);
    assert!(victim.log().iter().any(|e| e["event"] == "request"), "the victim was never called");
}
