//! A service is killed and comes back, under load.

use crate::support::{Disco, House, yaml};
use muxgate_testkit::Backend;
use muxgate_testkit::backend::Plan;
use muxgate_testkit::load::Load;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

const CALLERS: usize = 8;
/// Dead endpoints are tried again soon.
const ACCRUAL: &str =
    "failureAccrual: {kind: io.l5d.consecutiveFailures, failures: 5, backoff: {kind: constant, ms: 300}}";

#[tokio::test(flavor = "multi_thread")]
async fn of_three_endpoints_one_is_killed_and_restarted() {
    for protocol in ["thriftmux", "framed"] {
        let mut backends = Vec::new();
        for _ in 0..3 {
            let backend = Backend::start().await;
            backend.set(Plan::after(Duration::from_millis(1)));
            backends.push(backend);
        }
        let disco = Disco::new();
        disco.put("probe", &backends.iter().map(Backend::addr).collect::<Vec<_>>());
        let house = House::start(&(disco.namer() + &yaml("/s => /#/fs", protocol, ACCRUAL))).await;
        let load = Arc::new(Load::start(house.addr, CALLERS, Duration::ZERO));
        more(&load, 300).await;
        assert!(backends.iter().all(|backend| !backend.calls().is_empty()));

        let killed = backends.pop().expect("three");
        let address = killed.addr();
        killed.stop().await;
        let gone = Instant::now();
        more(&load, 300).await;

        let back = Backend::on(address).await;
        back.wait_calls(20).await;
        more(&load, 100).await;
        let calls =
            spawn_blocking(move || Arc::into_inner(load).expect("the only one").stop()).await.unwrap();
        let failed: Vec<_> = calls.iter().filter(|call| call.failure.is_some()).collect();
        // Each caller has one call in flight at most, and only what was in flight when it went may fail.
        assert!(failed.len() <= CALLERS, "{protocol}: {failed:?}");
        assert!(failed.iter().all(|call| call.start < gone), "{protocol}: {failed:?}");
        let wrong = |call: &&muxgate_testkit::load::Call| {
            call.failure.as_ref().is_some_and(|f| f.starts_with("WRONG"))
        };
        assert!(!failed.iter().any(wrong), "{protocol}: {failed:?}");
    }
}

async fn more(load: &Arc<Load>, n: usize) {
    let load = Arc::clone(load);
    spawn_blocking(move || load.more(n)).await.expect("the load goes on");
}
