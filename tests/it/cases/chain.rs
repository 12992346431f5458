//! BC-08: a failure that says what a caller may do about it, over two hops.

use crate::support::{ADD_MUX, ADD_MUX_REPLY, Disco, House, inet, yaml};
use muxgate_testkit::backend::ClosedPort;
use muxgate_testkit::raw::Raw;
use muxgate_testkit::{Backend, hex};

const CALLS: usize = 100;
/// A gateway that is not marked dead yet is asked at most twice, as its session may only have been old.
const MOST_ATTEMPTS: f64 = 4.0;

/// A nack that says: retryable, rejected. What follows is a text for people.
const NACK: &str = "fe000002020001000a4d75784661696c75726500080000000000000003";

#[tokio::test(flavor = "multi_thread")]
async fn bc_08_safe_to_retry_across_hops() {
    // The gateways speak Mux with each other; what stands behind the last ones is all the same.
    for protocol in ["thriftmux", "framed"] {
        let closed = ClosedPort::new();
        let works = Backend::start().await;
        let b1 = House::start(&yaml(&format!("/s => {}", inet(closed.addr())), protocol, "")).await;
        let b2 = House::start(&yaml(&format!("/s => {}", inet(works.addr())), protocol, "")).await;
        let disco = Disco::new();
        disco.put("probe", &[b1.addr, b2.addr]);
        let a = House::start(&(disco.namer() + &yaml("/s => /#/fs", "thriftmux", ""))).await;

        let mut direct = Raw::connect(b1.addr).await;
        direct.send(ADD_MUX).await;
        expect_nack(&mut direct).await;

        let mut client = Raw::connect(a.addr).await;
        // A names calls for B by what is left of the name, which is nothing: B's listener says /s/probe.
        for _ in 0..CALLS {
            client.send(ADD_MUX).await;
            client.expect(ADD_MUX_REPLY).await;
        }
        assert_eq!(works.calls().len(), CALLS);
        let nacks = a.pages.sum("muxgate_endpoint_failures_total", &[("cause", "nack")]).await;
        assert!(nacks >= 1.0, "B1 was asked at least once");
        assert_eq!(a.pages.sum("muxgate_route_retries_total", &[]).await, nacks, "each is paid for");

        works.stop().await;
        let before = a.pages.sum("muxgate_endpoint_requests_total", &[]).await;
        client.send(ADD_MUX).await;
        expect_nack(&mut client).await;
        let attempts = a.pages.sum("muxgate_endpoint_requests_total", &[]).await - before;
        assert!((1.0..=MOST_ATTEMPTS).contains(&attempts), "{attempts} attempts");
    }
}

async fn expect_nack(client: &mut Raw) {
    let frame = hex::encode(&client.frame().await.expect("an open connection"));
    assert!(frame.starts_with(NACK), "{frame}");
}
