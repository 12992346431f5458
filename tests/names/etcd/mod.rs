//! A real etcd: services found, tables kept.

mod client;
mod outages;
mod storage;

use muxgate_testkit::drill::{Drill, Echoes};
use muxgate_testkit::{Etcd, Gateway, until};
use serde_json::json;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// A returned server must be believed within this time.
const IN_USE_WITHIN: Duration = Duration::from_secs(5);
/// A name that nobody knows fails within the binding limit.
const BINDING: Duration = Duration::from_secs(10);
/// Life of a member's lease, in seconds.
const LEASE: u32 = 2;
/// Names that one stream carries.
const MANY: usize = 10_000;

/// A member as services write it.
fn member(at: SocketAddr, weight: f64) -> String {
    json!({"host": at.ip().to_string(), "port": at.port(), "weight": weight}).to_string()
}

fn gateway(etcd: SocketAddr) -> Gateway {
    let yaml = format!(
        "admin: {{port: 0}}\nlisteners: [{{name: in, port: 0, dst: /web}}]\nclients: [{{protocol: framed}}]\n\
         namers: [{{kind: io.l5d.etcd, addresses: [\"{etcd}\"]}}]\ndtab: /svc => /#/io.l5d.etcd/prod\n",
    );
    Gateway::of_yaml(env!("CARGO_BIN_EXE_muxgate"), &yaml)
}

/// A name that was never asked for, while nobody can be asked.
async fn never_seen(gateway: &Gateway, name: &str) {
    let refusal = timeout(BINDING, gateway.refusal(name)).await.expect("an answer within the binding limit");
    let text = refusal.expect("nobody knows it");
    assert!(text.contains("cannot be asked"), "{text}");
    assert!(!text.contains("no such name"), "{text}");
}

/// Waits until one of the backends gets calls.
async fn in_use(echoes: &Echoes, at: usize) {
    let before = echoes.counts()[at];
    until("calls", || async { (echoes.counts()[at] > before).then_some(()) }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_fails_whatever_becomes_of_etcd() {
    let mut etcd = Etcd::start().await;
    let echoes = Echoes::start(5).await;
    etcd.put("/services/prod/web/0", &member(echoes.addr(0), 1.0)).await;
    let gateway = gateway(etcd.addr());
    let mut drill = Drill::start(gateway.addr);

    drill.step("start with one member", async {}).await;
    drill.step("add a member", etcd.put("/services/prod/web/1", &echoes.addr(1).to_string())).await;
    drill.traffic(&echoes, &[0, 1]).await;
    drill.step("weigh it nine times", etcd.put("/services/prod/web/1", &member(echoes.addr(1), 9.0))).await;
    until("the shares", || async {
        let shares = drill.shares(&echoes, 400).await;
        println!("shares {shares:.2?}");
        // A balancer that looks at load, too, moves some calls from the heavier one.
        (shares[1] > 0.65 && shares[0] > 0.02).then_some(())
    })
    .await;
    drill.step("remove the first", etcd.delete("/services/prod/web/0")).await;
    drill.traffic(&echoes, &[1]).await;
    let third = member(echoes.addr(2), 9.0);
    let leased = etcd.put_leased("/services/prod/web/2", &third, LEASE);
    drill.step("add one with a lease", leased).await;
    drill.traffic(&echoes, &[1, 2]).await;
    drill.step("its lease ends", drill_until_gone(&etcd, "/services/prod/web/2")).await;
    drill.traffic(&echoes, &[1]).await;
    drill.step("one writes nonsense", etcd.put("/services/prod/web/x", "hello")).await;
    drill.step("add another", etcd.put("/services/prod/web/0", &member(echoes.addr(0), 1.0))).await;
    drill.traffic(&echoes, &[0, 1]).await;

    drill.step("compact", etcd.compact()).await;
    let behind = async {
        // What changes while the gateway stands still is forgotten before it can be told.
        gateway.proc.freeze();
        etcd.kill();
        etcd.restart().await;
        etcd.put("/services/prod/web/2", &member(echoes.addr(2), 1.0)).await;
        etcd.compact().await;
        gateway.proc.thaw();
    };
    drill.step("compact what the gateway has not heard", behind).await;
    drill.traffic(&echoes, &[0, 1, 2]).await;

    drill.step("kill the server", async { etcd.kill() }).await;
    drill.step("ask for a name never seen", never_seen(&gateway, "/ghost")).await;
    drill.traffic(&echoes, &[0, 1, 2]).await;
    drill.step("bring it back with its data", etcd.restart()).await;
    drill.step("add a member", etcd.put("/services/prod/web/3", &member(echoes.addr(3), 1.0))).await;
    drill.traffic(&echoes, &[0, 1, 2, 3]).await;

    drill.step("kill it again", async { etcd.kill() }).await;
    drill.step("bring it back empty", etcd.restart_empty()).await;
    drill.more(500).await;
    drill.step("it stays empty for a while", async {}).await;
    let began = Instant::now();
    let right = async {
        etcd.put("/services/prod/web/4", &member(echoes.addr(4), 1.0)).await;
        in_use(&echoes, 4).await;
    };
    drill.step("one other member is written", right).await;
    println!("in use after {:?}", began.elapsed());
    assert!(began.elapsed() < IN_USE_WITHIN);
    drill.traffic(&echoes, &[4]).await;
    drill.end().await;
    gateway.stop();
}

async fn drill_until_gone(etcd: &Etcd, key: &str) {
    until("the end of the lease", || async { etcd.get(key).await.is_none().then_some(()) }).await;
}

/// Ten thousand names cost one stream; a change of one reaches the calls to it, and is all that etcd sends.
#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_names_cost_one_stream() {
    let etcd = Etcd::start().await;
    let echoes = Echoes::start(2).await;
    let first = member(echoes.addr(0), 1.0);
    etcd.put_all((0..MANY).map(|n| (format!("/services/prod/{n}/m"), first.clone()))).await;
    let gateway = gateway(etcd.addr());
    for name in ["/0", "/4999", "/9999"] {
        assert_eq!(gateway.refusal(name).await, None, "{name}");
    }
    let (watches, _) = etcd.watches().await;
    assert_eq!(watches, 1.0);
    etcd.put("/services/prod/4999/m", &member(echoes.addr(1), 1.0)).await;
    let moved = || async {
        assert_eq!(gateway.refusal("/4999").await, None);
        (echoes.counts()[1] > 0).then_some(())
    };
    until("the change", moved).await;
    let others = echoes.counts()[1];
    assert_eq!(gateway.refusal("/5000").await, None);
    assert_eq!(echoes.counts()[1], others, "another name went where only one has moved");
    gateway.stop();
}
