//! BC-14: an outage of discovery is no loss of addresses.

use super::{BINDING, IN_USE_WITHIN, gateway, in_use, member, never_seen};
use muxgate_testkit::drill::{Drill, Echoes};
use muxgate_testkit::{Etcd, Front, until};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long every packet is lost: shorter than the 60 s of the case, and three times as long as it takes to be noticed.
const LOST: Duration = Duration::from_secs(15);
/// An answer is believed for so long without a further word of the source.
const NOTICED: Duration = Duration::from_secs(4);
/// How long each of the errors is answered.
const ERRORS: Duration = Duration::from_secs(10);

/// "etcd is silent; then it answers 500, then 403; then it is back with one new address in place of the two."
#[tokio::test(flavor = "multi_thread")]
async fn bc_14_an_outage_of_etcd_takes_no_address() {
    let etcd = Etcd::start().await;
    let front = Front::start(etcd.addr()).await;
    let echoes = Echoes::start(3).await;
    for at in [0, 1] {
        etcd.put(&format!("/services/prod/web/{at}"), &member(echoes.addr(at), 1.0)).await;
    }
    let gateway = gateway(front.addr());
    let mut drill = Drill::start(gateway.addr);
    drill.step("two members", async {}).await;
    drill.traffic(&echoes, &[0, 1]).await;

    let lost = async {
        etcd.freeze();
        sleep(NOTICED).await;
        never_seen(&gateway, "/ghost/of/silence").await;
        sleep(LOST).await;
    };
    drill.step("every packet is lost", lost).await;
    drill.step("packets come through again", async { etcd.thaw() }).await;
    for status in [500, 403] {
        let refusing = async {
            front.answer(status);
            let asked = Instant::now();
            never_seen(&gateway, &format!("/ghost/of/{status}")).await;
            assert!(asked.elapsed() < BINDING);
            sleep(ERRORS).await;
        };
        drill.step(&format!("etcd answers {status}"), refusing).await;
        let (_, names) = gateway.get("/names.json").await;
        assert!(names.contains("served from the last good answer since"), "{names}");
        drill.traffic(&echoes, &[0, 1]).await;
    }
    for at in [0, 1] {
        etcd.delete(&format!("/services/prod/web/{at}")).await;
    }
    etcd.put("/services/prod/web/2", &member(echoes.addr(2), 1.0)).await;
    let began = Instant::now();
    let back = async {
        front.pass();
        in_use(&echoes, 2).await;
    };
    drill.step("etcd is back with one other member", back).await;
    drill.traffic(&echoes, &[2]).await;
    println!("only the new one is in use after {:?}", began.elapsed());
    assert!(began.elapsed() < IN_USE_WITHIN, "{:?}", began.elapsed());
    drill.end().await;
    gateway.stop();
}

/// Of several addresses, one that answers is asked.
#[tokio::test(flavor = "multi_thread")]
async fn another_address_is_asked_when_one_fails() {
    let etcd = Etcd::start().await;
    let (first, second) = (Front::start(etcd.addr()).await, Front::start(etcd.addr()).await);
    let echoes = Echoes::start(2).await;
    etcd.put("/services/prod/web/0", &member(echoes.addr(0), 1.0)).await;
    let yaml = format!(
        "admin: {{port: 0}}\nlisteners: [{{name: in, port: 0, dst: /web}}]\nclients: [{{protocol: framed}}]\n\
         namers: [{{kind: io.l5d.etcd, addresses: [\"{}\", \"{}\"]}}]\ndtab: /svc => /#/io.l5d.etcd/prod\n",
        first.addr(),
        second.addr(),
    );
    let gateway = muxgate_testkit::Gateway::of_yaml(env!("CARGO_BIN_EXE_muxgate"), &yaml);
    assert_eq!(gateway.refusal("/web").await, None);
    first.answer(503);
    etcd.put("/services/prod/web/0", &member(echoes.addr(1), 1.0)).await;
    let moved = || async {
        assert_eq!(gateway.refusal("/web").await, None);
        (echoes.counts()[1] > 0).then_some(())
    };
    until("the change, from the second", moved).await;
    first.pass();
    second.answer(503);
    etcd.put("/services/prod/web/0", &member(echoes.addr(0), 1.0)).await;
    let before = echoes.counts()[0];
    let back = || async {
        assert_eq!(gateway.refusal("/web").await, None);
        (echoes.counts()[0] > before).then_some(())
    };
    until("the change, from the first again", back).await;
    gateway.stop();
}
