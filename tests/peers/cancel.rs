//! A caller that gives up is heard at the server, with its reason, where its protocol has a word for it.

use crate::world::{FINAGLE, THRIFT, THRIFTMUX, gateway};
use serde_json::Value;

/// Long enough for a cold client to have its call at the server before it gives up, and for the server to be still at it.
const GIVES_UP_MS: &str = "5000";
const TAKES_MS: &str = "90000";

fn args<'a>(proto: &'a str, size: &'a str, takes_ms: &'a str) -> Vec<&'a str> {
    let slow = ["--method", "slow", "--delay-ms", takes_ms, "--cancel-after-ms", GIVES_UP_MS, "--no-retries"];
    [&["--proto", proto, "--size", size][..], &slow].concat()
}

/// The end of the call whose payload is of about this size: plain Thrift has nothing else to know it by.
fn of_size(event: &Value, size: u64) -> Option<Value> {
    let payload = event["payload_bytes"].as_u64()?;
    (event["event"] == "request" && (size..size + 100).contains(&payload)).then(|| event.clone())
}

#[test]
fn an_interrupt_reaches_the_server_with_its_reason() {
    let gateway = gateway(THRIFTMUX.addr, "thriftmux", &[]);
    let mark = THRIFTMUX.mark();
    let kinds = [("thriftmux", "11000"), ("mux", "12000")];
    // Both at once: most of the time they wait.
    let clients = kinds.map(|(proto, size)| FINAGLE.client(gateway.addr, &args(proto, size, TAKES_MS)));
    for client in clients {
        let calls = client.result();
        assert_eq!((calls.ok(), calls.n()), (0, 1), "{}", calls.0);
    }
    for (proto, size) in kinds {
        let size = size.parse().expect("a number");
        let seen = THRIFTMUX.wait_log(mark, &format!("the end of the {proto} call"), |e| of_size(e, size));
        assert_eq!(
            (&seen["outcome"], &seen["interrupted"]),
            (&"interrupted".into(), &true.into()),
            "{proto}: {seen}"
        );
        let why = seen["why"].as_str().unwrap_or("");
        assert!(why.contains("client gave up after"), "{proto}: {why}");
    }
    FINAGLE.call(gateway.addr, &["--n", "5"]).all_ok();
}

/// Plain Thrift has no word for it: the caller closes, and a close cannot be told from the end of input by a caller that
/// still waits for its answer (BC-12). So the call goes on, and its answer goes nowhere.
#[test]
fn a_plain_caller_that_gives_up_leaves_nothing_behind() {
    let gateway = gateway(THRIFTMUX.addr, "thriftmux", &[]);
    let mark = THRIFTMUX.mark();
    let kinds = [("thrift", "13000"), ("ttwitter", "14000")];
    let clients = kinds.map(|(proto, size)| FINAGLE.client(gateway.addr, &args(proto, size, "12000")));
    for client in clients {
        let calls = client.result();
        assert_eq!((calls.ok(), calls.n()), (0, 1), "{}", calls.0);
    }
    for (proto, size) in kinds {
        let size = size.parse().expect("a number");
        THRIFTMUX.wait_log(mark, &format!("the end of the {proto} call"), |e| of_size(e, size));
    }
    gateway.wait_metrics("no connection is open", |m| m.sum("muxgate_listener_open_connections", &[]) == 0.0);
    FINAGLE.call(gateway.addr, &["--proto", "thrift", "--n", "5"]).all_ok();
}

#[test]
fn an_interrupt_ends_the_call_on_a_framed_server_too() {
    let gateway = gateway(THRIFT.addr, "framed", &[]);
    let mark = THRIFT.mark();
    let calls = FINAGLE.call(gateway.addr, &args("thriftmux", "15000", TAKES_MS));
    assert_eq!(calls.ok(), 0, "{}", calls.0);
    let seen = THRIFT.wait_log(mark, "the end of the call", |e| of_size(e, 15000));
    assert_eq!(seen["interrupted"], true, "{seen}");
    FINAGLE.call(gateway.addr, &["--n", "5"]).all_ok();
}
