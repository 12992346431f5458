//! The client by itself.

use muxgate::outside::etcd::{Etcd as Client, EtcdError, Event, Follow, News, Txn};
use muxgate::outside::http::{Credentials, Params};
use muxgate_testkit::Etcd;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::Instant;

/// A server that says nothing more is noticed within this time.
const NOTICED_WITHIN: Duration = Duration::from_secs(5);
/// Keys in one answer, and more than fit into two.
const PAGE: u64 = 500;
const KEYS: usize = 1203;

fn client(addr: SocketAddr) -> Client {
    let base = format!("http://{addr}");
    Client::open(&[Params { base, tls: None, credentials: Credentials::None }]).expect("an address")
}

/// The next changes, or how it ended.
async fn changes(follow: &mut Follow, known: usize) -> Result<Vec<Event>, EtcdError> {
    loop {
        if let News::Changed(events) = follow.next(known).await? {
            return Ok(events);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_keys_are_read_and_followed_until_what_is_wanted_is_compacted() {
    let etcd = Etcd::start().await;
    etcd.put_all((0..KEYS).map(|n| (format!("/a/{n:05}"), n.to_string()))).await;
    etcd.put("/b/0", "not below").await;
    let client = client(etcd.addr());
    let node = client.node(b"/a/").await.expect("it is there");
    let all = node.all(b"/a/", PAGE).await.expect("all keys");
    assert_eq!(all.kvs.len(), KEYS);
    assert!(all.kvs.is_sorted_by(|a, b| a.key < b.key));
    assert_eq!(all.kvs.last().expect("some").value, (KEYS - 1).to_string().as_bytes());

    let mut follow = node.follow(b"/a/", &all).await.expect("a watch");
    etcd.put("/b/1", "not below").await;
    etcd.delete("/a/00000").await;
    assert_eq!(changes(&mut follow, KEYS).await, Ok(vec![Event::Deleted(b"/a/00000".into())]));
    let txn = Txn::default().put(b"/a/x", b"\xff\0").put(b"/a/y", b"");
    assert!(node.txn(&txn).await.expect("written").succeeded);
    let told = changes(&mut follow, KEYS - 1).await.expect("both together");
    let told: Vec<_> = told
        .into_iter()
        .map(|event| match event {
            Event::Put(kv) => (kv.key, kv.value),
            Event::Deleted(key) => panic!("{key:?} was written"),
        })
        .collect();
    assert_eq!(told, [(b"/a/x".to_vec(), b"\xff\0".to_vec()), (b"/a/y".to_vec(), vec![])]);

    etcd.compact().await;
    let mut late = node.follow(b"/a/", &all).await.expect("a watch");
    assert!(matches!(changes(&mut late, KEYS).await, Err(EtcdError::Compacted(_))));
    // Who has heard of less than there is has to read anew.
    let missed = changes(&mut follow, KEYS).await.expect_err("there is one key more");
    assert!(missed.to_string().contains("the watch told of 1203"), "{missed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_is_noticed_and_so_is_a_server_that_has_lost_all() {
    let mut etcd = Etcd::start().await;
    etcd.put("/a/0", "x").await;
    let client = client(etcd.addr());
    let node = client.node(b"/a/").await.expect("it is there");
    let all = node.all(b"/a/", PAGE).await.expect("all keys");
    let mut follow = node.follow(b"/a/", &all).await.expect("a watch");
    assert!(matches!(follow.next(1).await, Ok(News::Alive)));
    etcd.freeze();
    let began = Instant::now();
    let error = changes(&mut follow, 1).await.expect_err("nothing is said");
    assert!(matches!(error, EtcdError::Unavailable(_)), "{error}");
    assert!(began.elapsed() < NOTICED_WITHIN, "{:?}", began.elapsed());
    etcd.thaw();

    etcd.kill();
    etcd.restart_empty().await;
    let mut follow = node.follow(b"/a/", &all).await.expect("a watch");
    let error = changes(&mut follow, 1).await.expect_err("it waits for a revision that will not come soon");
    assert!(error.to_string().contains("without what was written last"), "{error}");
}
