//! What was acknowledged is there, whatever happens.

use super::{DTAB, Store, WITHIN, dtab, folder, text};
use bytes::Bytes;
use futures_util::future::join_all;
use http::header::HeaderMap;
use http::{Method, StatusCode};
use muxgate_testkit::{Proc, until};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[tokio::test]
async fn a_restart_keeps_a_thousand_namespaces_and_their_history() {
    let folder = folder();
    let store = Store::start(folder.path());
    for chunk in (0..1000).collect::<Vec<_>>().chunks(50) {
        let made = join_all(chunk.iter().map(|at| {
            let store = &store;
            async move { store.post(&format!("ns-{at}"), &format!("/svc=>/{at}")).await.status }
        }));
        assert!(made.await.iter().all(|status| *status == StatusCode::NO_CONTENT));
    }
    store.put("ns-7", "/svc=>/new").await;
    let (all, seventh) = (store.json("/api/1/dtabs").await, store.dtab("ns-7").await);
    let history = store.json("/api/1/dtabs/ns-7/history").await;
    assert_eq!(all.as_array().map(Vec::len), Some(1000));
    store.stop();
    let store = Store::start(folder.path());
    assert_eq!(store.json("/api/1/dtabs").await, all);
    assert_eq!(store.dtab("ns-7").await, seventh);
    assert_eq!(store.json("/api/1/dtabs/ns-7/history").await, history);
    store.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_in_the_middle_of_writes_loses_nothing_acknowledged() {
    let folder = folder();
    for round in 0..3 {
        let store = Arc::new(Store::start(folder.path()));
        let acknowledged = Arc::new(AtomicUsize::new(0));
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let (store, acknowledged) = (Arc::clone(&store), Arc::clone(&acknowledged));
                tokio::spawn(async move {
                    let headers: HeaderMap =
                        [DTAB].into_iter().map(|(k, v)| (k, v.parse().unwrap())).collect();
                    for at in 0.. {
                        let (path, body) = (dtab(&format!("w{writer}")), format!("/round=>/{round}/{at}"));
                        let put =
                            store.http.send(Method::PUT, &path, headers.clone(), Bytes::from(body), WITHIN);
                        match put.await {
                            Ok(answer) if answer.status == StatusCode::NO_CONTENT => {
                                acknowledged.fetch_add(1, Ordering::Relaxed);
                            }
                            Ok(answer) => panic!("{}", text(&answer)),
                            // Killed: this one may have been made, the one before it has been.
                            Err(_) => return at,
                        }
                    }
                    0
                })
            })
            .collect();
        until("some writes", || async { (acknowledged.load(Ordering::Relaxed) > 40).then_some(()) }).await;
        store.proc.kill();
        let ends = join_all(writers).await;
        drop(store);
        let store = Store::start(folder.path());
        for (writer, end) in ends.into_iter().enumerate() {
            let end: usize = end.expect("it ended well");
            let (table, _) = store.dtab(&format!("w{writer}")).await;
            let last = table.strip_prefix(&format!("/round=>/{round}/")).map(str::parse::<usize>);
            let last = last.unwrap_or_else(|| panic!("{table}")).expect("a number");
            assert!(last + 1 == end || last == end, "acknowledged up to {end} and there is {last}");
        }
        store.stop();
    }
}

#[tokio::test]
async fn a_second_store_on_the_same_folder_is_told_so() {
    let folder = folder();
    let store = Store::start(folder.path());
    let args = ["store", "--listen", "127.0.0.1:0", "--data", &folder.path().to_string_lossy()];
    let second = Proc::start("second", env!("CARGO_BIN_EXE_muxgate"), args, &[]);
    assert_eq!(second.wait(WITHIN).code(), Some(1));
    let said = second.err.all().join("\n");
    assert!(said.contains("another process has this store open"), "{said}");
    store.stop();
}
