//! BC-03: booleans in a list, without frames.

use crate::support::{House, to, yaml};
use muxgate_testkit::Backend;
use muxgate_testkit::hex;
use muxgate_testkit::raw::Raw;

const BOTH: &str = "82210103616c6c19320100010082210203616c6c193101020100";

async fn house(backend: &Backend, settings: &str) -> House {
    let text = yaml(&to(backend.addr()), "framed", settings);
    House::start(
        &text.replace("dst: /s/probe}", "dst: /s/probe, protocol: buffered, thriftProtocol: compact}"),
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn bc_03_compact_bool_list() {
    let backend = Backend::start().await;
    let house = house(&backend, "thriftProtocol: binary").await;
    let mut client = Raw::connect(house.addr).await;
    client.send(BOTH).await;
    // all([true, false, true]) is false, in compact: field 0 of type 2, in the long form.
    client.expect("82410103616c6c 020000 82410203616c6c 020000").await;
    let mut calls: Vec<_> = backend.calls().iter().map(|call| hex::encode(&call.bytes)).collect();
    // They run at once, and may arrive in either order.
    calls.sort();
    let binary = |seqid| format!("8001000100000003616c6c0000000{seqid}0f0001020000000301000100");
    assert_eq!(calls, [binary(1), binary(2)]);
    // Empty lists of either type.
    for (call, seqid) in [("82210303616c6c190100", 3), ("82210403616c6c190200", 4)] {
        client.send(call).await;
        client.expect(&format!("82410{seqid}03616c6c 010000")).await;
    }
}

/// The neighbour: a service that speaks compact itself gets the very bytes.
#[tokio::test(flavor = "multi_thread")]
async fn bc_03_as_they_came() {
    let backend = Backend::start().await;
    let house = house(&backend, "maxFrameBytes: 4096").await;
    let mut client = Raw::connect(house.addr).await;
    client.send(BOTH).await;
    client.expect("82410103616c6c").await;
    let mut calls: Vec<_> = backend.wait_calls(2).await.iter().map(|call| hex::encode(&call.bytes)).collect();
    calls.sort();
    assert_eq!(calls, [&BOTH[..26], &BOTH[26..]]);
}
