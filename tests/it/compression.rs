//! `lz4` on Mux sessions, both ways, as the handshake agrees.

use crate::support::{House, echo, to, yaml};
use muxgate_testkit::{Backend, mux};

async fn calls(house: &House) {
    let mut client = house.mux().await;
    for size in [1, 100_000, 3_000_000] {
        let text = "compress me ".repeat(size / 12 + 1);
        let answer = client.call(&echo("/s/probe", &text)).await.expect("an answer");
        assert_eq!((answer.status, answer.text() == text), (mux::OK, true), "{size}: {:.200}", answer.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_takes_it_is_spoken_to_compressed() {
    let backend = Backend::start().await;
    backend.accept_lz4();
    for level in ["desired", "accepted", "off"] {
        let house =
            House::start(&yaml(&to(backend.addr()), "thriftmux", &format!("compression: {level}"))).await;
        calls(&house).await;
        let packed = backend.calls().last().map(|call| call.how.lz4);
        assert_eq!(packed, Some(level != "off"), "{level}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_gateway_speaks_to_another_compressed() {
    let backend = Backend::start().await;
    for (ours, theirs) in [("desired", "accepted"), ("accepted", "desired"), ("desired", "off")] {
        let text = yaml(&to(backend.addr()), "thriftmux", "");
        let text = text.replace("dst: /s/probe}", &format!("dst: /s/probe, compression: {theirs}}}"));
        let inner = House::start(&text).await;
        let outer = House::start(&yaml(&to(inner.addr), "thriftmux", &format!("compression: {ours}"))).await;
        calls(&outer).await;
    }
}
