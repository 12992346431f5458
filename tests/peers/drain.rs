//! A server that drains under load costs nobody a call.

use crate::world::{FINAGLE, THRIFTMUX, cluster};
use muxgate_testkit::proc::LIMIT;

#[test]
fn a_draining_server_costs_no_call() {
    let going = FINAGLE.server("going", &["--latency-ms", "20", "--grace-ms", "20000"]);
    let cluster = cluster(&[going.addr, THRIFTMUX.addr], "thriftmux");
    // 200 calls a second in two protocols, each reply compared.
    let flow = ["--rps", "100", "--seconds", "10", "--concurrency", "32", "--no-retries"];
    let clients = ["thriftmux", "thrift"].map(|proto| {
        let args = [&["--proto", proto][..], &flow].concat();
        FINAGLE.client(cluster.gateway.addr, &args)
    });
    let mut seen = 0;
    going.wait_log(0, "300 calls", |e| {
        seen += usize::from(e["event"] == "request");
        (seen >= 300).then_some(())
    });
    // The same as --drain-after-s: Tdrain, then what is in flight is answered, then it hangs up.
    going.proc.terminate();
    let status = going.proc.wait(LIMIT);
    for client in clients {
        let calls = client.result();
        calls.all_ok();
    }
    assert!(status.success(), "{status}");
    let interrupted = going.log().iter().filter(|e| e["event"] == "request" && e["outcome"] != "ok").count();
    assert_eq!(interrupted, 0, "calls that the draining server did not answer");
    cluster.gateway.stop();
}

#[test]
fn a_server_that_drains_by_itself_is_used_again_once_it_is_back() {
    let drains = FINAGLE.server("drains", &["--drain-after-s", "4"]);
    let cluster = cluster(&[drains.addr, THRIFTMUX.addr], "thriftmux");
    let args = ["--rps", "200", "--seconds", "16", "--concurrency", "32", "--no-retries"];
    let client = FINAGLE.client(cluster.gateway.addr, &args);
    assert!(drains.proc.wait(LIMIT).success());
    let port = drains.addr.port().to_string();
    let back = FINAGLE.server("back", &["--port", &port]);
    client.result().all_ok();
    let served = back.log().iter().filter(|e| e["event"] == "request").count();
    assert!(served > 0, "the server that came back got no call");
}
