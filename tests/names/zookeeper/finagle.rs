//! Finagle's own server sets: what it announces is found here, and what is announced here is found by it.

use super::{announce::announced, gateway};
use muxgate_testkit::drill::Echoes;
use muxgate_testkit::serversets::Serversets;
use muxgate_testkit::{ZooKeeper, until};
use std::path::Path;
use tokio::task::block_in_place;

fn finagle() -> Serversets {
    let (repository, target) = (env!("CARGO_MANIFEST_DIR"), env!("CARGO_TARGET_TMPDIR"));
    block_in_place(|| Serversets::build(Path::new(repository), Path::new(target)))
}

#[tokio::test(flavor = "multi_thread")]
async fn finagle_and_the_gateway_find_each_other() {
    let (server, echoes) = (ZooKeeper::start().await, Echoes::start(1).await);
    let finagle = finagle();
    let gateway = gateway(&server, "/svc/theirs => /#/io.l5d.serversets/discovery/theirs");
    let zk = server.addr();

    let theirs = block_in_place(|| finagle.announce(zk, "/discovery/theirs", echoes.addr(0).port()));
    until("a call to what Finagle announced", || async {
        gateway.refusal("/theirs").await.is_none().then_some(())
    })
    .await;
    assert_eq!(gateway.refusal("/theirs/and/more").await, None);

    let resolving = ["zk", "zk2"].map(|scheme| finagle.resolve(scheme, zk, "/discovery/inner"));
    let ours = announced(&server, &echoes, 0);
    let port = ours.addr.port();
    for resolving in &resolving {
        block_in_place(|| resolving.says(0, &format!("/127.0.0.1:{port}")));
    }
    let marks = resolving.each_ref().map(|resolving| resolving.mark());
    ours.stop();
    for (resolving, mark) in resolving.iter().zip(marks) {
        block_in_place(|| resolving.says(mark, "Neg"));
    }

    theirs.terminate();
    until("no such name", || async {
        gateway.refusal("/theirs").await.filter(|refusal| refusal.contains("no such name"))
    })
    .await;
    gateway.stop();
}
