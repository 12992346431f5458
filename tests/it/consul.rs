//! Services of Consul: no call fails whatever becomes of the agent.

use muxgate_testkit::consul::Mode;
use muxgate_testkit::drill::{Drill, Echoes};
use muxgate_testkit::{Consul, Gateway, until};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// A returned agent must be believed within this time.
const IN_USE_WITHIN: Duration = Duration::from_secs(5);
/// A name that nobody knows fails within the binding limit.
const BINDING: Duration = Duration::from_secs(10);

fn gateway(agent: &Consul) -> Gateway {
    let yaml = format!(
        "admin: {{port: 0}}\nlisteners: [{{name: in, port: 0, dst: /users}}]\nclients: [{{protocol: framed}}]\n\
         namers: [{{kind: io.l5d.consul, host: 127.0.0.1, port: {}, useHealthCheck: true}}]\n\
         dtab: /svc => /#/io.l5d.consul/.local\n",
        agent.addr().port()
    );
    Gateway::of_yaml(env!("CARGO_BIN_EXE_muxgate"), &yaml)
}

/// A name that was never asked for, while nobody can be asked.
async fn never_seen(gateway: &Gateway, name: &str) {
    let refusal = timeout(BINDING, gateway.refusal(name)).await.expect("an answer within the binding limit");
    let text = refusal.expect("nobody knows it");
    assert!(text.contains("cannot be asked") && !text.contains("no such name"), "{text}");
}

async fn kept(gateway: &Gateway, word: &str) {
    let shown = || async {
        let (_, names) = gateway.get("/names.json").await;
        (names.contains("served from the last good answer") && names.contains(word)).then_some(())
    };
    until("what is kept, and why", shown).await;
}

async fn in_use(echoes: &Echoes, at: usize) {
    let before = echoes.counts()[at];
    until("calls", || async { (echoes.counts()[at] > before).then_some(()) }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_fails_whatever_becomes_of_the_agent() {
    let agent = Consul::start().await;
    let echoes = Echoes::start(4).await;
    agent.put("a", "users", echoes.addr(0), "passing");
    let gateway = gateway(&agent);
    let mut drill = Drill::start(gateway.addr);
    drill.step("one instance", async {}).await;
    drill.step("add one", async { agent.put("b", "users", echoes.addr(1), "passing") }).await;
    drill.traffic(&echoes, &[0, 1]).await;
    drill.step("one is not well", async { agent.put("a", "users", echoes.addr(0), "critical") }).await;
    drill.traffic(&echoes, &[1]).await;
    drill.step("another in its place", async { agent.put("a", "users", echoes.addr(2), "passing") }).await;
    drill.traffic(&echoes, &[1, 2]).await;
    assert!(gateway.refusal("/nobody").await.is_some_and(|text| !text.contains("cannot be asked")));

    drill.step("the token has lost its rights", async { agent.set(Mode::Filtered) }).await;
    drill.step("something else changes", async { agent.put("x", "orders", echoes.addr(0), "passing") }).await;
    kept(&gateway, "no right").await;
    drill.step("and got them again", async { agent.set(Mode::Well) }).await;
    drill.step("the agent dies", async { agent.set(Mode::Dead) }).await;
    drill.step("a name never seen", never_seen(&gateway, "/ghost")).await;
    let empty = async {
        agent.lose_all();
        agent.set(Mode::Well);
    };
    drill.step("it is back, and empty: its index went back", empty).await;
    kept(&gateway, "doubted").await;
    drill.step("what is gone is doubted", async {}).await;
    drill.traffic(&echoes, &[1, 2]).await;
    for status in [500, 403] {
        drill.step(&format!("it answers {status}"), async { agent.set(Mode::Status(status)) }).await;
        kept(&gateway, &status.to_string()).await;
        drill.step("a name never seen", never_seen(&gateway, &format!("/ghost-{status}"))).await;
    }
    let began = Instant::now();
    let right = async {
        agent.put("d", "users", echoes.addr(3), "passing");
        agent.set(Mode::Well);
        in_use(&echoes, 3).await;
    };
    drill.step("it is back with one other instance", right).await;
    drill.traffic(&echoes, &[3]).await;
    println!("only the new one is in use after {:?}", began.elapsed());
    assert!(began.elapsed() < IN_USE_WITHIN, "{:?}", began.elapsed());
    drill.end().await;
    gateway.stop();
}
