//! Consul changes, dies and forgets under load, and no call notices.

use crate::support::House;
use muxgate_testkit::consul::{Consul, Instance};
use muxgate_testkit::drill::{Drill, Echoes};
use muxgate_testkit::mux;
use muxgate_testkit::until;

async fn house(consul: &Consul, more: &str, dtab: &str) -> House {
    House::start(&format!(
        "admin: {{port: 0}}\nlisteners: [{{port: 0, dst: /users}}]\nstateDir: none\n\
         namers: [{{kind: io.l5d.consul, host: 127.0.0.1, port: {}, useHealthCheck: true{more}}}]\ndtab: {dtab}\n",
        consul.addr().port()
    ))
    .await
}

/// What a call to this name comes to, if it fails.
async fn refusal(house: &House, name: &str) -> Option<String> {
    let answer = house.mux().await.echo(name, "drill").await;
    (answer.status != mux::OK).then(|| answer.text())
}

async fn until_outage(house: &House, why: &str) {
    until(&format!("an outage: {why}"), || async {
        let shown = house.pages.get("/namers.json").await;
        (shown.contains("\"state\":\"outage\"") && shown.contains(why)).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn services_come_and_go_and_so_does_consul() {
    let (mut consul, echoes) = (Consul::start().await, Echoes::start(3).await);
    let one = |at: usize| Instance::new(echoes.addr(at));
    consul.put("users", &[one(0)]);
    let house = house(&consul, "", "/svc => /#/io.l5d.consul/.local").await;
    let mut drill = Drill::start(house.addr);
    drill.step("one instance", async {}).await;
    drill.step("add", async { consul.put("users", &[one(0), one(1)]) }).await;
    drill.traffic(&echoes, &[0, 1]).await;
    let heavy = Instance { weight: 9, ..one(0) };
    drill.step("a weight", async { consul.put("users", &[heavy, one(1)]) }).await;
    drill.traffic(&echoes, &[0, 1]).await;
    let ill = Instance { status: "critical", ..one(0) };
    drill.step("one is ill", async { consul.put("users", &[ill, one(1)]) }).await;
    drill.traffic(&echoes, &[1]).await;
    drill.step("remove", async { consul.put("users", &[one(0)]) }).await;
    drill.traffic(&echoes, &[0]).await;

    drill.step("kill the server", consul.kill()).await;
    until_outage(&house, "/users").await;
    let why = refusal(&house, "/never").await.expect("nobody is there");
    assert!(why.contains("cannot be asked"), "{why}");
    drill.step("bring back empty", consul.restart_empty()).await;
    until("the empty answer is doubted", || async {
        let shown = house.pages.get("/namers.json").await;
        (!shown.contains("\"state\":\"outage\"")).then_some(())
    })
    .await;
    drill.step("doubted", async {}).await;
    drill.step("bring back right", async { consul.put("users", &[one(2)]) }).await;
    drill.traffic(&echoes, &[2]).await;
    let why = refusal(&house, "/never").await.expect("nobody is there");
    assert!(!why.contains("cannot be asked"), "{why}");

    drill.step("the index goes back", async { consul.rewind() }).await;
    drill.step("and on", async { consul.put("users", &[one(1)]) }).await;
    drill.traffic(&echoes, &[1]).await;
    drill.step("no right to see", async { consul.blind(true) }).await;
    until_outage(&house, "no right to see").await;
    drill.step("still in use", async {}).await;
    drill.step("a right to see", async { consul.blind(false) }).await;
    drill.step("silent", async { consul.mute() }).await;
    until_outage(&house, "no answer within").await;
    drill.step("silent for long", async {}).await;
    drill
        .step("answers again", async {
            consul.put("users", &[one(0)]);
            consul.restart().await;
        })
        .await;
    drill.traffic(&echoes, &[0]).await;
    drill.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tags_choose_and_weigh() {
    let (consul, echoes) = (Consul::start().await, Echoes::start(3).await);
    let tagged =
        |at: usize, tags: &[&'static str]| Instance { tags: tags.to_vec(), ..Instance::new(echoes.addr(at)) };
    consul.put("users", &[tagged(0, &["V2"]), tagged(1, &["v2", "big"]), tagged(2, &["v1"])]);
    let more = ", includeTag: true, weights: [{tag: BIG, weight: 9}]";
    let house = house(&consul, more, "/svc => /#/io.l5d.consul/dc1/v2 | /#/io.l5d.consul/dc1/v1").await;
    let mut drill = Drill::start(house.addr);
    drill.step("two with the tag", async {}).await;
    drill.traffic(&echoes, &[0, 1]).await;
    let shares = drill.shares(&echoes, 1000).await;
    assert!(shares[1] > shares[0], "{shares:?}");
    drill.step("none with it", async { consul.put("users", &[tagged(2, &["v1"])]) }).await;
    drill.traffic(&echoes, &[2]).await;
    drill.end().await;
    let far = house.mux().await.echo("/x", "drill").await;
    assert_ne!(far.status, mux::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_centre_that_nobody_knows_is_an_outage() {
    let consul = Consul::start().await;
    let house = house(&consul, "", "/svc => /#/io.l5d.consul/far").await;
    let why = refusal(&house, "/users").await.expect("nobody is there");
    assert!(why.contains("No path to datacenter"), "{why}");
}
