//! What is believed of a table, step by step, and what is kept of it.

use super::belief::{Belief, GRACE, Told, Verdict};
use super::keep::Keep;
use super::{Follower, Params, Version};
use crate::names::Base;
use crate::outside::http::{self, Credentials};
use crate::outside::kept::Kept;
use muxgate_testkit::{Tables, until};
use muxgate_wire::name::Dtab;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, advance};

/// The tag of a version of our own stores.
fn tag(version: u64) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(version.to_be_bytes())
}

fn table(version: u64, text: &str) -> Told {
    Told::Table {
        version: Version::ordered(&tag(version)),
        dtab: Dtab::parse(text).unwrap(),
        text: text.into(),
    }
}

fn held(version: u64) -> Belief {
    let mut belief = Belief::default();
    belief.connected();
    assert_eq!(belief.told(table(version, "/a => /b"), Instant::now()), Verdict::New);
    belief
}

#[tokio::test(start_paused = true)]
async fn newer_tables_are_taken_and_a_delete_is_one() {
    let (mut belief, now) = (held(5), Instant::now());
    assert_eq!(belief.told(table(5, "/a => /b"), now), Verdict::Same);
    assert_eq!(belief.told(table(6, "/a => /c"), now), Verdict::New);
    assert_eq!(belief.told(Told::Absent, now), Verdict::New);
    assert!(belief.held().is_some_and(|told| told.dtab().is_empty()));
    // A store that lags still has the table that is gone.
    belief.connected();
    assert!(matches!(belief.told(table(6, "/a => /c"), now), Verdict::Doubted(_)));
    assert_eq!(belief.told(table(8, "/a => /d"), now), Verdict::New);
    assert_eq!(belief.due(), None);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_comes_back_empty_is_doubted_and_then_believed() {
    let mut belief = held(5);
    belief.connected();
    assert!(matches!(belief.told(Told::Absent, Instant::now()), Verdict::Doubted(_)));
    assert_eq!(belief.told(Told::Absent, Instant::now()), Verdict::StillDoubted);
    advance(GRACE - Duration::from_secs(1)).await;
    assert!(!belief.ripen(Instant::now()));
    assert_eq!(belief.held(), Some(&table(5, "/a => /b")));
    advance(Duration::from_secs(1)).await;
    assert!(belief.ripen(Instant::now()));
    assert_eq!(belief.held(), Some(&Told::Absent));
    // It counts from one again, and that is no reason for doubt any more.
    assert_eq!(belief.told(table(1, "/a => /e"), Instant::now()), Verdict::New);
}

#[tokio::test(start_paused = true)]
async fn an_older_table_is_doubted_until_it_is_overtaken_or_has_waited() {
    let mut belief = held(5);
    belief.connected();
    let begun = Instant::now();
    assert!(matches!(belief.told(table(4, "/a => /old"), begun), Verdict::Doubted(_)));
    // The same number for something else is no better.
    assert_eq!(belief.told(table(5, "/a => /other"), begun), Verdict::StillDoubted);
    assert_eq!(belief.told(table(6, "/a => /new"), begun), Verdict::New);
    // A connection that is lost does not make anything true; but time that was waited counts.
    assert!(matches!(belief.told(table(4, "/a => /old"), begun), Verdict::Doubted(_)));
    advance(GRACE).await;
    belief.connected();
    assert!(!belief.ripen(Instant::now()));
    assert_eq!(belief.told(table(4, "/a => /old"), Instant::now()), Verdict::StillDoubted);
    assert!(belief.ripen(Instant::now()));
    assert_eq!(belief.held(), Some(&table(4, "/a => /old")));
}

#[tokio::test(start_paused = true)]
async fn versions_without_an_order_only_differ() {
    let told = |tag: &str, text: &str| Told::Table {
        version: Version::opaque(tag),
        dtab: Dtab::parse(text).unwrap(),
        text: text.into(),
    };
    let mut belief = Belief::new(Some(told("zz", "/a => /b")));
    belief.connected();
    assert_eq!(belief.told(told("aa", "/a => /c"), Instant::now()), Verdict::New);
    belief.connected();
    assert!(matches!(belief.told(Told::Absent, Instant::now()), Verdict::Doubted(_)));
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_is_doubted_as_little_as_what_was_heard() {
    let mut belief = Belief::new(Some(table(5, "/a => /b")));
    belief.connected();
    assert!(matches!(belief.told(Told::Absent, Instant::now()), Verdict::Doubted(_)));
    assert_eq!(belief.told(table(5, "/a => /b"), Instant::now()), Verdict::Same);
    assert_eq!(belief.told(Told::Absent, Instant::now()), Verdict::New);
}

fn params(stores: &[&str]) -> Params {
    let store =
        |base: &&str| http::Params { base: (*base).to_owned(), tls: None, credentials: Credentials::None };
    Params { stores: stores.iter().map(store).collect(), namespace: "shop".into() }
}

#[tokio::test]
async fn the_table_comes_back_from_disk_unless_it_is_that_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let kept = Kept::open(folder.path()).unwrap();
    let keep = Keep::new(kept.clone(), &params(&["http://a:1", "http://b:1"]));
    assert!(keep.get().is_none());
    for told in [table(7, "/a => /b;\n/c => 0.3 * /d & 0.7 * /e"), Told::Absent, table(8, "")] {
        keep.put(&told);
        kept.flush().await;
        assert_eq!(keep.get().map(|(told, _)| told), Some(told));
    }
    assert!(Keep::new(kept.clone(), &params(&["http://b:1", "http://c:1"])).get().is_some());
    assert!(Keep::new(kept, &params(&["http://c:1"])).get().is_none());
}

#[tokio::test]
async fn after_a_restart_the_kept_table_is_in_use_while_every_store_is_down() {
    let (folder, store) = (tempfile::tempdir().unwrap(), Tables::start().await);
    let (url, addr) = (store.url(), store.addr());
    store.put("shop", 5, "/svc => /$/inet/127.0.0.1/80");
    let own = || Dtab::parse("/own => /svc").unwrap();
    let start = |kept: &Arc<Kept>| {
        Follower::start(&params(&[&url]), own(), Arc::clone(kept), Arc::default()).unwrap()
    };
    let known = |base: &Base| base.table().is_some();

    let kept = Kept::open(folder.path()).unwrap();
    let (follower, mut base) = start(&kept);
    assert!(follower.missing().is_some_and(|why| why.starts_with("asking http://")));
    base.wait_for(known).await.unwrap();
    assert_eq!((follower.missing(), &follower.to_json()["from"]), (None, &url.as_str().into()));
    kept.flush().await;
    drop((follower, base, store, kept));

    // The task of the old one lets go of it.
    let kept = until("the folder", || async { Kept::open(folder.path()).ok() }).await;
    let (follower, mut base) = start(&kept);
    // Known from the first moment on.
    let Base::Known(table) = base.borrow_and_update().clone() else { panic!("no table") };
    assert_eq!(table.dtab.to_string(), "/svc=>/$/inet/127.0.0.1/80;/own=>/svc");
    assert_eq!(table.origin.unwrap().version.as_deref(), Some(tag(5).as_str()));
    let shown = until("a failure", || async {
        let shown = follower.to_json();
        shown["lastError"].is_string().then_some(shown)
    });
    let shown = shown.await;
    assert_eq!((&shown["from"], follower.missing()), (&"disk".into(), None), "{shown}");
    assert!(shown["sinceMs"].is_u64() && shown["outageSeconds"].is_u64(), "{shown}");

    // A store that came back from a backup is not believed at once, one that has gone on is.
    let store = Tables::again(addr).await;
    store.put("shop", 4, "/svc => /old");
    let doubted = || async { (!follower.to_json()["doubted"].is_null()).then_some(()) };
    until("doubt", doubted).await;
    assert!(!base.has_changed().unwrap());
    store.put("shop", 6, "/svc => /new");
    base.wait_for(|base| base.table().is_some_and(|t| t.dtab.to_string() == "/svc=>/new;/own=>/svc"))
        .await
        .unwrap();
    // One that cannot be read changes nothing.
    store.put("shop", 7, "/svc = /new");
    let told = || async {
        let shown = follower.to_json();
        shown["lastError"].as_str().is_some_and(|why| why.contains("cannot be read")).then_some(())
    };
    until("the mistake", told).await;
    assert!(!base.has_changed().unwrap());
}
