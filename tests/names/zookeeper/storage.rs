//! Tables in a real ZooKeeper.

use super::client;
use muxgate::outside::zk::Params as Ensemble;
use muxgate::store::storage::conformance::{self, Handle, change, shown};
use muxgate::store::storage::zk::{PATH_PREFIX, Params, ZkStorage};
use muxgate::store::storage::{Expect, StorageError, Version};
use muxgate_testkit::{ZooKeeper, until};
use std::sync::Arc;

/// Writers, and entries that each one adds.
const WRITERS: usize = 4;
const EACH: usize = 12;

fn storage(server: &ZooKeeper) -> Handle {
    let zk = Ensemble::parse(&server.addr().to_string()).expect("an address");
    Arc::new(ZkStorage::start(Params { zk, path_prefix: PATH_PREFIX.into() }))
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_are_kept_as_every_backend_must() {
    let server = ZooKeeper::start().await;
    let (here, there) = (storage(&server), storage(&server));
    conformance::all(&here, &there, "zk").await;
    conformance::history_is_cut(&here, "zk-cut").await;
    let big = "#".repeat(muxgate::store::storage::zk::MAX_TABLE);
    let write = change("zk-big", Some(&big), Expect::Absent);
    assert!(here.write(write.clone()).await.is_ok());
    assert!(here.write(change("zk-big", Some(&format!("{big}#")), Expect::Present)).await.is_err());
}

/// As namerd leaves them.
#[tokio::test(flavor = "multi_thread")]
async fn tables_of_others_are_read() {
    let server = ZooKeeper::start().await;
    let session = client(&server).await;
    session.make("/dtabs").await.expect("a node");
    session.create("/dtabs/default", b"/svc=>/a").await.expect("a node");
    let here = storage(&server);
    shown(here.mirror(), "default", |table| table.is_some_and(|table| &*table.dtab == "/svc=>/a")).await;
    session.set("/dtabs/default", b"/svc=>/b", None).await.expect("a change");
    shown(here.mirror(), "default", |table| table.is_some_and(|table| &*table.dtab == "/svc=>/b")).await;
    let history = here.history("default", 10).await.expect("a history");
    assert_eq!(history.len(), 1, "{history:?}");
    let version = history[0].version;
    let ours = here.write(change("default", Some("/svc=>/c"), Expect::Version(version))).await;
    assert!(ours.is_ok_and(|ours| ours > version));
    assert_eq!(&session.read("/dtabs/default").await.expect("asked").expect("there").0[..], b"/svc=>/c");
    session.delete("/dtabs/default", None).await.expect("a deletion");
    shown(here.mirror(), "default", |table| table.is_none()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_when_the_server_dies() {
    let mut server = ZooKeeper::start().await;
    let (here, there) = (storage(&server), storage(&server));
    here.write(change("busy", Some(""), Expect::Absent)).await.expect("created");
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let storage = Arc::clone(if writer % 2 == 0 { &here } else { &there });
            tokio::spawn(async move {
                for at in 0..EACH {
                    add(&storage, &format!("/{writer}/{at}=>/x;")).await;
                }
            })
        })
        .collect();
    let mirror = here.mirror();
    let entries = || mirror.borrow().tables.get("busy").map_or(0, |table| table.dtab.matches(';').count());
    until("some entries", || async { (entries() > WRITERS * EACH / 4).then_some(()) }).await;
    server.kill();
    until("word of the outage", || async { mirror.borrow().outage.clone() }).await;
    assert!(entries() > 0, "what is known goes on");
    server.restart().await;
    for writer in writers {
        writer.await.expect("a writer has no reason to panic");
    }
    let last = here.history("busy", 1).await.expect("a history")[0].version;
    for storage in [&here, &there] {
        shown(storage.mirror(), "busy", |table| {
            table.is_some_and(|table| {
                table.version == last && table.dtab.matches(';').count() == WRITERS * EACH
            })
        })
        .await;
    }
    let history = here.history("busy", 1000).await.expect("a history");
    assert_eq!(history.len(), 1 + WRITERS * EACH, "each change was made once");
}

/// Adds an entry to the table, once, whatever becomes of the server.
async fn add(storage: &Handle, entry: &str) -> Version {
    loop {
        let Ok(history) = storage.history("busy", 1).await else {
            tokio::task::yield_now().await;
            continue;
        };
        let now = &history[0];
        let text = now.dtab.as_deref().expect("nobody deletes it");
        if text.contains(entry) {
            return now.version;
        }
        let write = change("busy", Some(&format!("{text}{entry}")), Expect::Version(now.version));
        match storage.write(write).await {
            Ok(version) => return version,
            Err(StorageError::Differs | StorageError::Unavailable(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}
