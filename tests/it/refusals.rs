//! Services that refuse: leases, nacks, and the purse that pays for another try.

use crate::support::{Disco, House, ROUTE, echo, yaml};
use muxgate_testkit::backend::{Plan, Reply};
use muxgate_testkit::{Backend, Caller, mux};
use std::time::Duration;

struct Scene {
    one: Backend,
    two: Backend,
    house: House,
    client: Caller,
    _disco: Disco,
}

async fn scene(more: &str) -> Scene {
    let (one, two) = (Backend::start().await, Backend::start().await);
    let disco = Disco::new();
    disco.put("probe", &[one.addr(), two.addr()]);
    let house = House::start(&(disco.namer() + &yaml("/s => /#/fs", "thriftmux", "") + more)).await;
    let client = house.mux().await;
    Scene { one, two, house, client, _disco: disco }
}

impl Scene {
    async fn call(&mut self) {
        let answer = self.client.call(&echo("/s/probe", "x")).await.expect("an answer");
        assert_eq!((answer.status, answer.text().as_str()), (mux::OK, "x"));
    }

    /// Calls until `done`, given how many calls each service has seen.
    async fn call_until(&mut self, what: &str, mut done: impl FnMut(usize, usize) -> bool) {
        for _ in 0..20_000 {
            self.call().await;
            if done(self.one.calls().len(), self.two.calls().len()) {
                return;
            }
        }
        panic!("waited for {what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_of_0_takes_an_endpoint_out_of_choice_while_another_is_open() {
    let mut scene = scene("").await;
    scene.call_until("calls to both", |one, two| one > 0 && two > 0).await;
    scene.one.lease(Duration::ZERO);
    let (mut last, mut row) = (0, 0);
    let quiet = |one: usize, _: usize| {
        row = if one == last { row + 1 } else { 0 };
        last = one;
        row == 50
    };
    scene.call_until("50 calls in a row to the other", quiet).await;
    let before = scene.one.calls().len();
    scene.one.lease(Duration::from_secs(3600));
    scene.call_until("calls to the first again", |one, _| one > before).await;

    // Without a better one, endpoints whose lease is over are used all the same.
    scene.one.lease(Duration::ZERO);
    scene.two.lease(Duration::ZERO);
    for _ in 0..50 {
        scene.call().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nack_goes_to_another_endpoint_and_is_paid_for() {
    const CALLS: usize = 100;
    let mut scene = scene("").await;
    scene.one.set(Plan::now(Reply::Nack(Vec::new())));
    for _ in 0..CALLS {
        scene.call().await;
    }
    assert_eq!(scene.two.calls().len(), CALLS);
    let nacks = scene.one.calls().len() as f64;
    assert!(nacks > 0.0);
    assert_eq!(scene.house.pages.sum("muxgate_route_retries_total", &[("route", ROUTE)]).await, nacks);
    assert_eq!(scene.house.pages.sum("muxgate_route_failures_total", &[]).await, 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_purse_means_no_storm() {
    const CALLS: usize = 200;
    let budget =
        "services: [{retries: {budget: {percentCanRetry: 0.2, minRetriesPerSec: 0, ttlSecs: 60}}}]\n";
    let mut scene = scene(budget).await;
    for backend in [&scene.one, &scene.two] {
        backend.set(Plan::now(Reply::Nack(Vec::new())));
    }
    let mut final_words = 0;
    for _ in 0..CALLS {
        let answer = scene.client.call(&echo("/s/probe", "x")).await.expect("an answer");
        // Retryable only while it was paid for: who stands above must not multiply it.
        match answer.status {
            mux::NACK => assert_eq!(answer.flags().map(|flags| flags & 1), Some(1)),
            _ => {
                final_words += 1;
                assert_eq!(answer.flags().map(|flags| flags & 5), Some(4));
            }
        }
    }
    assert!(final_words > CALLS / 2, "{final_words}");
    let attempts = scene.one.calls().len() + scene.two.calls().len();
    assert!(attempts <= CALLS + CALLS / 5, "{attempts} attempts of {CALLS} calls");
    let metrics = scene.house.pages.metrics().await;
    assert_eq!(metrics.sum("muxgate_route_retries_total", &[]), (attempts - CALLS) as f64);
    assert!(metrics.sum("muxgate_route_budget_exhausted_total", &[]) > 0.0);
}
