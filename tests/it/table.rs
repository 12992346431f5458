//! The base table from a store: changes under load, stores that die, freeze, come back empty, and none at all.

use crate::support::{House, inet};
use muxgate_testkit::drill::{Drill, Echoes};
use muxgate_testkit::{Tables, until};
use serde_json::Value;
use std::net::SocketAddr;
use tokio::time::Instant;

/// Standard deviations that a share may be off: once in some million runs.
const SIGMAS: f64 = 5.0;

/// A gateway that follows the table `shop` of these stores. `more` is further lines of its file.
async fn follower(stores: &[&Tables], more: &str) -> House {
    let urls: Vec<_> = stores.iter().map(|store| store.url()).collect();
    let yaml = format!(
        "admin: {{port: 0}}\nlisteners: [{{name: in, port: 0, dst: /s/probe}}]\n\
         store: {{addresses: ['{}'], namespace: shop}}\n{more}\n",
        urls.join("', '")
    );
    House::start(&yaml).await
}

/// A table by which `/s/probe` is this.
fn table(probe: &str) -> String {
    format!("/svc => / ; /s/probe => {probe}")
}

fn to(address: SocketAddr) -> String {
    table(&inet(address))
}

/// Waits until the store has been told that this version is in force.
async fn reported(store: &Tables, version: u64) {
    let seen = || async { (store.reported("shop").last() == Some(&Some(version))).then_some(()) };
    until("the report of the version", seen).await;
}

async fn shown(house: &House) -> Value {
    house.pages.json("/dtab.json").await["store"].clone()
}

/// Whether `count` of `all` may be a share of `share`.
fn assert_share(share: f64, expected: f64, all: f64) {
    let deviation = (expected * (1.0 - expected) / all).sqrt();
    assert!((share - expected).abs() <= SIGMAS * deviation, "{share} of {all}, not {expected}");
}

#[tokio::test(flavor = "multi_thread")]
async fn traffic_shifts_by_versions_and_no_call_fails() {
    let (echoes, store) = (Echoes::start(3).await, Tables::start().await);
    let [old, new, spare] = [0, 1, 2].map(|at| inet(echoes.addr(at)));
    store.put("shop", 1, &table(&format!("1.0 * {old} & 0.0 * {new}")));
    let house = follower(&[&store], "").await;
    reported(&store, 1).await;
    let mut drill = Drill::start(house.addr);
    const CALLS: usize = 2000;
    for (version, percent) in [(2, 0), (3, 10), (4, 50), (5, 100)] {
        let share = f64::from(percent) / 100.0;
        let what = format!("{} % to the new one", percent);
        let work = async {
            store.put("shop", version, &table(&format!("{} * {old} & {share} * {new}", 1.0 - share)));
            reported(&store, version).await;
        };
        drill.step(&what, work).await;
        // Calls that were under way when the table changed have ended by now.
        let shares = drill.shares(&echoes, CALLS).await;
        println!("  of {CALLS} calls: {:.1} % and {:.1} %", 100.0 * shares[0], 100.0 * shares[1]);
        assert_share(shares[1], share, CALLS as f64);
    }
    let gone = async {
        store.put("shop", 6, &table(&format!("/named | {spare}")));
        reported(&store, 6).await;
    };
    drill.step("the name is deleted: its fallback", gone).await;
    let shares = drill.shares(&echoes, 200).await;
    assert_eq!(shares, [0.0, 0.0, 1.0]);
    drill.end().await;
    house.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_in_force_soon_and_the_file_wins() {
    let (echoes, store) = (Echoes::start(2).await, Tables::start().await);
    store.put("shop", 1, "/s/probe => ! ; /svc => /");
    let own = format!("dtab: /s/probe => /there ; /s/none => {}", inet(echoes.addr(1)));
    let house = follower(&[&store], &own).await;
    reported(&store, 1).await;
    let began = Instant::now();
    store.put("shop", 2, &format!("/svc => / ; /there => {}", inet(echoes.addr(0))));
    reported(&store, 2).await;
    println!("in force after {:?}", began.elapsed());
    let mut caller = house.mux().await;
    assert_eq!(caller.echo("/s/probe", "a").await.text(), "a");
    assert_eq!(caller.echo("/s/none", "b").await.text(), "b");
    // An error says which table it was.
    let refused = caller.echo("/s/unknown", "c").await.text();
    let table = format!("(table shop, version {})", muxgate_testkit::tables::tag(2));
    assert!(refused.contains("no such name: /svc/s/unknown") && refused.contains(&table), "{refused}");
    // What is reported beside the version: who we are, and the names in use.
    let named = || async {
        let report = store.last_report()?;
        let names = report["names"].as_array()?;
        (names.len() == 2 && names[0] == "/svc/s/none" && names[1] == "/svc/s/probe").then_some(report)
    };
    let report = until("the report of names", named).await;
    let id = report["id"].as_str().unwrap_or_default().to_owned();
    assert!(id.ends_with(&format!("/{}", house.addr)) && id.len() > house.addr.to_string().len() + 1, "{id}");
    assert_eq!(
        house.pages.json("/dtab.json").await["dtab"].as_str().map(|dtab| dtab.contains("/there")),
        Some(true)
    );
    house.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_die_freeze_and_come_back_empty_under_load() {
    let echoes = Echoes::start(2).await;
    let (first, second) = (Tables::start().await, Tables::start().await);
    for store in [&first, &second] {
        store.put("shop", 5, &to(echoes.addr(0)));
    }
    let house = follower(&[&first, &second], "").await;
    reported(&first, 5).await;
    let mut drill = Drill::start(house.addr);
    drill.step("two stores", reported(&second, 5)).await;
    let followed = |store: &Tables| {
        let (pages, url) = (house.pages, store.url());
        async move {
            let seen =
                || async { (pages.json("/dtab.json").await["store"]["store"] == url.as_str()).then_some(()) };
            until("the store that is followed", seen).await;
        }
    };
    followed(&first).await;
    let moved = async {
        first.freeze();
        followed(&second).await;
        second.put("shop", 6, &to(echoes.addr(1)));
        reported(&second, 6).await;
    };
    drill.step("one is frozen: the other one is followed", moved).await;
    drill.traffic(&echoes, &[1]).await;
    // The first one comes back, and lags; nobody asks it.
    first.thaw();
    let addr = second.addr();
    let lagging = async {
        drop(second);
        followed(&first).await;
        let doubted = || async { (!shown(&house).await["doubted"].is_null()).then_some(()) };
        until("doubts about a table that is older", doubted).await;
    };
    drill.step("the other one is killed: the first one lags", lagging).await;
    drill.traffic(&echoes, &[1]).await;
    let all_down = async {
        drop(first);
        let out = || async { (!shown(&house).await["outageSeconds"].is_null()).then_some(()) };
        until("the outage", out).await;
    };
    drill.step("all stores are down", all_down).await;
    drill.traffic(&echoes, &[1]).await;
    assert_eq!(house.pages.get("/ready").await, "ready\n");
    let state = shown(&house).await;
    assert!(
        state["lastError"].as_str().is_some_and(|why| why.starts_with("the store cannot be reached: ")),
        "{state}"
    );
    assert!(house.pages.sum("muxgate_table_outage_ms", &[]).await > 0.0);
    let back = async {
        let store = Tables::again(addr).await;
        followed(&store).await;
        store
    };
    let store = drill.step("one comes back empty", back).await;
    drill.traffic(&echoes, &[1]).await;
    let right = async {
        store.put("shop", 7, &to(echoes.addr(0)));
        reported(&store, 7).await;
    };
    drill.step("and is filled again", right).await;
    drill.traffic(&echoes, &[0]).await;
    assert_eq!(house.pages.sum("muxgate_table_outage_ms", &[]).await, 0.0);
    drill.end().await;
    house.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_any_table_calls_wait_and_then_say_why() {
    let store = Tables::start().await;
    let addr = store.addr();
    drop(store);
    let yaml = format!(
        "admin: {{port: 0}}\nlisteners: [{{name: in, port: 0, dst: /s/probe}}]\n\
         store: {{addresses: ['http://{addr}'], namespace: shop}}\nservices: [{{bindingTimeoutMs: 300}}]\n"
    );
    let house = House::start(&yaml).await;
    let refused = house.mux().await.echo("/s/probe", "a").await.text();
    assert!(refused.contains("no table yet: the store cannot be reached: GET http://"), "{refused}");
    let (status, text) =
        muxgate_testkit::http::get(&format!("http://{}/ready", house.pages.0)).await.expect("an answer");
    assert_eq!(status, 503);
    assert!(text.starts_with("no table yet: the store cannot be reached: "), "{text}");
    // It comes, and so does the table.
    let (echoes, store) = (Echoes::start(1).await, Tables::again(addr).await);
    store.put("shop", 1, &to(echoes.addr(0)));
    reported(&store, 1).await;
    assert_eq!(house.mux().await.echo("/s/probe", "b").await.text(), "b");
    assert_eq!(house.pages.get("/ready").await, "ready\n");
    house.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_gateways_live_by_two_tables_and_a_deleted_one_is_empty_at_once() {
    let (echoes, store) = (Echoes::start(2).await, Tables::start().await);
    store.put("shop", 1, &to(echoes.addr(0)));
    store.put("other", 1, &to(echoes.addr(1)));
    let shop = follower(&[&store], "").await;
    let yaml = format!(
        "admin: {{port: 0}}\nlisteners: [{{name: in, port: 0, dst: /s/probe}}]\nstore: {{addresses: ['{}'], namespace: other}}\n",
        store.url()
    );
    let other = House::start(&yaml).await;
    reported(&store, 1).await;
    until("the other's report", || async {
        (store.reported("other").last() == Some(&Some(1))).then_some(())
    })
    .await;
    assert_eq!(shop.mux().await.echo("/s/probe", "a").await.text(), "a");
    assert_eq!(other.mux().await.echo("/s/probe", "a").await.text(), "a");
    assert_eq!(echoes.counts(), [1, 1]);
    store.delete("shop");
    until("the report", || async { (store.reported("shop").last() == Some(&None)).then_some(()) }).await;
    let refused = shop.mux().await.echo("/s/probe", "a").await.text();
    assert!(refused.contains("(table shop, which the store does not have)"), "{refused}");
    assert_eq!(other.mux().await.echo("/s/probe", "a").await.text(), "a");
    shop.drain().await;
    other.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_knows_namerds_ways_only_is_followed_too() {
    let (echoes, store) = (Echoes::start(2).await, Tables::plain().await);
    let house = follower(&[&store], "").await;
    until("an empty table", || async { shown(&house).await["sinceMs"].as_u64() }).await;
    store.put("shop", 1, &to(echoes.addr(0)));
    let version = |wanted: u64| {
        let pages = house.pages;
        let tag = muxgate_testkit::tables::tag(wanted);
        async move {
            let seen = || async {
                (pages.json("/dtab.json").await["store"]["version"] == tag.as_str()).then_some(())
            };
            until("the version", seen).await;
        }
    };
    version(1).await;
    let mut drill = Drill::start(house.addr);
    drill.step("the first table", async {}).await;
    let change = async {
        store.put("shop", 2, &to(echoes.addr(1)));
        version(2).await;
    };
    drill.step("another one", change).await;
    drill.traffic(&echoes, &[1]).await;
    drill.end().await;
    house.drain().await;
}
