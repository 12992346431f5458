//! Tables in a real etcd.

use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use muxgate::config::plan::ETCD_TABLES;
use muxgate::outside::http::{Credentials, Http, Params as Node};
use muxgate::store::storage::conformance::{self, Handle, change, shown};
use muxgate::store::storage::etcd::{EtcdStorage, MAX_TABLE, Params};
use muxgate::store::storage::{Expect, StorageError, Version};
use muxgate_testkit::proc::LIMIT;
use muxgate_testkit::{Etcd, Proc, until};
use std::sync::Arc;

/// Writers, and entries that each one adds.
const WRITERS: usize = 4;
const EACH: usize = 12;

fn storage(etcd: &Etcd) -> Handle {
    let base = format!("http://{}", etcd.addr());
    let nodes = vec![Node { base, tls: None, credentials: Credentials::None }];
    Arc::new(EtcdStorage::start(&Params { nodes, path_prefix: ETCD_TABLES.into() }).expect("an address"))
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_are_kept_as_every_backend_must() {
    let etcd = Etcd::start().await;
    let (here, there) = (storage(&etcd), storage(&etcd));
    conformance::all(&here, &there, "etcd").await;
    conformance::history_is_cut(&here, "etcd-cut").await;
    // As large as they may be, in the worst form for what surrounds them.
    let big = "\"".repeat(MAX_TABLE);
    for at in 0..3 {
        let done = here.write(change(&format!("etcd-big-{at}"), Some(&big), Expect::Absent)).await;
        assert!(done.is_ok(), "{done:?}");
    }
    let larger = here.write(change("etcd-big-0", Some(&format!("{big}#")), Expect::Present)).await;
    assert!(matches!(larger, Err(StorageError::Refused(_))), "{larger:?}");
    for storage in [&here, &there, &storage(&etcd)] {
        shown(storage.mirror(), "etcd-big-2", |table| table.is_some_and(|table| *table.dtab == *big)).await;
    }
}

/// People write with `etcdctl`.
#[tokio::test(flavor = "multi_thread")]
async fn tables_of_others_are_read() {
    let etcd = Etcd::start().await;
    etcd.put("/namerd/dtabs/default", "/svc=>/a").await;
    etcd.put("/namerd/dtabs/not/one", "x").await;
    let here = storage(&etcd);
    shown(here.mirror(), "default", |table| table.is_some_and(|table| &*table.dtab == "/svc=>/a")).await;
    let revision = etcd.put("/namerd/dtabs/default", "/svc=>/b").await;
    shown(here.mirror(), "default", |table| table.is_some_and(|table| &*table.dtab == "/svc=>/b")).await;
    let history = here.history("default", 10).await.expect("a history");
    assert_eq!(history.iter().map(|past| past.version).collect::<Vec<_>>(), [Version(revision)]);
    let ours = change("default", Some("/svc=>/c"), Expect::Version(Version(revision)));
    assert!(here.write(ours).await.is_ok_and(|ours| ours > Version(revision)));
    assert_eq!(etcd.get("/namerd/dtabs/default").await.as_deref(), Some("/svc=>/c"));
    etcd.delete("/namerd/dtabs/default").await;
    shown(here.mirror(), "default", |table| table.is_none()).await;
    assert_eq!(here.mirror().borrow().tables.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_when_the_server_dies() {
    let mut etcd = Etcd::start().await;
    let (here, there) = (storage(&etcd), storage(&etcd));
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
    etcd.kill();
    until("word of the outage", || async { mirror.borrow().outage.clone() }).await;
    assert!(entries() > 0, "what is known goes on");
    etcd.restart().await;
    for writer in writers {
        writer.await.expect("a writer has no reason to panic");
    }
    let last = here.history("busy", 1).await.expect("a history")[0].version;
    for storage in [&here, &there] {
        shown(storage.mirror(), "busy", |table| {
            let whole = |text: &str| text.matches(';').count() == WRITERS * EACH;
            table.is_some_and(|table| table.version == last && whole(&table.dtab))
        })
        .await;
    }
    let history = here.history("busy", 1000).await.expect("a history");
    assert_eq!(history.len(), 1 + WRITERS * EACH, "each change was made once");

    etcd.kill();
    until("word of the outage", || async { mirror.borrow().outage.clone() }).await;
    etcd.restart_empty().await;
    until("the end of the outage", || async { mirror.borrow().outage.is_none().then_some(()) }).await;
    assert_eq!(entries(), WRITERS * EACH, "what etcd has lost goes on for a while");
    here.write(change("other", Some("/a=>/b"), Expect::Absent)).await.expect("created");
    shown(here.mirror(), "other", |table| table.is_some()).await;
    assert_eq!(entries(), WRITERS * EACH, "a write of another one changes nothing");
    here.write(change("busy", Some("/a=>/b;"), Expect::Absent)).await.expect("it is not there any more");
    shown(here.mirror(), "busy", |table| table.is_some_and(|table| &*table.dtab == "/a=>/b;")).await;
}

/// Two stores on one etcd: what is written to one is read from the other.
#[tokio::test(flavor = "multi_thread")]
async fn stores_share_their_tables() {
    let etcd = Etcd::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("store.yaml");
    let (host, port) = (etcd.addr().ip(), etcd.addr().port());
    let text = format!("listen: 127.0.0.1:0\nstorage: {{kind: io.l5d.etcd, host: {host}, port: {port}}}\n");
    std::fs::write(&file, text).expect("a file");
    let start = || {
        let store =
            Proc::start("store", env!("CARGO_BIN_EXE_muxgate"), ["store", &file.to_string_lossy()], &[]);
        let address =
            store.wait_line("its address", LIMIT, |line| line.strip_prefix("store ").map(str::to_owned));
        (store, Http::new(&format!("http://{address}"), None, Credentials::None).expect("an address"))
    };
    let ((_one, first), (_two, second)) = (start(), start());
    let ask = async |store: &Http, method: Method, body: &'static str| {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/dtab"))]);
        store.send(method, "/api/1/dtabs/shared", headers, body, LIMIT).await.expect("an answer")
    };
    let created = || async {
        let answer = ask(&first, Method::POST, "/svc => /#/io.l5d.etcd").await;
        (answer.status == StatusCode::NO_CONTENT).then_some(())
    };
    until("the store makes it", created).await;
    until("the other store has it", || async {
        (ask(&second, Method::GET, "").await.status == StatusCode::OK).then_some(())
    })
    .await;
    assert!(etcd.get("/namerd/dtabs/shared").await.is_some_and(|text| text.contains("/svc")));
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
