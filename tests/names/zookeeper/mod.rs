//! A real ZooKeeper: server sets found and announced, tables kept.

mod announce;
mod cases;
mod finagle;
mod storage;

use muxgate::outside::zk::{Params, Session, Zk};
use muxgate_testkit::drill::{Drill, Echoes};
use muxgate_testkit::{Gateway, ZooKeeper, until};
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// A returned server must be believed within this time.
const IN_USE_WITHIN: Duration = Duration::from_secs(5);
/// A name that nobody knows fails within the binding limit.
const BINDING: Duration = Duration::from_secs(10);

/// A client that writes.
async fn client(server: &ZooKeeper) -> Arc<Session> {
    let zk = Zk::new(Params::parse(&server.addr().to_string()).expect("an address"));
    until("a session", || async { zk.session().await.ok() }).await
}

/// A member as services write it.
fn member(at: SocketAddr, status: &str, more: &[(&str, SocketAddr)]) -> Vec<u8> {
    let endpoint = |at: SocketAddr| json!({"host": at.ip().to_string(), "port": at.port()});
    let more: serde_json::Map<_, _> =
        more.iter().map(|(name, at)| ((*name).to_owned(), endpoint(*at))).collect();
    let json =
        json!({"serviceEndpoint": endpoint(at), "additionalEndpoints": more, "status": status, "shard": 0});
    json.to_string().into_bytes()
}

/// Puts a set of members, and nothing else, below a node.
async fn put(session: &Session, node: &str, members: &[SocketAddr]) {
    session.make(node).await.expect("a node");
    for (number, at) in members.iter().enumerate() {
        add(session, node, number, *at).await;
    }
}

async fn add(session: &Session, node: &str, number: usize, at: SocketAddr) {
    let path = format!("{node}/member_{number:010}");
    session.create(&path, &member(at, "ALIVE", &[])).await.expect("a member");
}

fn gateway(server: &ZooKeeper, more: &str) -> Gateway {
    let yaml = format!(
        "admin: {{port: 0}}\nlisteners: [{{name: in, port: 0, dst: /web}}]\nclients: [{{protocol: framed}}]\n\
         namers: [{{kind: io.l5d.serversets, sessionTimeoutMs: 2000, {}}}]\n\
         dtab: /svc => /#/io.l5d.serversets/prod ; {more}\n",
        server.addrs(),
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

#[tokio::test(flavor = "multi_thread")]
async fn no_call_fails_whatever_becomes_of_zookeeper() {
    let mut server = ZooKeeper::start().await;
    let echoes = Echoes::start(4).await;
    let session = client(&server).await;
    put(&session, "/prod/web", &[echoes.addr(0)]).await;
    let gateway = gateway(&server, "");
    let mut drill = Drill::start(gateway.addr);

    drill.step("start with one member", async {}).await;
    drill.step("add a member", add(&session, "/prod/web", 1, echoes.addr(1))).await;
    drill.traffic(&echoes, &[0, 1]).await;
    let vector = format!(r#"{{"vector":[{{"select":"inet={}","weight":9.0}}]}}"#, echoes.addr(1));
    let weigh = async { session.create("/prod/web/vector_1", vector.as_bytes()).await.expect("a vector") };
    drill.step("weigh it nine times", weigh).await;
    until("the shares", || async {
        let shares = drill.shares(&echoes, 400).await;
        println!("shares {shares:.2?}");
        // A balancer that looks at load, too, moves some calls from the heavier one.
        (shares[1] > 0.65 && shares[0] > 0.02).then_some(())
    })
    .await;
    let stop = async {
        let content = member(echoes.addr(0), "STOPPING", &[]);
        session.set("/prod/web/member_0000000000", &content, None).await.expect("a change");
    };
    drill.step("one is stopping", stop).await;
    drill.traffic(&echoes, &[1]).await;
    let remove = async { session.delete("/prod/web/member_0000000000", None).await.expect("a deletion") };
    drill.step("it is gone", remove).await;
    drill.step("one joins", add(&session, "/prod/web", 2, echoes.addr(2))).await;
    drill.traffic(&echoes, &[1, 2]).await;
    let unread = async { session.create("/prod/web/member_x", b"hello").await.expect("a node") };
    drill.step("one writes nonsense", unread).await;
    drill.traffic(&echoes, &[1, 2]).await;

    drill.step("kill the server", async { server.kill() }).await;
    drill.step("ask for a name never seen", never_seen(&gateway, "/ghost")).await;
    drill.traffic(&echoes, &[1, 2]).await;
    drill.step("bring it back with its data", server.restart()).await;
    let session = client(&server).await;
    let back = async { add(&session, "/prod/web", 3, echoes.addr(3)).await };
    drill.step("add a member", back).await;
    drill.traffic(&echoes, &[1, 2, 3]).await;

    drill.step("kill it again", async { server.kill() }).await;
    drop(session);
    drill.step("bring it back empty", server.restart_empty()).await;
    drill.more(500).await;
    drill.step("it stays empty for a while", async {}).await;
    let session = client(&server).await;
    let began = Instant::now();
    let right = async {
        put(&session, "/prod/web", &[echoes.addr(0)]).await;
        used(&echoes, 0).await;
    };
    drill.step("the set is written anew, with one other member", right).await;
    println!("in use after {:?}", began.elapsed());
    assert!(began.elapsed() < IN_USE_WITHIN);
    drill.traffic(&echoes, &[0]).await;

    drill.step("the gateway stands still until its session is expired", expire(&server, &gateway)).await;
    drill.step("add a member", add(&session, "/prod/web", 1, echoes.addr(1))).await;
    drill.traffic(&echoes, &[0, 1]).await;
    drill.end().await;
    gateway.stop();
}

/// Lets a gateway stand still until ZooKeeper has ended its session.
async fn expire(server: &ZooKeeper, gateway: &Gateway) {
    let number =
        |line: &String| Some(line.split_once("session established: ")?.1.split(' ').next()?.to_owned());
    let alive = async |session: &str| Some(server.says("cons").await?.contains(&format!("sid={session}")));
    let session = until("the gateway's session", || async {
        let session = gateway.proc.err.all().iter().rev().find_map(number)?;
        alive(&session).await?.then_some(session)
    });
    let session = session.await;
    gateway.proc.freeze();
    until("its end", || async { alive(&session).await.filter(|alive| !*alive) }).await;
    gateway.proc.thaw();
}

/// Waits until one of the backends gets calls.
async fn used(echoes: &Echoes, at: usize) {
    let before = echoes.counts()[at];
    until("calls", || async { (echoes.counts()[at] > before).then_some(()) }).await;
}
