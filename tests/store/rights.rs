//! Who may do what.

use super::{DTAB, Store, dtab, folder, text};
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{Method, StatusCode};
use serde_json::json;

#[tokio::test]
async fn rights_say_who_may_change_which_entries() {
    let folder = folder();
    std::fs::write(folder.path().join("ops"), "ops-token\n").unwrap();
    let file = format!(
        "listen: 127.0.0.1:0
data: {folder}/data
rights:
- name: ops
  tokenFile: {folder}/ops
  namespaces: ['*']
  access: write
- name: team
  # printf %s team-token | sha256sum
  tokenSha256: {hash}
  namespaces: [default]
  prefixes: [/svc/team]
  access: write
- name: gateways
  tokenSha256: {reader}
  namespaces: [def*]
  access: read
",
        folder = folder.path().display(),
        hash = hex("team-token"),
        reader = hex("reader"),
    );
    let store = Store::of_file(folder.path(), &file);
    let ask = async |method: Method, path: &str, token: &str, body: &str| {
        let bearer = format!("Bearer {token}");
        store.send(method, path, &[DTAB, (AUTHORIZATION, &bearer)], body).await
    };
    let nobody = store.get("/api/1/dtabs").await;
    assert_eq!(nobody.status, StatusCode::UNAUTHORIZED);
    assert!(nobody.headers[WWW_AUTHENTICATE].to_str().unwrap().starts_with("Bearer"));
    assert_eq!(ask(Method::GET, "/api/1/dtabs", "wrong", "").await.status, StatusCode::UNAUTHORIZED);
    let put = async |token: &str, namespace: &str, table: &str| {
        let answer = ask(Method::PUT, &dtab(namespace), token, table).await;
        (answer.status.as_u16(), text(&answer))
    };
    assert_eq!(put("ops-token", "default", "/svc=>/a;/x=>/b").await.0, 204);
    assert_eq!(put("ops-token", "other", "/svc=>/a").await.0, 204);
    assert_eq!(put("team-token", "default", "/svc=>/a;/svc/team/n=>/c;/x=>/b").await.0, 204);
    let (status, said) = put("team-token", "default", "/x=>/b;/svc=>/a").await;
    assert!(status == 403 && said.contains("`team`") && said.contains("/x=>/b"), "{status} {said}");
    let (status, said) = put("team-token", "other", "").await;
    assert!(status == 403 && said.contains("`other`"), "{status} {said}");
    assert_eq!(ask(Method::DELETE, &dtab("default"), "team-token", "").await.status, StatusCode::FORBIDDEN);
    let (status, said) = put("reader", "default", "").await;
    assert!(status == 403 && said.contains("reading only"), "{status} {said}");
    let list = ask(Method::GET, "/api/1/dtabs", "reader", "").await;
    assert_eq!(text(&list), r#"["default"]"#);
    assert_eq!(ask(Method::GET, &dtab("other"), "reader", "").await.status, StatusCode::FORBIDDEN);
    let history = ask(Method::GET, "/api/1/dtabs/default/history", "reader", "").await;
    let history: serde_json::Value = serde_json::from_slice(&history.body).unwrap();
    assert_eq!((&history[0]["who"], &history[1]["who"]), (&json!("team"), &json!("ops")));
    std::fs::write(folder.path().join("ops"), "new-token").unwrap();
    assert_eq!(put("ops-token", "default", "").await.0, 401);
    assert_eq!(put("new-token", "default", "").await.0, 204);
    store.stop();
}

fn hex(token: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, token.as_bytes());
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
