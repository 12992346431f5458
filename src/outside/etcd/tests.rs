//! The client, with a server that says what it is told to.

use super::*;
use crate::outside::http::{Credentials, Params};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Answers each request by its path, one to a connection: a status and a body. Gives its address.
async fn server(answer: impl Fn(&str) -> (u16, &'static str) + Send + 'static) -> Params {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut io, _)) = listener.accept().await {
            let mut read = Vec::new();
            // Requests of this client end with the brace of their JSON.
            while !read.ends_with(b"}") {
                if io.read_buf(&mut read).await.unwrap_or(0) == 0 {
                    break;
                }
            }
            let head = String::from_utf8_lossy(&read).into_owned();
            let path = head.split(' ').nth(1).unwrap_or_default();
            let (status, body) = answer(path);
            let answer = format!(
                "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = io.write_all(answer.as_bytes()).await;
        }
    });
    Params { base, tls: None, credentials: Credentials::None }
}

async fn node(answer: impl Fn(&str) -> (u16, &'static str) + Send + 'static) -> Node {
    Etcd::open(&[server(answer).await]).unwrap().node(b"/a/").await.unwrap()
}

const HEAD: &str =
    r#"{"header":{"cluster_id":"18446744073709551615","revision":"7","raft_term":"2"},"count":"3"}"#;

#[tokio::test]
async fn a_server_of_3_3_is_asked_by_its_own_paths() {
    let node = node(|path| match path {
        "/v3beta/kv/range" => (200, HEAD),
        "/v3beta/watch" => (200, "{\"error\":{\"grpc_code\":14,\"message\":\"no leader\"}}\n"),
        _ => (404, "404 page not found\n"),
    })
    .await;
    let mut follow = node.follow(b"/a/", &Snapshot { cluster: 1, revision: 1, kvs: vec![] }).await.unwrap();
    let error = follow.next(0).await.unwrap_err();
    assert!(error.to_string().ends_with("keys below /a/: no leader"), "{error}");
    assert_eq!(node.count(b"/a/").await, Ok(Head { cluster: u64::MAX, revision: 7, keys: 3 }));
}

#[tokio::test]
async fn errors_are_told_apart() {
    type Is = fn(&EtcdError) -> bool;
    let refused: Is = |error| matches!(error, EtcdError::Refused(_));
    let unavailable: Is = |error| matches!(error, EtcdError::Unavailable(_));
    let compacted: Is = |error| matches!(error, EtcdError::Compacted(_));
    for (status, body, is) in [
        (403, r#"{"error":"etcdserver: permission denied","code":7}"#, refused),
        (404, r#"{"error":"etcdserver: requested lease not found","code":5}"#, refused),
        (400, r#"{"error":"etcdserver: request is too large","code":3}"#, refused),
        (400, r#"{"error":"etcdserver: mvcc: required revision has been compacted","code":11}"#, compacted),
        (429, r#"{"error":"etcdserver: too many requests","code":8}"#, unavailable),
        (503, r#"{"error":"etcdserver: request timed out","code":14}"#, unavailable),
        (200, "not JSON", unavailable),
        (200, r#"{"header":{"revision":"-1"}}"#, unavailable),
    ] {
        let node = node(move |_| (status, body)).await;
        let error = node.count(b"/a/").await.unwrap_err();
        assert!(is(&error), "{status} {body}: {error:?}");
    }
}

#[tokio::test]
async fn the_first_address_that_answers_is_kept() {
    let bad = server(|_| (503, "{}")).await;
    let good = server(|_| (200, HEAD)).await;
    let base = good.base.clone();
    let etcd = Etcd::open(&[bad.clone(), good, bad.clone()]).unwrap();
    for _ in 0..2 {
        let node = etcd.node(b"/a/").await.unwrap();
        assert_eq!(node.http.base().to_string().trim_end_matches('/'), base);
        assert_eq!(etcd.at.load(Ordering::Relaxed), 1);
    }
    let none = Etcd::open(&[bad.clone(), bad]).unwrap().node(b"/a/").await.unwrap_err();
    assert_eq!(none.to_string().matches("503").count(), 2, "{none}");
    assert!(Etcd::open(&[]).is_err());
}

#[test]
fn the_end_of_a_prefix_is_behind_all_that_begin_with_it() {
    assert_eq!(behind(b"/a/"), b"/a0");
    assert_eq!(behind(b"a\xff\xff"), b"b");
    assert_eq!(behind(b"\xff"), [0]);
    assert_eq!(behind(b""), [0]);
}
