//! Who may do what.

use super::{DTAB, Store, WITHIN, dtab, folder, text};
use bytes::Bytes;
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, Method, StatusCode};
use muxgate::outside::http::{Credentials, Http, Params, Tls};
use muxgate_rpc::tls::{ClientFiles, Trust, Versions};
use muxgate_testkit::certs::Authority;
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

#[tokio::test]
async fn certificates_say_who_it_is() {
    let folder = folder();
    let authority = Authority::new("ours");
    let bundle = authority.write(folder.path(), "ca");
    let ours = authority.issue("store", &["127.0.0.1"]).write(folder.path(), "store");
    let file = format!(
        "listen: 127.0.0.1:0
data: {folder}/data
tls: {{certPath: {cert}, keyPath: {key}, caCertPath: {ca}}}
rights:
- {{name: team, certificate: team.example.org, namespaces: [default], access: write}}
",
        folder = folder.path().display(),
        cert = ours.certificate.display(),
        key = ours.key.display(),
        ca = bundle.display(),
    );
    let store = Store::of_file(folder.path(), &file);
    let client = |certificate| {
        let files =
            ClientFiles { trust: Trust::Authorities(bundle.clone()), certificate, versions: Versions::All };
        let tls = Some(Tls { files, name: "127.0.0.1".into() });
        let base = store.base.replace("http:", "https:");
        Http::open(&Params { base, tls, credentials: Credentials::None }).expect("a client")
    };
    let put = async |http: &Http| {
        let headers = HeaderMap::from_iter([(DTAB.0, DTAB.1.parse().unwrap())]);
        http.send(Method::PUT, &dtab("default"), headers, Bytes::from("/a=>/b"), WITHIN).await
    };
    let nobody = put(&client(None)).await.expect("an answer");
    assert_eq!(nobody.status, StatusCode::UNAUTHORIZED);
    for (name, status) in [("other", 401), ("team", 204)] {
        let issued = authority.issue(name, &[&format!("{name}.example.org")]).write(folder.path(), name);
        let answer = put(&client(Some((issued.certificate, issued.key)))).await.expect("an answer");
        assert_eq!(answer.status.as_u16(), status, "{}", text(&answer));
    }
    let plain = store.http.send(Method::GET, "/health", HeaderMap::new(), "", WITHIN).await;
    assert!(plain.is_err(), "in clear there is no answer");
    store.stop();
}

fn hex(token: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, token.as_bytes());
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
