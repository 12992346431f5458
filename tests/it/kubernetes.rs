//! Services of Kubernetes: no call fails whatever becomes of the API server.

use muxgate_testkit::drill::{Drill, Echoes};
use muxgate_testkit::kubernetes::Mode;
use muxgate_testkit::{Gateway, Kubernetes, until};
use serde_json::Value;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// A returned server must be believed within this time.
const IN_USE_WITHIN: Duration = Duration::from_secs(5);
/// A name that nobody knows fails within the binding limit.
const BINDING: Duration = Duration::from_secs(10);

fn gateway(server: &Kubernetes) -> Gateway {
    let yaml = format!(
        "admin: {{port: 0}}\nlisteners: [{{name: in, port: 0, dst: /users}}]\nclients: [{{protocol: framed}}]\n\
         namers: [{{kind: io.l5d.k8s, host: 127.0.0.1, port: {}}}]\ndtab: /svc => /#/io.l5d.k8s/shop/thrift\n",
        server.addr().port()
    );
    Gateway::of_yaml(env!("CARGO_BIN_EXE_muxgate"), &yaml)
}

/// A name that was never asked for, while nobody can be asked.
async fn never_seen(gateway: &Gateway, name: &str) {
    let refusal = timeout(BINDING, gateway.refusal(name)).await.expect("an answer within the binding limit");
    let text = refusal.expect("nobody knows it");
    assert!(text.contains("cannot be asked") && !text.contains("no such name"), "{text}");
}

async fn in_use(echoes: &Echoes, at: usize) {
    let before = echoes.counts()[at];
    until("calls", || async { (echoes.counts()[at] > before).then_some(()) }).await;
}

/// What the admin page says about the name: that its answer is an old one, since when, and why.
async fn kept(gateway: &Gateway) -> String {
    let names: Value = serde_json::from_str(&gateway.get("/names.json").await.1).expect("JSON");
    let row = names.as_array().and_then(|rows| rows.iter().find(|row| row["name"] == "/svc/users"));
    row.and_then(|row| row["kept"].as_str()).unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_fails_whatever_becomes_of_the_api_server() {
    let server = Kubernetes::start().await;
    let echoes = Echoes::start(4).await;
    server.put("users-0", "users", echoes.addr(0), true);
    let gateway = gateway(&server);
    let mut drill = Drill::start(gateway.addr);
    drill.step("one endpoint", async {}).await;
    drill.step("add one", async { server.put("users-1", "users", echoes.addr(1), true) }).await;
    drill.traffic(&echoes, &[0, 1]).await;
    drill.step("one is not ready", async { server.put("users-0", "users", echoes.addr(0), false) }).await;
    drill.traffic(&echoes, &[1]).await;
    drill.step("it is ready again", async { server.put("users-0", "users", echoes.addr(0), true) }).await;
    drill.traffic(&echoes, &[0, 1]).await;
    let forget = async {
        server.forget();
        server.put("users-2", "users", echoes.addr(2), true);
    };
    drill.step("the version is too old", forget).await;
    drill.traffic(&echoes, &[0, 1, 2]).await;
    drill.step("remove one", async { server.delete("users-0") }).await;
    drill.traffic(&echoes, &[1, 2]).await;
    drill.step("kill the server", async { server.set(Mode::Dead) }).await;
    drill.step("a name never seen", never_seen(&gateway, "/ghost")).await;
    let empty = async {
        server.lose_all();
        server.set(Mode::Well);
    };
    drill.step("it is back, and empty", empty).await;
    until("doubt", || async { kept(&gateway).await.contains("doubted").then_some(()) }).await;
    drill.step("what is gone is doubted", async {}).await;
    drill.traffic(&echoes, &[1, 2]).await;
    let right = async {
        server.put("users-3", "users", echoes.addr(3), true);
        in_use(&echoes, 3).await;
    };
    drill.step("one other endpoint", right).await;
    drill.traffic(&echoes, &[3]).await;
    drill.end().await;
    gateway.stop();
}

/// "Every packet is lost; then the server answers 500, then 403; then it is back with one new address in place of the two."
/// Each lasts for seconds only: long enough to be noticed.
#[tokio::test(flavor = "multi_thread")]
async fn bc_14_an_outage_of_kubernetes_takes_no_address() {
    let server = Kubernetes::start().await;
    let echoes = Echoes::start(3).await;
    for at in [0, 1] {
        server.put(&format!("users-{at}"), "users", echoes.addr(at), true);
    }
    let gateway = gateway(&server);
    let mut drill = Drill::start(gateway.addr);
    drill.step("two endpoints", async {}).await;
    drill.traffic(&echoes, &[0, 1]).await;
    let lost = async {
        server.set(Mode::Silent);
        until("the silence", || async { (!kept(&gateway).await.is_empty()).then_some(()) }).await;
        never_seen(&gateway, "/ghost-of-silence").await;
    };
    drill.step("every packet is lost", lost).await;
    let said = kept(&gateway).await;
    assert!(said.contains("last good answer since") && said.contains("cannot be asked"), "{said}");
    for status in [500, 403] {
        let refusing = async {
            server.set(Mode::Status(status));
            never_seen(&gateway, &format!("/ghost-of-{status}")).await;
            until("the error", || async { kept(&gateway).await.contains(&status.to_string()).then_some(()) })
                .await;
        };
        drill.step(&format!("it answers {status}"), refusing).await;
        drill.traffic(&echoes, &[0, 1]).await;
    }
    for at in [0, 1] {
        server.delete(&format!("users-{at}"));
    }
    server.put("users-2", "users", echoes.addr(2), true);
    let began = Instant::now();
    let back = async {
        server.set(Mode::Well);
        in_use(&echoes, 2).await;
    };
    drill.step("it is back with one other endpoint", back).await;
    drill.traffic(&echoes, &[2]).await;
    println!("only the new one is in use after {:?}", began.elapsed());
    assert!(began.elapsed() < IN_USE_WITHIN, "{:?}", began.elapsed());
    assert_eq!(kept(&gateway).await, "");
    drill.end().await;
    gateway.stop();
}
