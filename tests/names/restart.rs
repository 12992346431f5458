//! Everything is restarted while discovery is away: calls flow from the answers that were kept.

use muxgate_testkit::Gateway;
use muxgate_testkit::drill::{Drill, Echoes};
use muxgate_testkit::etcd::Etcd;
use muxgate_testkit::until;
use std::path::Path;

fn gateway(etcd: &Etcd, state: &Path) -> Gateway {
    let yaml = format!(
        "admin: {{port: 0}}\nlisteners: [{{port: 0, dst: /users}}]\nstateDir: {}\n\
         namers: [{{kind: io.l5d.etcd, host: 127.0.0.1, port: {}, pathPrefix: /services}}]\ndtab: /svc => /#/io.l5d.etcd\n",
        state.display(),
        etcd.addr().port()
    );
    Gateway::of_yaml(env!("CARGO_BIN_EXE_muxgate"), &yaml)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_starts_without_etcd_goes_on_with_what_was_kept() {
    let (mut etcd, echoes) = (Etcd::start().await, Echoes::start(2).await);
    let state = tempfile::tempdir().expect("a folder");
    etcd.put("/services/users/1", &echoes.addr(0).to_string()).await;
    let first = gateway(&etcd, state.path());
    let mut drill = Drill::start(first.addr);
    drill.step("with etcd", async {}).await;
    drill.end().await;
    tokio::task::spawn_blocking(|| first.stop()).await.expect("it ends well");

    etcd.kill();
    let next = gateway(&etcd, state.path());
    let mut drill = Drill::start(next.addr);
    drill.step("started without etcd", async {}).await;
    drill.traffic(&echoes, &[0]).await;
    let (_, names) = next.get("/names.json").await;
    assert!(names.contains("served from the answer kept on disk"), "{names}");
    let why = next.refusal("/never").await.expect("nobody is there");
    assert!(why.contains("cannot be asked"), "{why}");
    let (_, namers) = next.get("/namers.json").await;
    assert!(namers.contains("\"state\":\"outage\""), "{namers}");
    let (_, metrics) = next.get("/metrics").await;
    assert!(metrics.contains("muxgate_discovery_restored_total{namer=\"/#/io.l5d.etcd\"} 1"), "{metrics}");

    drill.step("etcd is back", etcd.restart()).await;
    drill
        .step("another address", async {
            etcd.put("/services/users/1", &echoes.addr(1).to_string()).await;
        })
        .await;
    drill.traffic(&echoes, &[1]).await;
    until("nothing old is served", || async {
        let (_, names) = next.get("/names.json").await;
        (!names.contains("served from")).then_some(())
    })
    .await;
    drill.end().await;
}
