//! A reply is judged once, and numbers, accrual, retries and spans go by that one judgement.

use crate::support::{House, ROUTE, is_error, of_kind, to, yaml};
use muxgate_testkit::Backend;
use muxgate_testkit::backend::{Plan, Reply};
use muxgate_testkit::caller::Form;
use muxgate_testkit::thrift::{EXCEPTION, REPLY};
use tokio::task::JoinSet;

/// What an answer counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counts {
    Success,
    /// Neither success nor failure: a declared exception is an answer of a healthy service.
    Answer,
    Failure,
    /// The caller's fault: says nothing about the service.
    Nothing,
}

/// The types of TApplicationException (thriftmux spec, section 15), with their labels.
const TYPES: [(i32, &str, Counts); 12] = [
    (0, "unknown", Counts::Failure),
    (1, "unknown_method", Counts::Nothing),
    (2, "invalid_message_type", Counts::Nothing),
    (3, "wrong_method_name", Counts::Failure),
    (4, "bad_sequence_id", Counts::Failure),
    (5, "missing_result", Counts::Failure),
    (6, "internal_error", Counts::Failure),
    (7, "protocol_error", Counts::Nothing),
    (8, "invalid_transform", Counts::Nothing),
    (9, "invalid_protocol", Counts::Nothing),
    (10, "unsupported_client_type", Counts::Nothing),
    (77, "other", Counts::Failure),
];

/// One failure marks the endpoint dead.
const ACCRUAL: &str = "failureAccrual: {kind: io.l5d.consecutiveFailures, failures: 1}";

/// Makes one call that is answered like this; the kind of the answer, and the gateway.
async fn answered(protocol: &str, settings: &str, reply: Reply) -> (u8, House) {
    let backend = Backend::start().await;
    backend.script([Plan::now(reply)]);
    let house = House::start(&yaml(&to(backend.addr()), protocol, &format!("{ACCRUAL}{settings}"))).await;
    let mut caller = house.plain().await;
    let answer = caller.echo("", "x").await.message().expect("a message");
    house.pages.until_idle().await;
    assert_eq!(backend.calls().len(), 1, "an answer is never asked for again");
    (answer.kind, house)
}

/// Looks at everything that goes by the judgement.
async fn check(case: &str, house: &House, counts: Counts, cause: &str) {
    let metrics = house.pages.metrics().await;
    for family in ["muxgate_listener", "muxgate_route", "muxgate_endpoint"] {
        let sum =
            |name: &str, labels: &[(&str, &str)]| metrics.sum(&format!("{family}{name}"), labels) as u32;
        assert_eq!(sum("_successes_total", &[]), u32::from(counts == Counts::Success), "{case} {family}");
        let failed = u32::from(counts == Counts::Failure);
        assert_eq!(sum("_failures_total", &[]), failed, "{case} {family}");
        assert_eq!(sum("_failures_total", &[("cause", cause)]), failed, "{case} {family}");
    }
    let dead = metrics.sum("muxgate_endpoint_removals_total", &[]) as u32;
    assert_eq!(dead, u32::from(counts == Counts::Failure), "{case}");
    assert_eq!(metrics.sum("muxgate_route_retries_total", &[("route", ROUTE)]), 0.0, "{case}");
    let spans = house.collector.wait(2).await;
    for kind in ["SERVER", "CLIENT"] {
        let errors = of_kind(&spans, kind).filter(|span| is_error(span)).count();
        assert_eq!(errors, usize::from(counts != Counts::Success), "{case} {kind}: {spans:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_type_of_application_exception_counts_as_its_class() {
    let mut all = JoinSet::new();
    for protocol in ["thriftmux", "framed"] {
        for (code, label, counts) in TYPES {
            all.spawn(one_type(protocol, code, label, counts));
        }
    }
    all.join_all().await;
}

async fn one_type(protocol: &str, code: i32, label: &str, counts: Counts) {
    let case = format!("{protocol} {label}");
    let (kind, house) = answered(protocol, "", Reply::Exception(code, "why".into())).await;
    assert_eq!(kind, EXCEPTION, "{case}");
    check(&case, &house, counts, "application_exception").await;
    for family in ["listener", "route", "endpoint"] {
        let name = format!("muxgate_{family}_application_exceptions_total");
        assert_eq!(house.pages.sum(&name, &[("type", label)]).await, 1.0, "{case}");
        assert_eq!(house.pages.sum(&name, &[]).await, 1.0, "{case}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn results_and_declared_exceptions_count_as_their_class() {
    for protocol in ["thriftmux", "framed"] {
        let declared = || Reply::Declared("no".into());
        for (settings, reply, counts) in [
            ("", Reply::Serve, Counts::Success),
            ("", declared(), Counts::Answer),
            (", declaredExceptions: failure", declared(), Counts::Failure),
        ] {
            let case = format!("{protocol} {counts:?}");
            let (kind, house) = answered(protocol, settings, reply).await;
            assert_eq!(kind, REPLY, "{case}");
            check(&case, &house, counts, "declared_exception").await;
        }
    }
}

/// After an exception that doubts the stream, the connection to a plain service is not used again; after others it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_its_service_doubts_is_left() {
    for (code, label, _) in TYPES {
        let backend = Backend::start().await;
        let house = House::start(&yaml(&to(backend.addr()), "framed", "failureAccrual: {kind: none}")).await;
        let mut caller = muxgate_testkit::Caller::connect(Form::FramedBinary, house.addr).await;
        backend.script([Plan::now(Reply::Exception(code, "why".into()))]);
        for _ in 0..3 {
            caller.echo("", "x").await;
        }
        let keeps = matches!(code, 0 | 1 | 5 | 6 | 77);
        let connections = backend.calls().iter().map(|call| call.conn).max();
        assert_eq!(connections, Some(usize::from(!keeps)), "{label}");
    }
}
