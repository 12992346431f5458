//! Gateways that follow a store, each a process of its own.

use super::{Store, folder, tag};
use http::StatusCode;
use muxgate_testkit::drill::{Drill, Echoes};
use muxgate_testkit::{Gateway, until};
use serde_json::Value;
use std::net::SocketAddr;

const PROGRAM: &str = env!("CARGO_BIN_EXE_muxgate");

/// A table by which calls without a name of their own go there.
fn to(addr: SocketAddr) -> String {
    format!("/svc => /$/inet/{}/{}", addr.ip(), addr.port())
}

async fn put(store: &Store, namespace: &str, table: &str) -> String {
    let answer = store.put(namespace, table).await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT, "{}", super::text(&answer));
    tag(&answer)
}

/// Waits until all gateways run this version, and there are so many.
async fn everywhere(store: &Store, version: &str, gateways: usize) {
    let path = format!("/api/1/dtabs/shop/propagation?within=30&version={}", version.replace('+', "%2B"));
    let complete = || async {
        let shown = store.json(&path).await;
        let all = shown["gateways"].as_array().map(Vec::len) == Some(gateways);
        (all && shown["complete"] == true).then_some(())
    };
    until("the version everywhere", complete).await;
}

async fn shown(gateway: &Gateway) -> Value {
    let (status, text) = gateway.get("/dtab.json").await;
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).expect("JSON")
}

fn follow(store: &Store, more: &[&str]) -> Gateway {
    let mut args = vec!["--store", &*store.base, "--namespace", "shop"];
    args.extend(more);
    Gateway::start(PROGRAM, &args)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_reaches_all_gateways_also_after_the_store_was_frozen_or_killed() {
    let (data, echoes) = (folder(), Echoes::start(2).await);
    let store = Store::start(data.path());
    let address = store.base.trim_start_matches("http://").to_owned();
    put(&store, "shop", &to(echoes.addr(0))).await;
    put(&store, "other", "/svc => !").await;
    let own = to(echoes.addr(0));
    let gateways = [follow(&store, &[]), follow(&store, &[]), follow(&store, &["--dtab", &own])];
    let first = put(&store, "shop", &format!("{} ; /more => /svc", to(echoes.addr(0)))).await;
    everywhere(&store, &first, 3).await;
    let mut drill = Drill::start(gateways[0].addr);
    let second = drill.step("a change", put(&store, "shop", &to(echoes.addr(1)))).await;
    drill.step("everywhere", everywhere(&store, &second, 3)).await;
    drill.traffic(&echoes, &[1]).await;
    // What a gateway has of its own is laid over the store's table.
    assert!(gateways[2].refusal("/x").await.is_none());
    let dtab = shown(&gateways[2]).await["dtab"].clone();
    assert!(dtab.as_str().is_some_and(|dtab| dtab.split(';').count() == 2), "{dtab}");

    let outage = || async { (!shown(&gateways[0]).await["store"]["outageSeconds"].is_null()).then_some(()) };
    let frozen = async {
        store.proc.freeze();
        until("the outage", outage).await;
        store.proc.thaw();
    };
    drill.step("the store is frozen", frozen).await;
    let third = drill.step("it goes on", put(&store, "shop", &to(echoes.addr(0)))).await;
    drill.step("everywhere", everywhere(&store, &third, 3)).await;
    drill.traffic(&echoes, &[0]).await;

    let killed = async {
        store.proc.kill();
        until("the outage", outage).await;
    };
    drill.step("the store is killed", killed).await;
    let again = || async {
        let store = Store::run(&["--listen", &address, "--data", &data.path().to_string_lossy()]);
        let fourth = put(&store, "shop", &to(echoes.addr(1))).await;
        everywhere(&store, &fourth, 3).await;
        store
    };
    let store = drill.step("it is back, and the table changes", again()).await;
    drill.traffic(&echoes, &[1]).await;
    drill.end().await;
    gateways.into_iter().for_each(Gateway::stop);
    store.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_starts_while_the_store_is_down_runs_on_the_kept_table() {
    let (data, state, echoes) = (folder(), folder(), Echoes::start(1).await);
    let store = Store::start(data.path());
    let version = put(&store, "shop", &to(echoes.addr(0))).await;
    let yaml = format!(
        "admin: {{port: 0}}\nstateDir: {}\nlisteners: [{{port: 0, dst: /x}}]\n\
         store: {{addresses: ['{}'], namespace: shop}}\n",
        state.path().display(),
        store.base
    );
    let gateway = Gateway::of_yaml(PROGRAM, &yaml);
    everywhere(&store, &version, 1).await;
    gateway.stop();
    store.proc.kill();

    let gateway = Gateway::of_yaml(PROGRAM, &yaml);
    assert_eq!(gateway.refusal("/x").await, None);
    assert_eq!(gateway.get("/ready").await, (200, "ready\n".into()));
    let away = || async {
        let store = shown(&gateway).await["store"].clone();
        store["lastError"].is_string().then_some(store)
    };
    let table = until("the store is away", away).await;
    assert_eq!((&table["from"], &table["version"]), (&"disk".into(), &version.as_str().into()), "{table}");
    assert!(table["outageSeconds"].is_u64() && table["sinceMs"].is_u64(), "{table}");
    let mut drill = Drill::start(gateway.addr);
    drill.step("started with the store down", async {}).await;
    drill.end().await;
    gateway.stop();
}
