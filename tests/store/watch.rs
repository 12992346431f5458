//! Answers that go on.

use super::{DTAB, Store, dtab, folder, next, tag};
use bytes::Bytes;
use http::header::{ACCEPT, HeaderMap};
use http::{HeaderValue, Method, StatusCode};
use serde_json::{Value, json};

#[tokio::test]
async fn watchers_see_each_change_in_order() {
    let folder = folder();
    let store = Store::start(folder.path());
    let mut names = store.lines("/api/1/dtabs?watch=true").await;
    assert_eq!(next(&mut names).await, "[]");
    store.post("a", "/x=>/1").await;
    assert_eq!(next(&mut names).await, r#"["a"]"#);
    assert_eq!(store.get("/api/1/dtabs/b?watch=1").await.status, StatusCode::NOT_FOUND);

    let mut entries = store.lines("/api/1/dtabs/a?watch=t").await;
    let accept = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/dtab"))]);
    let texts = store.http.lines(Method::GET, "/api/1/dtabs/a?watch=1", accept, Bytes::new(), super::WITHIN);
    let mut texts = texts.await.expect("a stream");
    assert_eq!(next(&mut entries).await, r#"[{"dst":"/1","prefix":"/x"}]"#);
    assert_eq!(next(&mut texts).await, "/x=>/1");
    for at in 2..10 {
        store.put("a", &format!("/x => /{at} ;\n")).await;
        assert_eq!(next(&mut texts).await, format!("/x=>/{at}"));
        assert_eq!(next(&mut entries).await, format!(r#"[{{"dst":"/{at}","prefix":"/x"}}]"#));
    }
    store.send(Method::DELETE, &dtab("a"), &[], "").await;
    assert_eq!(next(&mut names).await, "[]");
    assert!(texts.next().await.is_ok_and(|line| line.is_none()), "a deletion ends the stream");
    store.stop();
}

#[tokio::test]
async fn followers_hear_of_all_and_that_it_is_alive() {
    let folder = folder();
    let store = Store::start(folder.path());
    let mut lines = store.lines("/api/1/follow/default").await;
    let mut news = async || loop {
        let line: Value = serde_json::from_str(&next(&mut lines).await).expect("JSON");
        if line != json!({"alive": true}) {
            return line;
        }
    };
    assert_eq!(news().await, json!({"absent": true}));
    let made = store.post("default", "/svc=>/a").await;
    assert_eq!(news().await, json!({"version": tag(&made), "dtab": "/svc=>/a"}));
    let put = store.send(Method::PUT, &dtab("default"), &[DTAB], "").await;
    assert_eq!(news().await, json!({"version": tag(&put), "dtab": ""}));
    store.send(Method::DELETE, &dtab("default"), &[], "").await;
    assert_eq!(news().await, json!({"absent": true}));
    let mut line = next(&mut lines).await;
    while line != r#"{"alive":true}"# {
        line = next(&mut lines).await;
    }
    // A stream that is open does not hold up the end.
    store.stop();
}
