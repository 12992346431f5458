//! Who may lay entries of its own over the table: lawful ones hold for the whole tree of calls, others are refused and say why.

use crate::support::{House, echo, inet, yaml};
use bytes::Bytes;
use muxgate_testkit::caller::Form;
use muxgate_testkit::mux::Dispatch;
use muxgate_testkit::{Backend, Caller};

const CLIENT_ID: &str = "com.twitter.finagle.thrift.ClientIdContext";

fn pair(key: &str, value: &str) -> (Bytes, Bytes) {
    (Bytes::copy_from_slice(key.as_bytes()), Bytes::copy_from_slice(value.as_bytes()))
}

/// A listener with these rules in front of `dtab`.
async fn house(dtab: &str, protocol: &str, rules: &str) -> House {
    let file = yaml(dtab, protocol, "");
    House::start(&file.replace("dst: /s/probe}", &format!("dst: /s/probe, dtabOverrides: {rules}}}"))).await
}

fn call(client: &str, entry: (&str, &str)) -> Dispatch {
    Dispatch {
        contexts: vec![pair(CLIENT_ID, client)],
        dtab: vec![pair(entry.0, entry.1)],
        ..echo("/s/probe", "hi")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lawful_override_holds_at_every_hop() {
    let (usual, next) = (Backend::start().await, Backend::start().await);
    let rules = "[{prefixes: [/s/mid]}]";
    let dtab =
        format!("/s/probe => /s/mid ; /s/mid => {} ; /s/next => {}", inet(usual.addr()), inet(next.addr()));
    let inner = house(&dtab, "framed", rules).await;
    for protocol in ["thriftmux", "ttwitter", "header"] {
        let outer = house(&format!("/s/probe => {}", inet(inner.addr)), protocol, rules).await;
        for form in [Form::ThriftMux, Form::TTwitter] {
            let before = (usual.calls().len(), next.calls().len());
            let mut caller = Caller::connect(form, outer.addr).await;
            let answer = caller.call(&call("web", ("/s/mid", "/s/next"))).await.expect("an answer");
            assert_eq!(answer.text(), "hi", "{form:?} {protocol}");
            assert_eq!(
                (usual.calls().len(), next.calls().len()),
                (before.0, before.1 + 1),
                "{form:?} {protocol}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unlawful_override_is_refused_and_explained() {
    let backend = Backend::start().await;
    let rules = "[{clientId: web*, prefixes: [/s/mid]}, {clientId: ops, prefixes: [/], system: true}]";
    let to = inet(backend.addr());
    let house = house(&format!("/s/probe => /s/mid ; /s/mid => {to}"), "framed", rules).await;
    let mut caller = house.mux().await;
    let cases = [
        (call("batch", ("/s/mid", "/x")), "no rule of this listener is about this caller (client id batch"),
        (call("web-1", ("/s/probe", "/x")), "by rule 1 of `dtabOverrides`: that prefix is not among"),
        (call("web-1", ("/s/mid", &to)), "it does not allow to lead below /$ and /#"),
    ];
    for (at, (refused, why)) in cases.iter().enumerate() {
        let answer = caller.call(refused).await.expect("an answer");
        let said = answer.text();
        assert!(said.contains(why), "{said}");
        let cause = [("cause", "override")];
        house.pages.until("muxgate_listener_limited_total", &cause, at as f64 + 1.0).await;
    }
    assert!(backend.calls().is_empty());
    assert_eq!(caller.call(&call("ops", ("/s/mid", &to))).await.expect("an answer").text(), "hi");
    let without = Dispatch { dtab: Vec::new(), ..call("batch", ("/a", "/b")) };
    assert_eq!(caller.call(&without).await.expect("an answer").text(), "hi", "no dtab, no rule");
}
