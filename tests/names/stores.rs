//! Two stores on one ZooKeeper, three gateways: a store is killed in the midst of a hundred changes, and nothing is lost.

use muxgate::outside::http::{Credentials, Http};
use muxgate_testkit::drill::{Drill, Echoes};
use muxgate_testkit::{Gateway, Proc, ZooKeeper, until};
use serde_json::Value;
use std::time::Duration;

/// Changes, and the one before which a store is killed.
const CHANGES: usize = 100;
const KILL_BEFORE: usize = 50;

/// How long an answer may take, on a machine that builds beside it.
const WITHIN: Duration = Duration::from_secs(30);

const PROGRAM: &str = env!("CARGO_BIN_EXE_muxgate");

struct Store {
    proc: Proc,
    http: Http,
    url: String,
    _folder: tempfile::TempDir,
}

impl Store {
    fn start(server: &ZooKeeper) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("store.yaml");
        let text = format!("listen: 127.0.0.1:0\nstorage:\n  kind: io.l5d.zk\n  {}\n", server.addrs());
        std::fs::write(&file, text).expect("a file");
        let proc = Proc::start("store", PROGRAM, ["store", &file.to_string_lossy()], &[]);
        let url = proc.wait_line("its address", WITHIN, |line| {
            line.strip_prefix("store ").map(|address| format!("http://{address}"))
        });
        let http = Http::new(&url, None, Credentials::None).expect("an address");
        Self { proc, http, url, _folder: folder }
    }

    /// Writes a table; its tag, if the store says that it is written.
    async fn put(&self, dtab: &str) -> Result<String, String> {
        let headers = [(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/dtab"))];
        let headers = headers.into_iter().collect();
        let path = "/api/1/dtabs/shop";
        let answer = self.http.send(http::Method::PUT, path, headers, dtab.to_owned(), WITHIN).await;
        let answer = answer.map_err(|error| error.text)?;
        let tag = answer.headers.get(http::header::ETAG).and_then(|tag| tag.to_str().ok());
        match answer.status.is_success() {
            true => Ok(tag.expect("a tag").to_owned()),
            false => Err(format!("{} {}", answer.status, String::from_utf8_lossy(&answer.body))),
        }
    }

    async fn json(&self, path: &str) -> Value {
        let answer = self.http.json::<Value>(path, WITHIN).await;
        answer.unwrap_or_else(|error| panic!("{error}\n{}", self.proc.report())).0
    }
}

fn gateway(stores: [&Store; 2]) -> Gateway {
    let [first, second] = stores.map(|store| &store.url);
    let yaml = format!(
        "admin: {{port: 0}}\nlisteners: [{{port: 0, dst: /s/probe}}]\n\
         store: {{addresses: ['{first}', '{second}'], namespace: shop}}\n"
    );
    Gateway::of_yaml(PROGRAM, &yaml)
}

async fn version(gateway: &Gateway) -> Option<String> {
    let (_, text) = gateway.get("/dtab.json").await;
    let shown: Value = serde_json::from_str(&text).ok()?;
    shown["store"]["version"].as_str().map(str::to_owned)
}

/// What is in a query.
fn escaped(tag: &str) -> String {
    tag.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_dies_in_the_midst_of_a_hundred_changes() {
    let (server, echoes) = (ZooKeeper::start().await, Echoes::start(2).await);
    let (first, second) = (Store::start(&server), Store::start(&server));
    let table = |at: usize| {
        let addr = echoes.addr(at % 2);
        format!(
            "/svc => / ; /change => /$/inet/127.0.0.1/{} ; /s/probe => /$/inet/{}/{}",
            at + 1,
            addr.ip(),
            addr.port()
        )
    };
    let mut acknowledged =
        vec![until("the first table", || async { first.put(&table(CHANGES)).await.ok() }).await];
    let gateways = [gateway([&first, &second]), gateway([&second, &first]), gateway([&first, &second])];
    let all = || async {
        let listed = second.json("/api/1/gateways").await;
        (listed.as_array().map(Vec::len) == Some(3)).then_some(())
    };
    until("three gateways that report to the second store", all).await;
    let mut drills: Vec<_> = gateways.iter().map(|gateway| Drill::start(gateway.addr)).collect();
    for at in 0..CHANGES {
        if at == KILL_BEFORE {
            first.proc.kill();
        }
        // One after the other, by both as long as there are both.
        let written = if at % 2 == 0 { first.put(&table(at)).await } else { second.put(&table(at)).await };
        let tag = match written {
            Ok(tag) => tag,
            Err(_) if at >= KILL_BEFORE => second.put(&table(at)).await.expect("the other store takes it"),
            Err(error) => panic!("change {at}: {error}"),
        };
        acknowledged.push(tag);
    }
    let last = acknowledged.last().expect("changes").clone();
    let path = format!("/api/1/dtabs/shop/propagation?version={}&within=30", escaped(&last));
    let shown = second.json(&path).await;
    assert_eq!(shown["complete"], true, "{shown}");
    assert_eq!(shown["gateways"].as_array().map(Vec::len), Some(3), "{shown}");
    for (drill, gateway) in drills.iter_mut().zip(&gateways) {
        assert_eq!(version(gateway).await.as_ref(), Some(&last));
        drill.step("a hundred changes, one store killed", async {}).await;
        drill.traffic(&echoes, &[(CHANGES - 1) % 2]).await;
    }
    let history = second.json("/api/1/dtabs/shop/history?limit=1000").await;
    let mut versions: Vec<_> =
        history.as_array().expect("a list").iter().filter_map(|past| past["version"].as_str()).collect();
    versions.reverse();
    let kept: Vec<_> = versions.into_iter().filter(|tag| acknowledged.iter().any(|a| a == tag)).collect();
    assert_eq!(kept, acknowledged, "every change that was acknowledged, in order");
    println!("{} changes acknowledged, all in the history, in force in 3 gateways", acknowledged.len());
    for drill in drills {
        drill.end().await;
    }
}
