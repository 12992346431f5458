//! What one call may bring: it is refused alone, in its caller's own form.

use super::{house, limited};
use crate::support::{House, echo};
use bytes::Bytes;
use muxgate_testkit::caller::{Answer, Form};
use muxgate_testkit::mux::{self, Dispatch, Pairs};
use muxgate_testkit::thrift::{EXCEPTION, Message, Protocol};
use muxgate_testkit::{Backend, Caller};

/// One limit of each kind, all small.
const SMALL: &str = "maxContexts: 3, maxContextBytes: 200, maxDtabEntries: 2, maxDestinationBytes: 16, \
                     maxMethodNameBytes: 8";

fn pairs(count: usize, value: usize) -> Pairs {
    let pair = |n| (Bytes::from(format!("/key/{n}")), Bytes::from(format!("/{}", "v".repeat(value))));
    (0..count).map(pair).collect()
}

fn named(method: &str) -> Bytes {
    Message::call(Protocol::Binary, method, 7, "x").to_bytes()
}

/// What is just within each limit, and what is just above it.
fn calls() -> [(&'static str, Dispatch, Dispatch); 5] {
    let call = || echo("/s/probe", "x");
    [
        (
            "contexts",
            Dispatch { contexts: pairs(2, 1), ..call() },
            Dispatch { contexts: pairs(4, 1), ..call() },
        ),
        (
            "contexts",
            Dispatch { contexts: pairs(1, 150), ..call() },
            Dispatch { contexts: pairs(2, 150), ..call() },
        ),
        ("dtab", Dispatch { dtab: pairs(2, 1), ..call() }, Dispatch { dtab: pairs(3, 1), ..call() }),
        ("destination", call(), echo("/s/probe-and-more", "x")),
        ("method_name", call(), Dispatch { body: named("ninechars"), ..call() }),
    ]
}

fn assert_refused(answer: &Answer, form: Form, what: &str) {
    if form == Form::ThriftMux {
        // An error and no nack: nothing was done, but it would be refused again.
        assert_eq!(answer.status, mux::ERROR, "{what}");
        assert!(answer.flags().is_some_and(|flags| flags & 4 == 4), "{what}: {answer:?}");
    } else {
        let message = answer.message().expect("a Thrift message");
        assert_eq!((message.kind, message.seqid), (EXCEPTION, 7), "{what}");
    }
}

async fn count(house: &House, cause: &str) -> f64 {
    house.pages.sum("muxgate_listener_limited_total", &[("cause", cause)]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_brings_too_much_is_refused_alone() {
    let backend = Backend::start().await;
    let house = house(&backend, SMALL).await;
    for form in [Form::ThriftMux, Form::TTwitter] {
        let mut caller = Caller::connect(form, house.addr).await;
        for (cause, within, above) in calls() {
            let what = format!("{form:?}, {cause}");
            let before = count(&house, cause).await;
            let answer = caller.call(&within).await.expect("an answer");
            assert_eq!((answer.status, answer.text().as_str()), (mux::OK, "x"), "{what}");
            let served = backend.calls().len();
            assert_refused(&caller.call(&above).await.expect("an answer"), form, &what);
            limited(&house, cause, before + 1.0).await;
            assert_eq!(backend.calls().len(), served, "{what}");
        }
        assert_eq!(caller.echo("/s/probe", "alive").await.text(), "alive");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_method_name_is_refused_in_every_form() {
    let backend = Backend::start().await;
    let house = house(&backend, SMALL).await;
    for form in Form::ALL {
        let mut caller = Caller::connect(form, house.addr).await;
        let body = Message::call(form.protocol(), "ninechars", 7, "x").to_bytes();
        let refused = caller.call(&Dispatch { body, ..echo("/s/probe", "x") }).await.expect("an answer");
        assert_refused(&refused, form, &format!("{form:?}"));
        assert_eq!(caller.echo("/s/probe", "alive").await.text(), "alive");
    }
    limited(&house, "method_name", 4.0).await;
    // On Mux, where bodies need not be Thrift, a name beyond any limit does not slip through as something else.
    let mut caller = house.mux().await;
    let endless = Dispatch { body: named(&"n".repeat(2000)), ..echo("/s/probe", "x") };
    assert_refused(&caller.call(&endless).await.expect("an answer"), Form::ThriftMux, "endless");
    limited(&house, "method_name", 5.0).await;
    let strange = Dispatch { body: Bytes::from_static(b"not Thrift"), ..echo("/s/probe", "x") };
    caller.call(&strange).await.expect("an answer");
    assert_eq!(backend.calls().pop().expect("it was passed on").bytes, "not Thrift");
}

/// Limits can be raised as well: above the defaults, calls go through whole.
#[tokio::test(flavor = "multi_thread")]
async fn limits_above_the_defaults_hold_too() {
    let backend = Backend::start().await;
    let large = "maxContexts: 300, maxContextBytes: 200000, maxDtabEntries: 200, maxDestinationBytes: 9000";
    let house = house(&backend, large).await;
    for form in [Form::ThriftMux, Form::TTwitter] {
        let mut caller = Caller::connect(form, house.addr).await;
        let call = Dispatch { contexts: pairs(290, 500), dtab: pairs(150, 1), ..echo("/s/probe", "x") };
        let answer = caller.call(&call).await.expect("an answer");
        assert_eq!(answer.text(), "x", "{form:?}");
        let seen = backend.calls().pop().expect("a call");
        assert_eq!(seen.dtab.len(), 150, "{form:?}");
        let passed = seen.contexts.iter().filter(|(key, _)| key.starts_with(b"/key")).count();
        assert_eq!(passed, 290, "{form:?}");
    }
}
