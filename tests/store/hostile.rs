//! What strangers send.

use super::{DTAB, Store, dtab, folder, text};
use http::header::{ACCEPT, HeaderName, IF_MATCH};
use http::{Method, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test]
async fn large_and_odd_requests_are_refused_and_the_store_goes_on() {
    let folder = folder();
    let store = Store::start(folder.path());
    let put = store.send(Method::PUT, &dtab("a"), &[DTAB], &"#".repeat((1 << 20) + 1)).await;
    assert_eq!(put.status, StatusCode::PAYLOAD_TOO_LARGE, "{}", text(&put));
    let many: String = (0..10_001).map(|at| format!("/{at}=>/x;")).collect();
    assert_eq!(store.put("a", &many).await.status, StatusCode::BAD_REQUEST);
    let most: String = (0..10_000).map(|at| format!("/{at}=>/x;")).collect();
    assert_eq!(store.put("a", &most).await.status, StatusCode::NO_CONTENT);
    assert_eq!(store.put(&"n".repeat(129), "").await.status, StatusCode::BAD_REQUEST);
    assert_eq!(store.put("a", &"(".repeat(100_000)).await.status, StatusCode::BAD_REQUEST);
    // Each byte of such an element is written as four.
    let swollen: String = (0..3000).map(|at| format!("/{}\\x20{at}=>/x;", "a".repeat(300))).collect();
    assert_eq!(store.put("a", &swollen).await.status, StatusCode::PAYLOAD_TOO_LARGE);
    let deep = store.put("a", "/s => /s & /s").await;
    assert_eq!(deep.status, StatusCode::NO_CONTENT);
    let bound = store.get("/api/1/bind/a?path=/s").await;
    assert_eq!(bound.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(text(&bound).contains("too "), "{}", text(&bound));
    let why = "w".repeat(10_000);
    let said = [DTAB, (HeaderName::from_static("muxgate-why"), why.as_str()), (ACCEPT, "\t;;,,*/*;q=,")];
    assert_eq!(store.send(Method::PUT, &dtab("a"), &said, "").await.status, StatusCode::NO_CONTENT);
    let history = store.json("/api/1/dtabs/a/history?limit=1").await;
    assert_eq!(history[0]["why"].as_str().map(str::len), Some(1024));
    let tags = vec!["AAAAAAAAAAA="; 500].join(",");
    let put = store.send(Method::PUT, &dtab("a"), &[DTAB, (IF_MATCH, &tags)], "").await;
    assert_eq!(put.status, StatusCode::PRECONDITION_FAILED);
    for query in ["history?limit=x", "diff?from=x", "rollback", "propagation?within=x"] {
        let method = if query == "rollback" { Method::POST } else { Method::GET };
        let answer = store.send(method, &format!("{}/{query}", dtab("a")), &[], "").await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{query}");
    }
    for bytes in [
        &b"\x16\x03\x01\x02\x00"[..],
        b"GET /",
        b"\0\0\0\0",
        b"PUT /api/1/dtabs/a HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
    ] {
        let mut socket = TcpStream::connect(store.base.trim_start_matches("http://")).await.unwrap();
        socket.write_all(bytes).await.unwrap();
        socket.shutdown().await.unwrap();
        let mut answer = Vec::new();
        // It may be reset.
        let _read = socket.read_to_end(&mut answer).await;
    }
    assert_eq!(store.json("/api/1/dtabs").await, serde_json::json!(["a"]));
    store.stop();
}
