//! Which gateway runs what.

use super::{Store, dtab, folder, tag};
use http::{Method, StatusCode};
use serde_json::json;

#[tokio::test]
async fn propagation_is_complete_when_all_gateways_run_it() {
    let folder = folder();
    let store = Store::start(folder.path());
    let first = tag(&store.post("default", "/a=>/1").await);
    let report = async |id: &str, version: Option<&str>| {
        let report = json!({"id": id, "namespace": "default", "version": version, "names": ["/svc/a"]});
        let answer = store.send(Method::POST, "/api/1/gateways", &[], &report.to_string()).await;
        assert_eq!(answer.status, StatusCode::NO_CONTENT);
    };
    report("g1", Some(&first)).await;
    report("g2", None).await;
    let listed = store.json("/api/1/gateways").await;
    assert_eq!(listed[0]["names"], json!(["/svc/a"]));
    assert_eq!((&listed[0]["version"], &listed[1]["version"]), (&json!(first), &json!(null)));
    let shown = store.json("/api/1/dtabs/default/propagation?within=0").await;
    assert_eq!((&shown["complete"], &shown["version"]), (&json!(false), &json!(first)));
    assert_eq!(
        (&shown["gateways"][0]["current"], &shown["gateways"][1]["current"]),
        (&json!(true), &json!(false))
    );

    let second = tag(&store.put("default", "/a=>/2").await);
    let path = format!("/api/1/dtabs/default/propagation?version={second}&within=30");
    let (shown, ()) = tokio::join!(store.json(&path), async {
        report("g1", Some(&second)).await;
        report("g2", Some(&second)).await;
    });
    assert_eq!(shown["complete"], true, "{shown}");
    let old = store.json(&format!("/api/1/dtabs/default/propagation?version={first}&within=30")).await;
    assert_eq!(old["complete"], true, "a later version includes it");

    let gone = store.send(Method::DELETE, &dtab("default"), &[], "").await;
    report("g1", None).await;
    let path = format!("/api/1/dtabs/default/propagation?version={}&within=0", tag(&gone));
    assert_eq!(store.json(&path).await["complete"], false);
    report("g2", None).await;
    assert_eq!(store.json(&path).await["complete"], true, "by now all gateways had time to report");
    for wrong in [
        "",
        "[]",
        r#"{"id":"","namespace":"default","version":null}"#,
        r#"{"id":"x","namespace":"a/b","version":null}"#,
    ] {
        let answer = store.send(Method::POST, "/api/1/gateways", &[], wrong).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{wrong}");
    }
    let page = super::text(&store.get("/").await);
    assert!(page.contains("2 gateways") && page.contains("g1"), "{page}");
    let metrics = super::text(&store.get("/metrics").await);
    let metrics =
        muxgate_testkit::metrics::parse(&metrics).unwrap_or_else(|error| panic!("{error}\n{metrics}"));
    let value =
        |name: &str| metrics.samples.iter().find(|sample| sample.name == name).map(|sample| sample.value);
    assert_eq!(value("muxgate_store_gateways"), Some(2.0));
    assert_eq!(value("muxgate_store_changes_total"), Some(3.0));
    assert_eq!(value("muxgate_store_storage_up"), Some(1.0));
    store.stop();
}
