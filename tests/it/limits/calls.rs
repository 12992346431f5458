//! What one call may bring: it is refused alone, in its caller's own form.

use super::{house, limited};
use crate::support::{House, echo};
use bytes::Bytes;
use muxgate_testkit::caller::{Answer, Form, framed};
use muxgate_testkit::mux::{self, Dispatch, Pairs};
use muxgate_testkit::raw::Raw;
use muxgate_testkit::theader::Header;
use muxgate_testkit::thrift::{EXCEPTION, Message, Protocol, REPLY};
use muxgate_testkit::{Backend, Caller};
use tokio::io::AsyncReadExt;

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

/// Info headers of a THeader frame are contexts, and two of them say where a call goes.
#[tokio::test(flavor = "multi_thread")]
async fn info_headers_that_are_too_much_are_refused_alone() {
    let backend = Backend::start().await;
    let house = house(&backend, SMALL).await;
    let mut caller = Raw::connect(house.addr).await;
    let long = "v".repeat(120);
    let many: Vec<_> = ["a", "b", "c", "d"].map(|key| (key, "1")).into();
    let cases: [(&str, Vec<(&str, &str)>); 5] = [
        ("contexts", many),
        ("contexts", vec![("a", &long), ("b", &long)]),
        ("dtab", vec![("l5d-dtab", "/a=>/b;/c=>/d;/e=>/f")]),
        ("destination", vec![("l5d-dst", "/s/probe-and-more")]),
        ("method_name", Vec::new()),
    ];
    for (cause, info) in cases {
        let before = count(&house, cause).await;
        let method = if cause == "method_name" { "ninechars" } else { "echo" };
        let refused = header_call(&mut caller, method, &info).await;
        assert_eq!((refused.kind, refused.seqid), (EXCEPTION, 7), "{cause}");
        limited(&house, cause, before + 1.0).await;
        assert!(backend.calls().is_empty(), "{cause}");
    }
    let alive = header_call(&mut caller, "echo", &[("a", "1"), ("b", "2"), ("c", "3")]).await;
    assert_eq!(alive.kind, REPLY);
}

async fn header_call(caller: &mut Raw, method: &str, info: &[(&str, &str)]) -> Message {
    let mut frame = Header::around(&Message::call(Protocol::Binary, method, 7, "x"), false);
    frame.info = info
        .iter()
        .map(|(key, value)| (Bytes::from(key.to_string()), Bytes::from(value.to_string())))
        .collect();
    caller.send_bytes(&framed(&frame.to_bytes())).await;
    let reply = Bytes::from(caller.frame().await.expect("an answer"));
    let header = Header::parse(&reply).expect("a THeader frame");
    assert_eq!(header.seqid, 7);
    Message::parse(&header.message).expect("a Thrift message")
}

/// What is dropped of strangers' calls has no limits and may be senseless: it is stepped over. The destination counts.
#[tokio::test(flavor = "multi_thread")]
async fn what_strangers_say_beside_their_call_refuses_nothing() {
    let backend = Backend::start().await;
    let house = house(&backend, &format!("trust: outside, {SMALL}")).await;
    for form in [Form::ThriftMux, Form::TTwitter] {
        let mut caller = Caller::connect(form, house.addr).await;
        let much = Dispatch { contexts: pairs(1000, 200), dtab: pairs(1000, 200), ..echo("/s/probe", "x") };
        let answer = caller.call(&much).await.expect("an answer");
        assert_eq!((answer.status, answer.text().as_str()), (mux::OK, "x"), "{form:?}");
        let seen = backend.calls().pop().expect("a call");
        assert!(seen.dtab.is_empty() && seen.contexts.iter().all(|(key, _)| !key.starts_with(b"/key")));
        for dst in ["/s/probe-and-more", "/a b"] {
            let refused = caller.call(&echo(dst, "x")).await.expect("an answer");
            assert_refused(&refused, form, &format!("{form:?}, {dst}"));
        }
    }
    let mut caller = Raw::connect(house.addr).await;
    let long = "v".repeat(150);
    let many = vec![("k", &long[..]); 300];
    for info in
        [many, vec![("L5D-Dtab", "xx")], vec![("l5d-dtab", "/a=>/b;/c=>/d;/e=>/f"), ("l5d-dst", "/s/probe")]]
    {
        assert_eq!(header_call(&mut caller, "echo", &info).await.kind, REPLY);
    }
    for dst in ["/s/probe-and-more", "/a b"] {
        assert_eq!(header_call(&mut caller, "echo", &[("L5d-Dst", dst)]).await.kind, EXCEPTION, "{dst}");
    }
    for (cause, times) in [("contexts", 0.0), ("dtab", 0.0), ("destination", 3.0)] {
        assert_eq!(count(&house, cause).await, times, "{cause}");
    }
    assert_eq!(backend.calls().len(), 5);
}

/// The first bytes of a frame that is not taken are enough for a last word, also if they are a connection's first.
#[tokio::test(flavor = "multi_thread")]
async fn a_first_frame_over_the_limit_is_answered_in_every_form() {
    let backend = Backend::start().await;
    for protocol in ["detect", "header"] {
        let house = house(&backend, &format!("maxFrameBytes: 4096, protocol: {protocol}")).await;
        let message = Message::call(Protocol::Binary, "echo", 7, &"x".repeat(5000));
        let mut caller = Raw::connect(house.addr).await;
        caller.send_bytes(&framed(&Header::around(&message, false).to_bytes())[..100]).await;
        let reply = Bytes::from(caller.frame().await.expect("a last word"));
        let header = Header::parse(&reply).expect("a THeader frame");
        let refused = Message::parse(&header.message).expect("a Thrift message");
        assert_eq!(
            (refused.kind, &refused.name[..], refused.seqid),
            (EXCEPTION, &b"echo"[..], 7),
            "{protocol}"
        );
        caller.expect_close().await;
        limited(&house, "frame_too_long", 1.0).await;
        if protocol == "detect" {
            let mut caller = Raw::connect(house.addr).await;
            caller.send_bytes(&framed(&message.to_bytes())[..100]).await;
            let reply =
                Message::parse(&caller.frame().await.expect("a last word").into()).expect("a message");
            assert_eq!((reply.kind, reply.seqid), (EXCEPTION, 7));
            caller.expect_close().await;
            limited(&house, "frame_too_long", 2.0).await;
        }
    }
    assert!(backend.calls().is_empty());
}

/// Messages without frames are walked to find their ends.
#[tokio::test(flavor = "multi_thread")]
async fn unframed_messages_have_bounds_of_their_own() {
    let backend = Backend::start().await;
    let house = house(&backend, "maxNesting: 4, maxFrameBytes: 4096, maxMethodNameBytes: 8").await;
    let nested = |levels: usize| {
        let body = [[12, 0, 1].repeat(levels - 1), vec![0; levels]].concat();
        Message { body: body.into(), ..Message::call(Protocol::Binary, "ping", 7, "") }.to_bytes()
    };
    let mut caller = Raw::connect(house.addr).await;
    caller.send_bytes(&nested(4)).await;
    // void ping(): a reply with an empty struct.
    caller.expect("80010002 00000004 70696e67 00000007 00").await;
    let long = Message::call(Protocol::Binary, "echo", 7, &"x".repeat(5000)).to_bytes();
    let name = Message::call(Protocol::Binary, &"n".repeat(2000), 7, "").to_bytes();
    for (cause, bytes, answered) in
        [("nesting", nested(5), true), ("message_too_long", long, true), ("method_name", name, false)]
    {
        let mut stranger = Raw::connect(house.addr).await;
        stranger.send_bytes(&bytes).await;
        // Where the next message begins cannot be known: the connection ends, with a last word if it is known for which call.
        if answered {
            stranger.expect("80010003").await;
        }
        let mut rest = Vec::new();
        let _ = stranger.stream().read_to_end(&mut rest).await;
        limited(&house, cause, 1.0).await;
    }
    assert_eq!(backend.calls().len(), 1);
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
