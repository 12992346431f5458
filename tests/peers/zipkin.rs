//! Spans in the real Zipkin, read back from its API: one call is one tree.

use crate::world::{FINAGLE, THRIFTMUX, ZIPKIN, gateway, trace_id};
use muxgate_testkit::Gateway;
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// Two gateways in a row in front of the ThriftMux server, both reporting.
struct Row {
    first: Gateway,
    second: Gateway,
}

fn row() -> Row {
    let collector = ZIPKIN.collector();
    let second = gateway(THRIFTMUX.addr, "thriftmux", &["--zipkin", &collector]);
    let first = gateway(second.addr, "thriftmux", &["--zipkin", &collector]);
    Row { first, second }
}

fn by_kind<'a>(spans: &'a [Value], kind: &str) -> Vec<&'a Value> {
    spans.iter().filter(|s| s["kind"] == kind).collect()
}

/// Checks that the spans are one tree below the span `root`, which the caller made and did not report, and returns the
/// id of the span that no other one is below.
fn one_tree(spans: &[Value], trace: &str, root: &str) -> String {
    let ids: HashSet<&str> = spans.iter().filter_map(|s| s["id"].as_str()).collect();
    let mut parents = HashMap::new();
    let mut kinds = HashSet::new();
    for span in spans {
        assert_eq!(span["traceId"], trace, "{span}");
        let id = span["id"].as_str().expect("an id");
        let kind = span["kind"].as_str().expect("a kind");
        assert!(kinds.insert((id, kind)), "reported twice: {span}");
        let parent = span["parentId"].as_str().unwrap_or("");
        if id == root {
            assert_eq!(kind, "SERVER", "only the first hop's server span shares the caller's id: {span}");
        } else {
            assert!(ids.contains(parent), "the parent is not reported: {span}");
            // Both sides of a hop that share an id must agree on its parent.
            assert_eq!(*parents.entry(id).or_insert(parent), parent, "two parents: {span}");
        }
        assert!(span["localEndpoint"]["serviceName"].as_str().is_some_and(|n| !n.is_empty()), "{span}");
        assert_eq!(span["remoteEndpoint"]["ipv4"], "127.0.0.1", "{span}");
        assert!(span["remoteEndpoint"]["port"].is_u64(), "{span}");
        assert!(span["timestamp"].is_u64() && span["duration"].is_u64(), "{span}");
    }
    let inner: HashSet<&str> = parents.values().copied().collect();
    let leaves: Vec<&&str> = ids.iter().filter(|id| !inner.contains(**id)).collect();
    assert_eq!(leaves.len(), 1, "more than one branch: {spans:#?}");
    (**leaves[0]).to_owned()
}

#[test]
fn one_call_is_one_tree_through_two_gateways() {
    let row = row();
    for trace in [trace_id(), format!("463ac35c9f6413ad{}", trace_id())] {
        let (mark, root) = (THRIFTMUX.mark(), "00000000000000aa");
        let ids = ["--trace-id", &trace, "--span-id", root, "--exact-ids", "--sampled"];
        FINAGLE.call(row.first.addr, &ids).all_ok();
        let seen = THRIFTMUX.ended(mark, &trace);
        let spans = ZIPKIN.trace(&trace, 4);
        assert_eq!(spans.len(), 4, "{spans:#?}");
        let leaf = one_tree(&spans, &trace, root);
        // What the server was told goes on from the last span.
        assert_eq!(seen["trace"]["span_id"].as_str(), Some(leaf.as_str()), "{spans:#?}");
        assert_eq!((by_kind(&spans, "SERVER").len(), by_kind(&spans, "CLIENT").len()), (2, 2));
        assert!(spans.iter().all(|s| s["name"] == "echo"), "the method is the name: {spans:#?}");
        assert!(spans.iter().all(|s| s["tags"]["error"].is_null()), "{spans:#?}");
        let ports: HashSet<u64> =
            by_kind(&spans, "CLIENT").iter().filter_map(|s| s["remoteEndpoint"]["port"].as_u64()).collect();
        let want = [row.second.addr.port(), THRIFTMUX.addr.port()].map(u64::from);
        assert_eq!(ports, HashSet::from(want), "the clients' remote ends are where they called");
    }
}

#[test]
fn failures_are_tagged_and_calls_that_are_not_sampled_leave_nothing() {
    let gateway = gateway(THRIFTMUX.addr, "thriftmux", &["--zipkin", &ZIPKIN.collector()]);
    let silent = trace_id();
    FINAGLE.call(gateway.addr, &["--trace-id", &silent, "--not-sampled", "--n", "3"]).all_ok();
    for (proto, method) in [("thriftmux", "unknown"), ("ttwitter", "unknown"), ("thriftmux", "fail")] {
        let trace = trace_id();
        FINAGLE
            .call(gateway.addr, &["--proto", proto, "--trace-id", &trace, "--sampled", "--method", method]);
        let spans = ZIPKIN.trace(&trace, 2);
        assert_eq!((by_kind(&spans, "SERVER").len(), by_kind(&spans, "CLIENT").len()), (1, 1), "{spans:#?}");
        assert!(spans.iter().all(|s| s["tags"]["error"].is_string()), "{method}: {spans:#?}");
    }
    // Spans are sent in order: the failed calls' are there, so any of the calls before them would be.
    assert_eq!(ZIPKIN.spans(&silent), Vec::<Value>::new());
}

#[test]
fn calls_do_not_mind_that_zipkin_is_away() {
    // A port that was free a moment ago, where nobody listens.
    let nobody =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port");
    let collector = format!("http://{nobody}/api/v2/spans");
    let gateway = gateway(THRIFTMUX.addr, "thriftmux", &["--zipkin", &collector]);
    // More spans than may wait: two for each call.
    let args = ["--sampled", "--trace-id", &trace_id(), "--n", "9000", "--concurrency", "32", "--no-retries"];
    FINAGLE.call(gateway.addr, &args).all_ok();
    let metrics = gateway.metrics();
    let spans = |what: &str| metrics.sum(&format!("muxgate_spans_{what}_total"), &[]);
    assert!(spans("recorded") >= 18_000.0, "{}", spans("recorded"));
    assert!(spans("dropped") > 0.0, "what does not fit into the queue is counted");
    assert_eq!(spans("exported"), 0.0);
    gateway.stop();
}
