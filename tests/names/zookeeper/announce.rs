//! A gateway that announces itself, and another that finds it.

use super::{client, member};
use muxgate::outside::zk::Session;
use muxgate_testkit::drill::{Drill, Echoes};
use muxgate_testkit::{Gateway, ZooKeeper, until};
use serde_json::Value;
use std::sync::Arc;

const SET: &str = "/discovery/inner";

/// A gateway before one backend, in the set.
pub fn announced(server: &ZooKeeper, echoes: &Echoes, at: usize) -> Gateway {
    let backend = echoes.addr(at);
    let yaml = format!(
        "admin: {{port: 0}}\nannouncers: [{{kind: io.l5d.serversets, sessionTimeoutMs: 2000, {}}}]\n\
         listeners: [{{name: in, port: 0, ip: 0.0.0.0, dst: /web, announce: [/#/io.l5d.serversets/inner]}}]\n\
         clients: [{{protocol: framed}}]\ndtab: /svc => /$/inet/{}/{}\n",
        server.addrs(),
        backend.ip(),
        backend.port()
    );
    Gateway::of_yaml(env!("CARGO_BIN_EXE_muxgate"), &yaml)
}

/// What stands in the set: the nodes' names, and what they hold.
async fn set(session: &Session) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for child in session.children(SET).await.expect("asked").unwrap_or_default() {
        if let Some((content, _)) = session.read(&format!("{SET}/{child}")).await.expect("asked") {
            found.push((child, serde_json::from_slice(&content).expect("JSON")));
        }
    }
    found
}

async fn until_members(session: &Arc<Session>, what: &str, look: impl Fn(&[(String, Value)]) -> bool) {
    until(what, || async { look(&set(session).await).then_some(()) }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_is_found_by_another_and_leaves_first() {
    let mut server = ZooKeeper::start().await;
    let echoes = Echoes::start(2).await;
    let session = client(&server).await;
    let (one, two) = (announced(&server, &echoes, 0), announced(&server, &echoes, 1));
    until_members(&session, "two members", |set| set.len() == 2).await;
    for (node, content) in set(&session).await {
        assert!(node.starts_with("member_00000000"), "{node}");
        let port = content["serviceEndpoint"]["port"].as_u64().expect("a port");
        let ports = [&one, &two].map(|gateway| u64::from(gateway.addr.port()));
        assert!(ports.contains(&port), "the real port: {content}");
        // The address on the way to ZooKeeper, which is here.
        let address = format!("127.0.0.1:{port}").parse().expect("an address");
        let wanted: Value = serde_json::from_slice(&member(address, "ALIVE", &[])).expect("JSON");
        assert_eq!(content, wanted);
    }
    let outer = super::gateway(&server, "/svc/web => /#/io.l5d.serversets/discovery/inner");
    let mut drill = Drill::start(outer.addr);
    drill.step("two gateways behind a gateway", async {}).await;
    drill.traffic(&echoes, &[0, 1]).await;

    let leave = async {
        one.proc.terminate();
        until_members(&session, "one member", |set| set.len() == 1).await;
    };
    drill.step("one gets SIGTERM", leave).await;
    drill.traffic(&echoes, &[1]).await;
    let log = one.proc.err.all();
    let at = |word: &str| log.iter().position(|line| line.contains(word));
    assert!(at("left the set").is_some(), "{log:#?}");

    drill.step("ZooKeeper dies", async { server.kill() }).await;
    drill.step("and comes back with its data", server.restart()).await;
    let session = client(&server).await;
    until_members(&session, "one member still", |set| set.len() == 1).await;

    let one = announced(&server, &echoes, 0);
    drill.step("one comes back", until_members(&session, "two members", |set| set.len() == 2)).await;
    drill.traffic(&echoes, &[0, 1]).await;
    let before: Vec<_> = set(&session).await.into_iter().map(|(node, _)| node).collect();
    let pause = async {
        one.proc.freeze();
        until_members(&session, "one member", |set| set.len() == 1).await;
    };
    // Calls that it holds wait for it; others do not find it any more.
    pause.await;
    one.proc.thaw();
    drill.step("one stood still until its session was over", async {}).await;
    until_members(&session, "two members again", |set| set.len() == 2).await;
    let after: Vec<_> = set(&session).await.into_iter().map(|(node, _)| node).collect();
    assert_ne!(before, after, "it has joined anew");
    drill.traffic(&echoes, &[0, 1]).await;
    drill.end().await;
    for gateway in [outer, one, two] {
        gateway.stop();
    }
}

/// An ensemble that is not there stops nobody.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_announced_is_served_all_the_same() {
    let mut server = ZooKeeper::start().await;
    server.kill();
    let echoes = Echoes::start(1).await;
    let gateway = announced(&server, &echoes, 0);
    assert_eq!(gateway.refusal("/web").await, None);
    let page = until("a failure", || async {
        let (_, page) = gateway.get("/metrics").await;
        page.contains(r#"muxgate_listener_announcements_total{listener="in",result="failed"}"#)
            .then_some(page)
    })
    .await;
    assert!(!page.contains(r#"result="joined""#));
    server.restart().await;
    let session = client(&server).await;
    until_members(&session, "a member", |set| set.len() == 1).await;
    gateway.stop();
    until_members(&session, "no member", <[_]>::is_empty).await;
}
