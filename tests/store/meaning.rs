//! What names mean.

use super::{Store, folder, next, text};
use http::StatusCode;
use serde_json::{Value, json};

#[tokio::test]
async fn names_are_bound_and_followed_as_namerd_tells_it() {
    let folder = folder();
    let disco = folder.path().join("disco");
    std::fs::create_dir(&disco).unwrap();
    std::fs::write(disco.join("users"), "127.0.0.1 8080\n127.0.0.1 8081 * 2\n").unwrap();
    let file = format!(
        "listen: 127.0.0.1:0\ndata: {}\nnamers:\n- kind: io.l5d.fs\n  rootDir: {}\n",
        folder.path().join("data").display(),
        disco.display()
    );
    let store = Store::of_file(folder.path(), &file);
    store.post("default", "/svc=>/#/io.l5d.fs;/two=>3*/svc/users & /$/inet/127.0.0.1/9").await;
    let bound = store.json("/api/1/bind/default?path=/svc/users/x").await;
    assert_eq!(
        (&bound["type"], &bound["bound"]["id"], &bound["bound"]["path"]),
        (&json!("leaf"), &json!("/#/io.l5d.fs/users"), &json!("/x"))
    );
    assert_eq!(bound["bound"]["addr"]["addrs"].as_array().map(Vec::len), Some(2), "{bound}");
    assert_eq!(store.json("/api/1/bind/default?path=/svc/none").await, json!({"type": "neg"}));
    let both = store.json("/api/1/bind/default?path=/two").await;
    assert_eq!((&both["type"], &both["union"][0]["weight"]), (&json!("union"), &json!(3.0)));
    assert_eq!(
        store.json("/api/1/resolve/default?path=/two").await["addrs"].as_array().map(Vec::len),
        Some(3)
    );
    let addr = store.json("/api/1/addr/default?path=/%23/io.l5d.fs/users").await;
    assert_eq!((&addr["type"], &addr["addrs"][0]["port"]), (&json!("bound"), &json!(8080)));
    assert_eq!(store.json("/api/1/addr/default?path=/%23/io.l5d.fs/none").await, json!({"type": "neg"}));
    let local = store.json("/api/1/bind/default?path=/x&dtab=/x+%3D%3E+/$/nil").await;
    assert_eq!(local, json!({"type": "empty"}));
    let tree = store.json("/api/1/delegate/default?path=/svc/users").await;
    assert!(tree.to_string().contains(r#""id":"/#/io.l5d.fs/users""#), "{tree}");
    assert_eq!(store.json("/api/1/bound-names").await, json!(["/#/io.l5d.fs/users", "/$/inet/127.0.0.1/9"]));
    assert_eq!(store.json("/api/1/bind/nowhere?path=/svc/users").await, json!({"type": "neg"}));

    let mut lines = store.lines("/api/1/bind/default?path=/svc/users&watch=true").await;
    let mut ids = async |wanted: &str| loop {
        let line: Value = serde_json::from_str(&next(&mut lines).await).expect("JSON");
        if line.to_string().contains(wanted) {
            return;
        }
    };
    ids("8081").await;
    std::fs::write(disco.join("users"), "127.0.0.1 8082\n").unwrap();
    ids("8082").await;
    store.put("default", "/svc=>/$/nil").await;
    ids(r#"{"type":"empty"}"#).await;
    for wrong in ["", "?path=x", "?path=/a&dtab=/a", "?path=%ff"] {
        let answer = store.get(&format!("/api/1/bind/default{wrong}")).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{wrong}: {}", text(&answer));
    }
    store.stop();
}
