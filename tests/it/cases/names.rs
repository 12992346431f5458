//! BC-16: unions with branches that lead nowhere.

use crate::support::{Disco, House, echo};
use muxgate_testkit::{Backend, Caller, mux, until};
use serde_json::Value;

const FIRST: &str = "/srv => /#/fs; /host => /srv & /srv/absent; /svc => /host";
const FAILING: &str = "/srv => /#/fs; /host => /srv & /$/fail; /svc => /host";
const NOWHERE: &str = "/srv => /#/fs; /host => 3 * /srv/absent & 1 * /srv/missing; /svc => /host";

async fn house(disco: &Disco, dtab: &str) -> House {
    let listener = "admin: {port: 0}\nlisteners: [{name: in, port: 0, dst: /web}]\n";
    House::start(&format!("{}{listener}dtab: '{dtab}'\n", disco.namer())).await
}

async fn call(client: &mut Caller, n: usize) {
    client.send(2, &echo("/web", &n.to_string())).await;
    let (_, answer) = client.answer().await.expect("an answer");
    assert_eq!((answer.status, answer.text()), (mux::OK, n.to_string()));
}

/// The texts of all leaves, and other ends, in a delegation tree.
fn ends(tree: &Value) -> String {
    tree.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn bc_16_union_with_negative_branch() {
    let (one, two, other) = (Backend::start().await, Backend::start().await, Backend::start().await);
    let disco = Disco::new();
    disco.put("web", &[one.addr(), two.addr()]);

    for dtab in [FIRST, FAILING] {
        let house = house(&disco, dtab).await;
        let dry = house.pages.json("/delegator.json?path=/svc/web").await;
        let ports = [one.addr().port().to_string(), two.addr().port().to_string()];
        assert!(ports.iter().all(|port| ends(&dry).contains(port)), "before any call: {dry:#}");
        let mut client = house.mux().await;
        for n in 0..100 {
            call(&mut client, n).await;
        }
        assert_eq!(dry, house.pages.json("/delegator.json?path=/svc/web").await, "and after");
    }
    assert_eq!(one.calls().len() + two.calls().len(), 200);

    nowhere(&disco).await;
    moves(&disco, &other).await;
}

/// All branches are negative.
async fn nowhere(disco: &Disco) {
    let house = house(disco, NOWHERE).await;
    let mut client = house.mux().await;
    client.send(2, &echo("/web", "x")).await;
    let (_, answer) = client.answer().await.expect("an answer");
    assert_eq!(answer.status, mux::ERROR);
    let text = answer.text();
    assert!(text.contains("no such name"), "{text}");
    for path in ["/svc/web", "/host/web", "/srv/absent/web", "/srv/missing/web", "/#/fs/absent/web"] {
        assert!(text.contains(path), "{path} is not in: {text}");
    }
    let dry = house.pages.json("/delegator.json?path=/svc/web").await;
    assert!(ends(&dry).contains("neg"), "{dry:#}");
}

/// A branch comes to life and goes again.
async fn moves(disco: &Disco, other: &Backend) {
    let house = house(disco, FIRST).await;
    let mut client = house.mux().await;
    call(&mut client, 0).await;
    disco.put("absent", &[other.addr()]);
    let port = other.addr().port().to_string();
    // The table holds /srv/absent/web: the file "absent", and "web" is residual.
    until("the new branch", || async {
        let dry = house.pages.json("/delegator.json?path=/svc/web").await;
        ends(&dry).contains(&port).then_some(())
    })
    .await;
    let mut n = 0;
    while other.calls().is_empty() {
        n += 1;
        assert!(n < 10_000, "no call to the new branch");
        call(&mut client, n).await;
    }
    let before = other.calls().len();
    for n in 0..400 {
        call(&mut client, n).await;
    }
    let new = other.calls().len() - before;
    assert!((150..=250).contains(&new), "{new} of 400");

    disco.remove("absent");
    until("the end of the new branch", || async {
        let dry = house.pages.json("/delegator.json?path=/svc/web").await;
        (!ends(&dry).contains(&port)).then_some(())
    })
    .await;
    // Live traffic may be a moment behind the page; no call fails meanwhile.
    let mut quiet = 0;
    let mut seen = other.calls().len();
    while quiet < 100 {
        call(&mut client, quiet).await;
        let now = other.calls().len();
        quiet = if now == seen { quiet + 1 } else { 0 };
        seen = now;
    }
}
