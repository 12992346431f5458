//! namerd's codes.

use super::{DTAB, Store, dtab, folder, tag, text};
use http::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_MATCH};
use http::{Method, StatusCode};

const JSON: (http::HeaderName, &str) = (CONTENT_TYPE, "application/json");

#[tokio::test]
async fn tables_are_created_read_updated_and_deleted() {
    let folder = folder();
    let store = Store::start(folder.path());
    assert_eq!(store.json("/api/1/dtabs").await, serde_json::json!([]));
    assert_eq!(store.get(&dtab("default")).await.status, StatusCode::NOT_FOUND);
    let made = store.post("default", "/svc => 0.001 * /a & 3 * /b ; # why\n/x => /y").await;
    assert_eq!(made.status, StatusCode::NO_CONTENT, "{}", text(&made));
    assert_eq!(store.post("default", "/svc => /a").await.status, StatusCode::CONFLICT);

    let (table, first) = store.dtab("default").await;
    assert_eq!(table, "/svc=>0.001*/a & 3*/b;/x=>/y");
    assert_eq!(first, tag(&made));
    let shown = store.get(&dtab("default")).await;
    assert_eq!(shown.headers[CONTENT_TYPE], "application/json");
    let entries = r#"[{"dst":"0.001*/a & 3*/b","prefix":"/svc"},{"dst":"/y","prefix":"/x"}]"#;
    assert_eq!(text(&shown), entries);
    let head = store.send(Method::HEAD, &dtab("default"), &[], "").await;
    assert_eq!((head.status, &head.body[..]), (StatusCode::OK, &b""[..]));
    assert_eq!(head.headers[CONTENT_LENGTH], entries.len().to_string());
    assert_eq!(head.headers[ETAG], first);

    let put =
        store.send(Method::PUT, &dtab("default"), &[JSON], r#"[{"prefix":"/a","dst":"/b | /c"}]"#).await;
    assert_eq!(put.status, StatusCode::NO_CONTENT, "{}", text(&put));
    let (table, second) = store.dtab("default").await;
    assert_eq!((table.as_str(), second.as_str()), ("/a=>/b | /c", tag(&put).as_str()));
    let put = async |tag: &str| {
        let answer = store.send(Method::PUT, &dtab("default"), &[DTAB, (IF_MATCH, tag)], "/a=>/d").await;
        answer.status
    };
    assert_eq!(put(&first).await, StatusCode::PRECONDITION_FAILED);
    assert_eq!(put("nonsense").await, StatusCode::BAD_REQUEST);
    assert_eq!(put(&second).await, StatusCode::NO_CONTENT);
    let (_, third) = store.dtab("default").await;
    assert_eq!(put(&format!("\"{third}\"")).await, StatusCode::NO_CONTENT);
    let absent = store.send(Method::PUT, &dtab("other"), &[DTAB, (IF_MATCH, &third)], "").await;
    assert_eq!(absent.status, StatusCode::NOT_FOUND);
    assert_eq!(store.put("other", "").await.status, StatusCode::NO_CONTENT);
    assert_eq!(store.json("/api/1/dtabs").await, serde_json::json!(["default", "other"]));

    let delete = async |tag: Option<&str>| {
        let headers: Vec<_> = tag.into_iter().map(|tag| (IF_MATCH, tag)).collect();
        store.send(Method::DELETE, &dtab("default"), &headers, "").await.status
    };
    assert_eq!(delete(Some(&third)).await, StatusCode::PRECONDITION_FAILED);
    assert_eq!(delete(None).await, StatusCode::NO_CONTENT);
    assert_eq!(delete(None).await, StatusCode::NOT_FOUND);
    assert_eq!(store.get(&dtab("default")).await.status, StatusCode::NOT_FOUND);
    store.stop();
}

#[tokio::test]
async fn what_is_wrong_is_said() {
    let folder = folder();
    let store = Store::start(folder.path());
    let wrong = store.post("default", "/a => /b ;\n/c = /d").await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
    assert!(
        text(&wrong).starts_with("line 2, column 4: ") && text(&wrong).contains("/c [=] /d"),
        "{}",
        text(&wrong)
    );
    for (kind, body, says) in [
        ("text/plain", "/a=>/b", "text/plain"),
        ("application/json", "{}", "JSON list"),
        ("application/json", r#"[{"prefix":"/a"}]"#, "dst"),
    ] {
        let answer = store.send(Method::POST, &dtab("default"), &[(CONTENT_TYPE, kind)], body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{kind} {body}");
        assert!(text(&answer).contains(says), "{}", text(&answer));
    }
    assert_eq!(
        store.send(Method::POST, &dtab("default"), &[], "/a=>/b").await.status,
        StatusCode::BAD_REQUEST
    );
    let patch = store.send(Method::PATCH, &dtab("default"), &[], "").await;
    assert_eq!(patch.status, StatusCode::METHOD_NOT_ALLOWED);
    let allowed = patch.headers[ALLOW].to_str().unwrap();
    assert!(
        ["GET", "HEAD", "POST", "PUT", "DELETE"].iter().all(|method| allowed.contains(method)),
        "{allowed}"
    );
    for path in ["/api/1/dtabs/a%2Fb", "/api/1/dtabs/a%20b", "/api/1/dtabs/%00", "/api/1/dtabs/.."] {
        let status = store.send(Method::PUT, path, &[DTAB], "/a=>/b").await.status;
        assert!(status.is_client_error(), "{path} {status}");
    }
    assert_eq!(store.get("/api/2").await.status, StatusCode::NOT_FOUND);
    assert_eq!(store.json("/api/1/dtabs").await, serde_json::json!([]));
    assert_eq!(text(&store.get("/health").await), "ok\n");
    store.stop();
}
