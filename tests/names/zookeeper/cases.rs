//! Field case BC-14, and what of a member is meant.

use super::{client, expire, gateway, member, never_seen, put};
use muxgate::outside::zk::{Kind, Params, State, Zk};
use muxgate_testkit::drill::{Drill, Echoes};
use muxgate_testkit::{Gateway, ZooKeeper, until};
use tokio::time::Instant;
use zookeeper_client::{Acls, Client};

/// Calls during which every packet to ZooKeeper is lost: some ten seconds, where the case has sixty. The session lives for two.
const LOST: usize = 8000;

#[tokio::test(flavor = "multi_thread")]
async fn bc_14_zookeeper_that_cannot_be_asked_keeps_the_last_answer() {
    let server = ZooKeeper::start().await;
    let echoes = Echoes::start(3).await;
    {
        let session = client(&server).await;
        put(&session, "/prod/web", &[echoes.addr(0), echoes.addr(1)]).await;
    }
    let gateway = gateway(&server, "");
    let mut drill = Drill::start(gateway.addr);
    drill.step("all is well", async {}).await;
    drill.traffic(&echoes, &[0, 1]).await;

    let lost = async {
        server.freeze();
        drill.more(LOST / 2).await;
        never_seen(&gateway, "/ghost").await;
        drill.more(LOST / 2).await;
    };
    let began = Instant::now();
    lost.await;
    drill.step("every packet is lost", async {}).await;
    println!("lost for {:?}", began.elapsed());
    let (_, names) = gateway.get("/names.json").await;
    assert!(names.contains("served from the last good answer since"), "{names}");
    drill.traffic(&echoes, &[0, 1]).await;

    server.thaw();
    let connect = || async { Client::connect(&server.addr().to_string()).await.ok() };
    let owner = until("a session", connect).await;
    owner.auth("digest", b"owner:secret").await.expect("somebody");
    let forbid = async {
        owner.set_acl("/prod/web", &Acls::creator_all(), None).await.expect("a right");
        owner.set_acl("/prod", &Acls::creator_all(), None).await.expect("a right");
        expire(&server, &gateway).await;
        never_seen(&gateway, "/ghost2").await;
        drill.more(500).await;
    };
    forbid.await;
    drill.step("the session is expired, and nobody may read", async {}).await;
    drill.traffic(&echoes, &[0, 1]).await;

    let change = async {
        owner.delete("/prod/web/member_0000000000", None).await.expect("a deletion");
        owner.delete("/prod/web/member_0000000001", None).await.expect("a deletion");
        let options = zookeeper_client::CreateMode::Persistent.with_acls(Acls::anyone_all());
        let new = member(echoes.addr(2), "ALIVE", &[]);
        owner.create("/prod/web/member_0000000002", &new, &options).await.expect("a member");
        owner.set_acl("/prod", &Acls::anyone_all(), None).await.expect("a right");
        owner.set_acl("/prod/web", &Acls::anyone_all(), None).await.expect("a right");
        let back = Instant::now();
        super::used(&echoes, 2).await;
        back.elapsed()
    };
    let took = change.await;
    drill.step("one new address in place of two", async {}).await;
    println!("in use after {took:?}");
    assert!(took < super::IN_USE_WITHIN, "{took:?}");
    drill.traffic(&echoes, &[2]).await;
    drill.end().await;
    gateway.stop();
}

/// Named endpoints, shards, what is left of a path, and an ensemble that stands in the path.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_says_which_members_and_endpoints_are_meant() {
    let server = ZooKeeper::start().await;
    let echoes = Echoes::start(3).await;
    let session = client(&server).await;
    session.make("/prod/web").await.expect("a node");
    let first = member(echoes.addr(0), "ALIVE", &[("http", echoes.addr(1))]);
    session.create("/prod/web/member_0", &first).await.expect("a member");
    let second = String::from_utf8(member(echoes.addr(2), "ALIVE", &[])).expect("a text");
    let second = second.replace("\"shard\":0", "\"shard\":7");
    session.create("/prod/web/member_1", second.as_bytes()).await.expect("a member");
    let system = format!("/svc/sys => /$/com.twitter.serverset/{}/prod", server.addr());
    let gateway = gateway(&server, &system);
    for (name, wanted) in [
        ("/web", &[0, 2][..]),
        ("/web:http", &[1]),
        ("/web#7", &[2]),
        ("/web#0", &[0]),
        ("/web:http#0", &[1]),
        ("/web:http/more/of/it", &[1]),
        ("/sys/web", &[0, 2]),
        ("/sys/web:http", &[1]),
        ("/sys/web#7", &[2]),
    ] {
        let before = echoes.counts();
        for _ in 0..20 {
            assert_eq!(gateway.refusal(name).await, None, "{name}");
        }
        let got: Vec<_> = echoes.counts().iter().zip(before).map(|(now, then)| now - then).collect();
        let used: Vec<_> = (0..got.len()).filter(|at| got[*at] > 0).collect();
        assert_eq!(used, wanted, "{name}: {got:?}");
    }
    for unknown in ["/web:admin", "/web#8", "/web:http#7", "/nobody", "/sys/nobody", "/sys/web/more"] {
        let refusal = gateway.refusal(unknown).await.expect("nobody is meant");
        assert!(refusal.contains("no such name"), "{unknown}: {refusal}");
    }
    let refusal = gateway.refusal("/web#x").await.expect("no shard");
    assert!(refusal.contains("want <node>[:<endpoint>][#<shard>]"), "{refusal}");
    gateway.stop();
}

/// A set that only its owner may read.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_says_who_it_is() {
    let server = ZooKeeper::start().await;
    let echoes = Echoes::start(1).await;
    let session = client(&server).await;
    put(&session, "/prod/web", &[echoes.addr(0)]).await;
    let owner = Client::connect(&server.addr().to_string()).await.expect("a session");
    owner.auth("digest", b"owner:secret").await.expect("somebody");
    for node in ["/prod/web/member_0000000000", "/prod/web"] {
        owner.set_acl(node, &Acls::creator_all(), None).await.expect("a right");
    }
    let stranger = gateway(&server, "");
    let refusal = stranger.refusal("/web").await.expect("it may not read");
    assert!(refusal.contains("cannot be asked") && refusal.contains("not authorized"), "{refusal}");
    let known = Gateway::of_yaml(
        env!("CARGO_BIN_EXE_muxgate"),
        &format!(
            "admin: {{port: 0}}\nlisteners: [{{port: 0, dst: /web}}]\nclients: [{{protocol: framed}}]\n\
             namers: [{{kind: io.l5d.serversets, authInfo: {{scheme: digest, auth: \"owner:secret\"}}, {}}}]\n\
             dtab: /svc => /#/io.l5d.serversets/prod\n",
            server.addrs()
        ),
    );
    assert_eq!(known.refusal("/web").await, None);
    for gateway in [stranger, known] {
        gateway.stop();
    }
}

/// The client that all of this stands on.
#[tokio::test(flavor = "multi_thread")]
async fn an_ensemble_says_how_it_is() {
    let mut server = ZooKeeper::start().await;
    client(&server).await.make("/below").await.expect("a node");
    let mut params = Params::parse(&server.addr().to_string()).expect("an address");
    params.chroot = "/below".into();
    let zk = Zk::new(params);
    assert_eq!(zk.state(), State::Idle);
    let session = zk.session().await.expect("a session");
    session.create("/web", b"x").await.expect("a node");
    assert_eq!(zk.state(), State::Connected);
    assert!(client(&server).await.stat("/below/web").await.expect("asked").is_some());
    server.kill();
    session.until_lost().await;
    assert!(matches!(zk.state(), State::Away(..)));
    let refused = session.read("/web").await.expect_err("nobody is there");
    assert_eq!(refused.kind, Kind::Away);
    assert!(zk.session().await.is_err());
    let State::Away(since, why) = zk.state() else { panic!("it is away") };
    assert!(why.contains("cannot be asked"), "{why}");
    server.restart().await;
    let again = until("a session", || async { zk.session().await.ok() }).await;
    assert_eq!(&again.read("/web").await.expect("asked").expect("it is there").0[..], b"x");
    assert_eq!(zk.state(), State::Connected);
    assert!(since.elapsed() > std::time::Duration::ZERO);
    drop((session, again));
    assert_eq!(zk.state(), State::Idle);
}
