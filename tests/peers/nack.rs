//! A nack is nobody's failure while another endpoint takes the call.

use crate::world::{FINAGLE, MUX, THRIFTMUX, cluster};

#[test]
fn nacks_are_retried_elsewhere() {
    let nacks = FINAGLE.server("nacks", &["--fail-rate", "1", "--fail-kind", "nack"]);
    let cluster = cluster(&[nacks.addr, THRIFTMUX.addr, MUX.addr], "thriftmux");
    let calls = FINAGLE.call(
        cluster.gateway.addr,
        &["--n", "600", "--concurrency", "4", "--no-retries", "--method", "everything"],
    );
    calls.all_ok();
    let refused = nacks.log().iter().filter(|e| e["event"] == "request").count();
    assert!(refused > 0, "the refusing server was never asked");
    // Retries are the gateway's own business: the caller's client made none, and the servers see the caller's count.
    assert_eq!(calls.0["requeues"], 0);
}

#[test]
fn a_nack_that_cannot_go_elsewhere_is_a_failure_and_not_a_hang() {
    let nacks = FINAGLE.server("only-nacks", &["--fail-rate", "1", "--fail-kind", "nack"]);
    let cluster = cluster(&[nacks.addr], "thriftmux");
    let calls = FINAGLE.call(cluster.gateway.addr, &["--n", "3", "--no-retries"]);
    assert_eq!((calls.ok(), calls.n()), (0, 3), "{}", calls.0);
    let failures = calls.0["failures"].to_string();
    assert!(failures.contains("rejected"), "the caller should learn that it was refused: {failures}");
}
