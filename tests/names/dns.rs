//! DNS, with a real dnsmasq: addresses of hosts and SRV records.

use muxgate_testkit::dnsmasq::{Dnsmasq, host, srv, ttl};
use muxgate_testkit::drill::{Drill, Echoes};
use muxgate_testkit::{Gateway, until};
use tokio::time::Instant;

const GATE: &str = env!("CARGO_BIN_EXE_muxgate");

/// The name whose SRV records are asked for.
const USERS: &str = "_mux._tcp.users.test";

/// A gateway that asks this server, with a time limit that makes an outage short to notice.
fn gateway(server: &Dnsmasq, dtab: &str) -> Gateway {
    let addr = server.addr();
    Gateway::of_yaml(
        GATE,
        &format!(
            "dns: {{servers: ['{addr}'], timeoutMs: 500}}\nnamers: [{{kind: io.l5d.dnssrv, refreshIntervalSeconds: 2}}]\n\
             admin: {{port: 0}}\nlisteners: [{{port: 0, dst: /s/probe}}]\ndtab: '{dtab}'\n"
        ),
    )
}

/// Waits until a name that nobody has called before is refused for a reason with this in it; a nack has no text.
async fn refused(gateway: &Gateway, name: &str, why: &str) {
    let what = format!("{name} is refused: {why}");
    until(&what, || async {
        let text = gateway.refusal(name).await.expect("nobody is there");
        let fits = text.contains(why) && (text.is_empty() == why.is_empty());
        fits.then(|| println!("  {name}: {text}"))
    })
    .await;
}

/// The server is away, and comes back without what it knew, and then with `right`, in which number 2 is new.
async fn outage(
    gateway: &Gateway,
    drill: &mut Drill,
    server: &mut Dnsmasq,
    echoes: &Echoes,
    right: &[String],
    unknown: &str,
) {
    drill.step("kill the server", async { server.kill() }).await;
    drill
        .step("a name never seen, during the outage", refused(gateway, "/unseen", "DNS cannot be asked"))
        .await;
    drill
        .step("a server that answers nothing", async {
            server.restart(right);
            server.freeze();
        })
        .await;
    drill
        .step("a name never seen, without any answer", refused(gateway, "/frozen", "DNS cannot be asked"))
        .await;
    drill.step("back, and empty", async { server.restart(&[]) }).await;
    drill.step("a name never seen, of an empty server", refused(gateway, "/empty", unknown)).await;
    drill.more(2000).await;
    drill.step("some seconds of doubt", async {}).await;
    let began = Instant::now();
    drill.step("back, and right", async { server.restart(right) }).await;
    drill.traffic(echoes, &[1, 2]).await;
    println!("  the new member had calls after {:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_of_a_host() {
    let echoes = Echoes::on_one_port(3).await;
    let a = |at: usize| host("echo.test", echoes.addr(at).ip(), 1);
    let mut server = Dnsmasq::start(&[a(0)]);
    let port = echoes.addr(0).port();
    let gateway = gateway(
        &server,
        &format!(
            "/svc => / ; /s/probe => /$/inet/echo.test/{port} ; /unseen => /$/inet/unseen.test/1 ; \
             /frozen => /$/inet/frozen.test/1 ; /empty => /$/inet/empty.test/1"
        ),
    );
    let mut drill = Drill::start(gateway.addr);
    drill.step("one address", async {}).await;
    drill.traffic(&echoes, &[0]).await;
    drill.step("add", async { server.restart(&[a(0), a(1)]) }).await;
    drill.traffic(&echoes, &[0, 1]).await;
    drill.step("remove", async { server.restart(&[a(1)]) }).await;
    drill.traffic(&echoes, &[1]).await;
    outage(&gateway, &mut drill, &mut server, &echoes, &[a(1), a(2)], "").await;
    drill.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn records_of_a_service() {
    let echoes = Echoes::start(4).await;
    let fixed = || vec![ttl(1), host("a.test", [127, 0, 0, 1], 1)];
    let with = |records: &[(usize, u16, u16)]| {
        let record = |&(at, priority, weight): &(usize, u16, u16)| {
            srv(USERS, "a.test", echoes.addr(at).port(), priority, weight)
        };
        fixed().into_iter().chain(records.iter().map(record)).collect::<Vec<_>>()
    };
    let mut server = Dnsmasq::start(&with(&[(0, 0, 5)]));
    let gateway = gateway(
        &server,
        &format!(
            "/svc => / ; /srv => /#/io.l5d.dnssrv ; /s/probe => /srv/{USERS} ; \
             /unseen => /srv/_x._tcp.unseen.test ; /frozen => /srv/_x._tcp.frozen.test ; /empty => /srv/_x._tcp.empty.test"
        ),
    );
    let mut drill = Drill::start(gateway.addr);
    drill.step("one record", async {}).await;
    drill.step("add", async { server.restart(&with(&[(0, 0, 5), (1, 0, 5)])) }).await;
    drill.traffic(&echoes, &[0, 1]).await;
    drill
        .step("weights 60, 20, 20", async { server.restart(&with(&[(0, 0, 60), (1, 0, 20), (2, 0, 20)])) })
        .await;
    drill.traffic(&echoes, &[0, 1, 2]).await;
    let shares = drill.shares(&echoes, 2000).await;
    println!("  shares {shares:.3?}");
    // The balancer looks at latencies as well, so under concurrent calls shares are more even than weights.
    let [heavy, light, other, none] = shares[..] else { panic!("{shares:?}") };
    assert!(heavy > 1.3 * light && heavy > 1.3 * other && light > 0.05 && other > 0.05, "{shares:?}");
    assert!(none == 0.0, "{shares:?}");
    drill.step("remove", async { server.restart(&with(&[(1, 0, 5), (3, 9, 5)])) }).await;
    drill.traffic(&echoes, &[1]).await;
    drill.step("the preferred ones are gone", async { server.restart(&with(&[(3, 9, 5)])) }).await;
    drill.traffic(&echoes, &[3]).await;
    drill.step("and back", async { server.restart(&with(&[(1, 0, 5), (3, 9, 5)])) }).await;
    drill.traffic(&echoes, &[1]).await;
    let right = with(&[(1, 0, 1), (2, 0, 1), (3, 9, 5)]);
    outage(&gateway, &mut drill, &mut server, &echoes, &right, "no such name").await;
    drill.end().await;
}
