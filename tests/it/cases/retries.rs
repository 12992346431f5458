//! BC-07: classified retries end with their call.

use crate::support::{ADD, House, of_kind, to};
use muxgate_testkit::Backend;
use muxgate_testkit::backend::{Plan, Reply};
use muxgate_testkit::raw::Raw;
use muxgate_testkit::thrift::{EXCEPTION, Message, REPLY};
use serde_json::Value;
use std::collections::HashSet;
use std::time::Duration;

/// Every failure of the name may be tried again; the budget never runs out.
const SERVICES: &str = "services:\n- totalTimeoutMs: 500\n  \
    responseClassifier: {kind: io.l5d.thrift.retryableFailures}\n  \
    retries: {budget: {percentCanRetry: 10, minRetriesPerSec: 100000, ttlSecs: 60}, \
    backoff: {kind: jittered, minMs: 20, maxMs: 100}}\n";
/// One attempt, in ms, and the least pause before the next.
const ATTEMPT: u64 = 50;

async fn house(dtab: &str, protocol: &str) -> House {
    House::start(&format!("{SERVICES}{}", crate::support::yaml(dtab, protocol, ""))).await
}

/// add(1, 2), once, and the exception that it ends with.
async fn add(house: &House) -> Message {
    let mut caller = Raw::connect(house.addr).await;
    caller.send(ADD).await;
    Message::parse(&caller.frame().await.expect("an answer").into()).expect("a Thrift message")
}

/// Nothing goes on for the call, so nothing can come of it any more.
async fn settled(house: &House, backend: &Backend) -> usize {
    house.pages.until_idle().await;
    let attempts = backend.calls().len();
    let begun = house.pages.sum("muxgate_endpoint_requests_total", &[]).await;
    assert_eq!(begun, attempts as f64);
    attempts
}

async fn retries(house: &House) -> f64 {
    house.pages.sum("muxgate_route_retries_total", &[]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn bc_07_retries_outlive_total_timeout() {
    for protocol in ["framed", "thriftmux"] {
        let backend = Backend::start().await;
        let house = house(&to(backend.addr()), protocol).await;
        let reply = Reply::Exception(6, "always".into());
        backend.set(Plan { delay: Duration::from_millis(ATTEMPT), reply });
        let answer = add(&house).await;
        assert_eq!((answer.kind, answer.seqid), (EXCEPTION, 8), "{protocol}");
        let attempts = settled(&house, &backend).await;
        assert!((2..=8).contains(&attempts), "{protocol}: {attempts}");
        assert_eq!(retries(&house).await, attempts as f64 - 1.0, "{protocol}");
        one_trace(&house.collector.wait(attempts + 1).await, attempts);
        // Each attempt says how many there were before it.
        if protocol == "thriftmux" {
            let counts = backend.calls().into_iter().map(|call| {
                let count = call.context("com.twitter.finagle.Retries").expect("a count of retries");
                u64::from(count[3])
            });
            assert!(counts.eq(0..attempts as u64));
        }

        // One that takes the call and never answers: the time is spent by the first attempt.
        backend.set(Plan::now(Reply::Hang));
        let before = retries(&house).await;
        let answer = add(&house).await;
        assert_eq!(answer.kind, EXCEPTION, "{protocol}");
        assert_eq!(settled(&house, &backend).await, attempts + 1, "{protocol}");
        assert_eq!(retries(&house).await, before, "{protocol}");

        // The neighbour: a failure that passes costs its caller nothing.
        backend.set(Plan::default());
        backend.script([Plan::now(Reply::Exception(6, "once".into())), Plan::now(Reply::Close)]);
        assert_eq!(add(&house).await.kind, REPLY, "{protocol}");
        assert_eq!(settled(&house, &backend).await, attempts + 4, "{protocol}");
    }
}

/// All attempts are children of one server span.
fn one_trace(spans: &[Value], attempts: usize) {
    let traces: HashSet<_> = spans.iter().map(|span| span["traceId"].as_str()).collect();
    assert_eq!(traces.len(), 1, "{spans:#?}");
    let server = of_kind(spans, "SERVER").next().expect("a server span");
    assert!(of_kind(spans, "CLIENT").all(|span| span["parentId"] == server["id"]), "{spans:#?}");
    let numbers: HashSet<_> =
        of_kind(spans, "CLIENT").map(|span| span["tags"]["attempt"].as_str().map(str::to_owned)).collect();
    assert_eq!(numbers.len(), attempts, "{spans:#?}");
}

/// By default no failure may be repeated; and a oneway call never is.
#[tokio::test(flavor = "multi_thread")]
async fn bc_07_what_is_not_classed_is_not_tried_again() {
    let backend = Backend::start().await;
    backend.set(Plan::now(Reply::Exception(6, "always".into())));
    let plain = House::before(backend.addr(), "framed").await;
    assert_eq!(add(&plain).await.kind, EXCEPTION);
    assert_eq!(settled(&plain, &backend).await, 1);

    let backend = Backend::start().await;
    backend.set(Plan::now(Reply::Error(Vec::new(), "no".into())));
    let house = house(&to(backend.addr()), "thriftmux").await;
    let mut caller = Raw::connect(house.addr).await;
    caller.send("00000018 80010004 00000004 6e6f7465 00000001 0b0001 00000000 00").await;
    backend.wait_calls(1).await;
    assert_eq!(settled(&house, &backend).await, 1);
}

/// A retry goes to another endpoint, if there is one.
#[tokio::test(flavor = "multi_thread")]
async fn bc_07_a_retry_goes_elsewhere() {
    let (bad, good) = (Backend::start().await, Backend::start().await);
    bad.set(Plan::now(Reply::Exception(6, "always".into())));
    let disco = crate::support::Disco::new();
    disco.put("probe", &[bad.addr(), good.addr()]);
    let text = crate::support::yaml("/s => /#/fs", "framed", "");
    let house = House::start(&format!("{}{SERVICES}{text}", disco.namer())).await;
    // Which of the two is asked first is a matter of chance.
    while bad.calls().is_empty() {
        assert_eq!(add(&house).await.kind, REPLY);
    }
    let failed = bad.calls().len() as f64;
    assert_eq!(retries(&house).await, failed, "one retry for each failure");
}
