//! History, differences, the way back, and changes that are only tried.

use super::{DTAB, Store, dtab, folder, tag, text};
use http::header::{ACCEPT, HeaderName, IF_MATCH};
use http::{Method, StatusCode};
use serde_json::json;

const WHO: HeaderName = HeaderName::from_static("muxgate-who");
const WHY: HeaderName = HeaderName::from_static("muxgate-why");

fn escaped(tag: &str) -> String {
    tag.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D")
}

#[tokio::test]
async fn history_tells_who_when_and_why_and_leads_back() {
    let folder = folder();
    let store = Store::start(folder.path());
    assert_eq!(store.get("/api/1/dtabs/default/history").await.status, StatusCode::NOT_FOUND);
    let said = [DTAB, (WHO, "ann"), (WHY, "the first one")];
    let first = store.send(Method::POST, &dtab("default"), &said, "/a=>/1;/b=>/2;/c=>/3").await;
    let second = store.put("default", "/b=>/2;/c=>/4").await;
    let history = store.json("/api/1/dtabs/default/history?limit=10").await;
    assert_eq!(history.as_array().map(Vec::len), Some(2));
    assert_eq!(history[0]["version"], tag(&second));
    assert_eq!(history[0]["who"], "127.0.0.1");
    assert_eq!((&history[1]["who"], &history[1]["why"]), (&json!("ann"), &json!("the first one")));
    let when = history[1]["when"].as_str().expect("a time");
    assert!(when.len() == 24 && when.starts_with("20") && when.ends_with('Z'), "{when}");

    let then = format!("/api/1/dtabs/default/history/{}", escaped(&tag(&first)));
    let then = store.send(Method::GET, &then, &[(ACCEPT, "application/dtab")], "").await;
    assert_eq!(text(&then), "/a=>/1;/b=>/2;/c=>/3");
    let diff = format!("/api/1/dtabs/default/diff?from={}&to={}", escaped(&tag(&first)), tag(&second));
    let shown = store.json(&diff).await;
    assert_eq!(shown["changes"], json!([{"removed": "/a=>/1"}, {"removed": "/c=>/3"}, {"added": "/c=>/4"}]));
    let shown =
        text(&store.send(Method::GET, "/api/1/dtabs/default/diff", &[(ACCEPT, "text/plain")], "").await);
    assert!(shown.ends_with("- /a=>/1\n  /b=>/2\n- /c=>/3\n+ /c=>/4\n"), "{shown}");

    let rollback = format!("/api/1/dtabs/default/rollback?to={}", escaped(&tag(&first)));
    let stale = store.send(Method::POST, &rollback, &[(IF_MATCH, &tag(&first))], "").await;
    assert_eq!(stale.status, StatusCode::PRECONDITION_FAILED);
    let back = store.send(Method::POST, &rollback, &[(IF_MATCH, &tag(&second))], "").await;
    assert_eq!(back.status, StatusCode::NO_CONTENT, "{}", text(&back));
    assert_eq!(store.dtab("default").await, ("/a=>/1;/b=>/2;/c=>/3".into(), tag(&back)));
    let history = store.json("/api/1/dtabs/default/history?limit=1").await;
    assert_eq!(history[0]["why"], format!("roll back to {}", tag(&first)));
    let unknown = store.send(Method::POST, "/api/1/dtabs/default/rollback?to=AAAAAAAAAAA=", &[], "").await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    store.send(Method::DELETE, &dtab("default"), &[], "").await;
    let gone = store.json("/api/1/dtabs/default/history?limit=1").await;
    assert_eq!(gone[0]["deleted"], true);
    assert_eq!(store.send(Method::POST, &rollback, &[], "").await.status, StatusCode::NO_CONTENT);
    assert_eq!(store.dtab("default").await.0, "/a=>/1;/b=>/2;/c=>/3");
    store.stop();
}

#[tokio::test]
async fn a_dry_run_writes_nothing_and_names_what_would_move() {
    let folder = folder();
    let store = Store::start(folder.path());
    store.post("default", "/svc=>/#/io.l5d.fs;/svc/b=>/$/inet/127.0.0.1/81").await;
    let before = store.dtab("default").await;
    let report =
        json!({"id": "g1", "namespace": "default", "version": before.1, "names": ["/svc/a", "/svc/b"]});
    let reported = store.send(Method::POST, "/api/1/gateways", &[], &report.to_string()).await;
    assert_eq!(reported.status, StatusCode::NO_CONTENT, "{}", text(&reported));
    store.json("/api/1/bind/default?path=/svc/b/c").await;
    let path = format!("{}?dry-run=true", dtab("default"));
    let tried =
        store.send(Method::PUT, &path, &[DTAB], "/svc=>/#/io.l5d.fs/v2;/svc/b=>/$/inet/127.0.0.1/81").await;
    assert_eq!(tried.status, StatusCode::OK, "{}", text(&tried));
    let tried: serde_json::Value = serde_json::from_slice(&tried.body).expect("JSON");
    let changed = json!([{"name": "/svc/a", "before": "/#/io.l5d.fs/a", "after": "/#/io.l5d.fs/v2/a"}]);
    assert_eq!((&tried["changed"], &tried["names"]), (&changed, &json!(3)));
    assert_eq!(tried["diff"], json!([{"removed": "/svc=>/#/io.l5d.fs"}, {"added": "/svc=>/#/io.l5d.fs/v2"}]));
    let gone = store.send(Method::DELETE, &path, &[], "").await;
    let gone: serde_json::Value = serde_json::from_slice(&gone.body).expect("JSON");
    assert_eq!(gone["changed"].as_array().map(Vec::len), Some(3), "{gone}");
    let other = store.send(Method::PUT, &path, &[DTAB, (IF_MATCH, "AAAAAAAAAAA=")], "").await;
    assert_eq!(other.status, StatusCode::PRECONDITION_FAILED);
    let made = store.send(Method::POST, &format!("{}?dry-run=1", dtab("new")), &[DTAB], "/a=>/b").await;
    assert_eq!(made.status, StatusCode::OK);
    assert_eq!(store.dtab("default").await, before);
    assert_eq!(store.json("/api/1/dtabs").await, json!(["default"]));
    store.stop();
}
