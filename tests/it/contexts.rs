//! What a call carries survives each hop that can carry it, byte for byte.

use crate::support::{Disco, House, echo, to, yaml};
use bytes::Bytes;
use muxgate_testkit::backend::{Call, Plan, Reply};
use muxgate_testkit::caller::Form;
use muxgate_testkit::mux::{self, Dispatch, Pairs};
use muxgate_testkit::{Backend, Caller};

const TRACE: &str = "com.twitter.finagle.tracing.TraceContext";
const DEADLINE: &str = "com.twitter.finagle.Deadline";
const RETRIES: &str = "com.twitter.finagle.Retries";
const CLIENT: &str = "com.twitter.finagle.thrift.ClientIdContext";

fn pair(key: &str, value: &[u8]) -> (Bytes, Bytes) {
    (Bytes::copy_from_slice(key.as_bytes()), Bytes::copy_from_slice(value))
}

/// A deadline that nobody reaches: stamped at the beginning of time, ends in the year 2200.
fn far() -> Vec<u8> {
    [1_u64.to_be_bytes(), 7_258_118_400_000_000_000_u64.to_be_bytes()].concat()
}

fn sent() -> Dispatch {
    Dispatch {
        contexts: vec![
            pair("of.somebody", b"\x00\xff raw"),
            pair("", b"an empty key"),
            pair("an empty value", b""),
            pair("twice", b"first"),
            pair(DEADLINE, &far()),
            pair(RETRIES, &7_i32.to_be_bytes()),
            pair(CLIENT, b"client.of.test"),
            pair("twice", b"last"),
        ],
        dtab: vec![pair("/unused", b"/a  |  /b"), pair("/more", b"0.5 * /x & /y")],
        ..echo("/s/probe", "x")
    }
}

/// Callers and services that carry contexts.
const HOPS: [(Form, &str); 4] = [
    (Form::ThriftMux, "thriftmux"),
    (Form::ThriftMux, "ttwitter"),
    (Form::TTwitter, "thriftmux"),
    (Form::TTwitter, "ttwitter"),
];

async fn seen(call: &Dispatch, form: Form, protocol: &str) -> Call {
    let backend = Backend::start().await;
    backend.accept_upgrades();
    let house = House::before(backend.addr(), protocol).await;
    let mut caller = Caller::connect(form, house.addr).await;
    assert_eq!(caller.call(call).await.expect("an answer").text(), "x", "{form:?} to {protocol}");
    backend.calls().pop().expect("a call")
}

fn all<'a>(contexts: &'a Pairs, key: &str) -> Vec<&'a [u8]> {
    contexts.iter().filter(|(k, _)| k == key).map(|(_, value)| &value[..]).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn contexts_arrive_as_they_were_sent() {
    for (form, protocol) in HOPS {
        let seen = seen(&sent(), form, protocol).await;
        let hop = format!("{form:?} to {protocol}: {:?}", seen.contexts);
        for (key, value) in [
            ("of.somebody", &b"\x00\xff raw"[..]),
            ("", b"an empty key"),
            ("an empty value", b""),
            ("twice", b"last"),
            (DEADLINE, &far()),
            (CLIENT, b"client.of.test"),
            // Each hop counts its own.
            (RETRIES, &0_i32.to_be_bytes()),
        ] {
            assert_eq!(all(&seen.contexts, key), [value], "{key}: {hop}");
        }
        assert_eq!(all(&seen.contexts, TRACE).len(), 1, "{hop}");
        assert_eq!(seen.dtab, sent().dtab, "{hop}");
        assert_eq!(&seen.dest[..], b"", "the name is used up: {hop}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_contexts_are_handed_on_and_cost_nothing() {
    let odd = [(TRACE, &b"short"[..]), (DEADLINE, b"\x01"), (RETRIES, b"x"), (CLIENT, b"")];
    for (form, protocol) in HOPS {
        let contexts = odd.iter().map(|(key, value)| pair(key, value)).collect();
        let seen = seen(&Dispatch { contexts, ..echo("/s/probe", "x") }, form, protocol).await;
        for (key, value) in odd {
            let got = all(&seen.contexts, key);
            assert!(got.contains(&value), "{form:?} to {protocol}: {key}: {got:?}");
        }
        // The next hop takes the last of a key: that must be what the gateway says itself.
        assert_eq!(all(&seen.contexts, TRACE).last().map(|value| value.len()), Some(32));
        assert_eq!(all(&seen.contexts, RETRIES).last(), Some(&&0_i32.to_be_bytes()[..]));
    }
}

/// Of a repeated key the last stands alone, also if the gateway can read only one of them.
#[tokio::test(flavor = "multi_thread")]
async fn the_last_of_a_known_context_stands_alone() {
    let past = [1_u64.to_be_bytes(), 2_u64.to_be_bytes()].concat();
    for (first, last) in [(past.clone(), far()), (vec![1], far()), (past, vec![1])] {
        let contexts = vec![pair(DEADLINE, &first), pair("other", b"x"), pair(DEADLINE, &last)];
        let call = Dispatch { contexts, ..echo("/s/probe", "x") };
        let seen = seen(&call, Form::ThriftMux, "thriftmux").await;
        assert_eq!(all(&seen.contexts, DEADLINE), [&last[..]]);
    }
    let contexts = vec![pair(CLIENT, b"one"), pair(CLIENT, b"two")];
    let call = Dispatch { contexts, ..echo("/s/probe", "x") };
    assert_eq!(all(&seen(&call, Form::ThriftMux, "thriftmux").await.contexts, CLIENT), [b"two"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_of_the_name_and_contexts_of_replies_arrive() {
    let backend = Backend::start().await;
    let house = House::before(backend.addr(), "thriftmux").await;
    let contexts = vec![pair("reply", b"\xfe"), pair("reply", b"again")];
    backend.script([Plan::now(Reply::With(contexts.clone()))]);
    let mut client = house.mux().await;
    let answer = client.call(&echo("/s/probe/left/over", "x")).await.expect("an answer");
    assert_eq!(answer.contexts, contexts);
    assert_eq!(backend.calls()[0].dest, "/left/over");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tighter_limit_of_our_own_becomes_the_deadline() {
    let backend = Backend::start().await;
    let limit = "requestAttemptTimeoutMs: 30000";
    let house = House::start(&yaml(&to(backend.addr()), "thriftmux", limit)).await;
    let mut client = house.mux().await;
    let call = Dispatch { contexts: vec![pair(DEADLINE, &far())], ..echo("/s/probe", "x") };
    client.call(&call).await.expect("an answer");
    let seen = backend.calls().remove(0);
    let value = seen.context(DEADLINE).expect("a deadline");
    let number = |at: usize| u64::from_be_bytes(value[at..at + 8].try_into().expect("eight bytes"));
    assert_eq!(value.len(), 16);
    assert!(number(8) - number(0) <= 30_000_000_000, "{value:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn requeues_are_counted_from_0() {
    let (one, two) = (Backend::start().await, Backend::start().await);
    let disco = Disco::new();
    disco.put("probe", &[one.addr(), two.addr()]);
    let house = House::start(&(disco.namer() + &yaml("/s => /#/fs", "thriftmux", ""))).await;
    one.script([Plan::now(Reply::Nack(Vec::new()))]);
    two.script([Plan::now(Reply::Nack(Vec::new()))]);
    let mut client = house.mux().await;
    let call = Dispatch { contexts: vec![pair(RETRIES, &9_i32.to_be_bytes())], ..echo("/s/probe", "x") };
    let answer = client.call(&call).await.expect("an answer");
    assert_eq!((answer.status, answer.text().as_str()), (mux::OK, "x"));
    let calls = [one.calls(), two.calls()].concat();
    let mut counts: Vec<_> = calls.iter().flat_map(|call| all(&call.contexts, RETRIES)).collect();
    counts.sort_unstable();
    assert_eq!(counts, [0_i32, 1, 2].map(i32::to_be_bytes).each_ref().map(|n| &n[..]));
}
