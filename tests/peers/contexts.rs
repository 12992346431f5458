//! What goes beside a call, as the server saw it: trace, deadline, client id, retries, dtab, headers, and contexts that
//! nobody knows, byte for byte.

use crate::world::{FINAGLE, MUX, THRIFT, THRIFTMUX, gateway, trace_id};
use muxgate_testkit::Gateway;
use muxgate_testkit::finagle::Server;
use serde_json::{Value, json};

const SENT: [&str; 16] = [
    "--span-id",
    "00000000000000aa",
    "--parent-id",
    "00000000000000bb",
    "--exact-ids",
    "--sampled",
    "--deadline-ms",
    "600000",
    "--dtab",
    "/a=>/b;/c=>/d | /e",
    "--client-id",
    "peers",
    "--context",
    "my.key=00ff10",
    "--context",
    "other.key=",
];

/// Makes one call with all of that and returns it as `server` logged it, and the client's summary.
fn sent(server: &Server, proto: &str, trace: &str, more: &[&str]) -> (Value, Value) {
    let gateway = gateway(server.addr, "thriftmux", &[]);
    sent_by(&gateway, server, proto, trace, more)
}

fn sent_by(gateway: &Gateway, server: &Server, proto: &str, trace: &str, more: &[&str]) -> (Value, Value) {
    let mark = server.mark();
    let args = [&["--proto", proto, "--trace-id", trace][..], &SENT, more].concat();
    let calls = FINAGLE.call(gateway.addr, &args);
    calls.all_ok();
    (server.ended(mark, trace), calls.0)
}

/// What holds for every protocol that can carry contexts.
fn check(seen: &Value, trace: &str) {
    let ids = &seen["trace"];
    assert_eq!(ids["trace_id"], trace);
    // The gateway's own client span: a new id, below the span that the caller sent.
    assert_eq!(ids["parent_id"], "00000000000000aa", "{ids}");
    assert!(ids["span_id"] != "00000000000000aa" && ids["span_id"] != "00000000000000bb", "{ids}");
    assert_eq!((&ids["sampled"], &ids["flags"]), (&json!(true), &json!(6)), "{ids}");
    let left = seen["deadline_ms"].as_f64().unwrap_or(-1.0);
    assert!(0.0 < left && left <= 600_000.0, "{left}");
    assert_eq!(seen["dtab"], "/a=>/b;/c=>/d | /e");
    assert_eq!(seen["client_id"], "peers");
    assert_eq!(seen["retries"], 0);
    let contexts = &seen["contexts"];
    assert_eq!(contexts["my.key"], "00ff10");
    assert_eq!(contexts["other.key"], "");
    assert_eq!(contexts["com.twitter.finagle.thrift.ClientIdContext"], "7065657273");
    assert_eq!(contexts["com.twitter.finagle.Retries"], "00000000");
}

#[test]
fn all_that_goes_beside_a_mux_call_arrives() {
    for (server, proto) in
        [(&*THRIFTMUX, "thriftmux"), (&*MUX, "mux"), (&*THRIFTMUX, "mux"), (&*MUX, "thriftmux")]
    {
        let trace = trace_id();
        let (seen, calls) =
            sent(server, proto, &trace, &["--path", "/s/foo", "--header", "h1=v1", "--header", "h2=\u{e9}"]);
        check(&seen, &trace);
        assert_eq!(seen["dest"], "/s/foo");
        // Headers of both kinds of client are one thing for both kinds of server only if the kinds are the same.
        if seen["server"] == proto {
            assert_eq!(seen["headers"], json!({"h1": "v1", "h2": "\u{e9}"}));
            assert_eq!(calls["reply_headers"], json!({"from": proto}));
        }
    }
}

#[test]
fn a_trace_id_of_128_bits_keeps_both_halves() {
    let trace = format!("463ac35c9f6413ad{}", trace_id());
    for proto in ["thriftmux", "ttwitter"] {
        let (seen, _) = sent(&THRIFTMUX, proto, &trace, &[]);
        check(&seen, &trace);
    }
}

#[test]
fn what_ttwitter_carries_arrives() {
    let trace = trace_id();
    let (seen, _) = sent(&THRIFTMUX, "ttwitter", &trace, &[]);
    check(&seen, &trace);
}

#[test]
fn a_ttwitter_service_gets_all_that_ttwitter_carries() {
    let gateway = gateway(THRIFT.addr, "ttwitter", &[]);
    for proto in ["thriftmux", "mux", "ttwitter"] {
        let trace = trace_id();
        let (seen, _) = sent_by(&gateway, &THRIFT, proto, &trace, &["--n", "3"]);
        check(&seen, &trace);
    }
    let trace = format!("463ac35c9f6413ad{}", trace_id());
    let (seen, _) = sent_by(&gateway, &THRIFT, "thriftmux", &trace, &[]);
    check(&seen, &trace);
    FINAGLE.call(gateway.addr, &["--proto", "thrift", "--method", "everything", "--n", "5"]).all_ok();
}

#[test]
fn plain_thrift_gets_a_trace_and_nothing_else() {
    let gateway = gateway(THRIFTMUX.addr, "thriftmux", &[]);
    let mark = THRIFTMUX.mark();
    // The size is how the call is found in the log.
    let calls = FINAGLE.call(
        gateway.addr,
        &["--proto", "thrift", "--size", "7919", "--dtab", "/a=>/b", "--client-id", "me"],
    );
    calls.all_ok();
    let seen = THRIFTMUX.wait_log(mark, "the call", |e| {
        let size = e["payload_bytes"].as_u64().unwrap_or(0);
        (e["event"] == "request" && (7919..8000).contains(&size)).then(|| e.clone())
    });
    assert!(seen["trace"]["trace_id"].is_string(), "{seen}");
    assert_eq!((&seen["dtab"], &seen["client_id"]), (&json!(""), &Value::Null));
    let contexts: Vec<&String> = seen["contexts"].as_object().into_iter().flat_map(|c| c.keys()).collect();
    let known = |key: &&&String| {
        let name = key.rsplit('.').next().unwrap_or("");
        ["TraceContext", "Retries", "Deadline"].contains(&name)
    };
    assert_eq!(contexts.iter().filter(known).count(), contexts.len(), "{contexts:?}");
}

#[test]
fn a_caller_that_is_not_sampled_stays_so() {
    let gateway = gateway(THRIFTMUX.addr, "thriftmux", &[]);
    let (mark, trace) = (THRIFTMUX.mark(), trace_id());
    FINAGLE.call(gateway.addr, &["--trace-id", &trace, "--not-sampled"]).all_ok();
    let seen = THRIFTMUX.ended(mark, &trace);
    assert_eq!((&seen["trace"]["sampled"], &seen["trace"]["flags"]), (&json!(false), &json!(2)), "{seen}");
}
