//! What one caller sends costs its own call at most: the session, the endpoint and the numbers of everybody else stay.

use crate::support::{Disco, House, ROUTE, echo, inet, to, yaml};
use bytes::Bytes;
use muxgate_testkit::backend::Event;
use muxgate_testkit::caller::Form;
use muxgate_testkit::mux::Dispatch;
use muxgate_testkit::thrift::{CALL, Message, Protocol};
use muxgate_testkit::{Backend, Caller, mux};
use std::fs::OpenOptions;
use std::process::{Command, Stdio};

fn pair(prefix: &str, dst: &str) -> (Bytes, Bytes) {
    (Bytes::copy_from_slice(prefix.as_bytes()), Bytes::copy_from_slice(dst.as_bytes()))
}

/// A `*` in a prefix is good for the lookup. Mux services would end the session over it, so it stays here; TTwitter services
/// read it.
#[tokio::test(flavor = "multi_thread")]
async fn a_wildcard_delegation_is_used_and_kept_from_mux_services() {
    for form in [Form::ThriftMux, Form::TTwitter] {
        for protocol in ["thriftmux", "ttwitter"] {
            let backend = Backend::start().await;
            backend.accept_upgrades();
            let house = House::start(&yaml("/s/probe => /$/fail", protocol, "")).await;
            let wild = pair("/s/*", &inet(backend.addr()));
            let sent = vec![pair("/before", "/a"), wild, pair("/*/x", "/b"), pair("/after", "/c")];
            let mut caller = Caller::connect(form, house.addr).await;
            let call = Dispatch { dtab: sent.clone(), ..echo("/s/probe", "x") };
            for _ in 0..3 {
                assert_eq!(caller.call(&call).await.expect("an answer").text(), "x");
            }
            let kept = match protocol {
                "thriftmux" => vec![sent[0].clone(), sent[3].clone()],
                _ => sent,
            };
            for seen in backend.calls() {
                assert_eq!(seen.dtab, kept, "{form:?} to {protocol}");
            }
            let page = house.pages.get("/names").await;
            assert!(page.contains("/s/*=&gt;/$/inet/"), "{page}");
            let events = backend.events();
            let opened = events.iter().filter(|event| matches!(event, Event::Open(_))).count();
            assert_eq!((backend.calls().len(), opened), (3, 1), "{form:?} to {protocol}");
        }
    }
}

/// Mux carries anything; a framed service must not be sent what is not Thrift, and has done nothing wrong.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_not_thrift_fails_alone() {
    let backend = Backend::start().await;
    let accrual = "failureAccrual: {kind: io.l5d.consecutiveFailures, failures: 1}";
    let disco = Disco::new();
    disco.put("probe", &[backend.addr()]);
    let house = House::start(&(disco.namer() + &yaml("/s => /#/fs", "framed", accrual))).await;
    let mut caller = house.mux().await;
    let name = Bytes::from(vec![b'm'; 70_000]);
    let long =
        Message { protocol: Protocol::Binary, kind: CALL, name, seqid: 1, body: Bytes::from_static(&[0]) };
    for (body, why) in [
        (long.to_bytes(), "the method's name is longer than is accepted"),
        (Bytes::from_static(b"no Thrift"), "not a Thrift message"),
    ] {
        let call = Dispatch { body, ..echo("/s/probe", "") };
        let answer = caller.call(&call).await.expect("an answer");
        assert_eq!(answer.status, mux::ERROR, "{}", answer.text());
        assert!(answer.text().contains(why), "{}", answer.text());
        assert_eq!(caller.echo("/s/probe", "x").await.text(), "x");
    }
    assert_eq!(backend.calls().len(), 2);
    let metrics = house.pages.metrics().await;
    assert_eq!(metrics.sum("muxgate_listener_failures_total", &[("cause", "bad_request")]), 2.0);
    assert_eq!(metrics.sum("muxgate_endpoint_removals_total", &[]), 0.0);
}

/// More names than routes are kept, and than series.
const FLOOD: usize = 10_500;
/// Calls on the way at once.
const WINDOW: usize = 64;

#[tokio::test(flavor = "multi_thread")]
async fn a_route_keeps_its_series_in_a_flood_of_names() {
    let backend = Backend::start().await;
    let dtab = format!("/s => {}", inet(backend.addr()));
    let house = House::start(&yaml(&dtab, "thriftmux", "")).await;
    let mut caller = house.mux().await;
    assert_eq!(caller.echo("/s/probe", "x").await.text(), "x");
    for n in 0..FLOOD {
        caller.send(100 + n as u32, &echo(&format!("/s/x{n}"), "x")).await;
        if n >= WINDOW {
            assert_eq!(caller.answer().await.expect("an answer").1.text(), "x");
        }
    }
    for _ in 0..WINDOW {
        assert_eq!(caller.answer().await.expect("an answer").1.text(), "x");
    }
    assert_eq!(caller.echo("/s/probe", "x").await.text(), "x");
    assert_eq!(house.pages.sum("muxgate_route_requests_total", &[("route", ROUTE)]).await, 2.0);
    let page = house.pages.get("/names").await;
    assert!(page.contains(" more are not shown."), "{} bytes", page.len());
}

/// A full disk behind stdout is told, not panicked about.
#[test]
fn a_stdout_that_takes_nothing_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("gate.yaml");
    std::fs::write(&file, yaml(&to(([127, 0, 0, 1], 9).into()), "framed", "")).expect("a file");
    let full = OpenOptions::new().write(true).open("/dev/full").expect("a device that takes nothing");
    let out = Command::new(env!("CARGO_BIN_EXE_muxgate"))
        .arg("check")
        .arg(&file)
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .expect("an end");
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.starts_with("error: stdout: "), "{said}");
}
