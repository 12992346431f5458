//! A reply never reaches the wrong caller: unique payloads, random delays, time limits and cancellations together.

use crate::support::{House, echo, to, yaml};
use muxgate_testkit::backend::Plan;
use muxgate_testkit::caller::Form;
use muxgate_testkit::{Backend, Caller, mux};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::task::JoinSet;

/// Callers of each form.
const CALLERS: u64 = 6;
/// Calls of each caller.
const CALLS: u32 = 150;
/// Calls on the way at once on a Mux connection.
const WINDOW: usize = 16;
/// Calls at once on all connections together, as many that are given up and not answered yet, and tags that rest.
const MOST_TAGS: u32 = 2 * CALLERS as u32 * (WINDOW as u32 + 3) + 256;
/// The time limit of an attempt and the longest delay of the service, in milliseconds: some are cut off.
const LIMIT_MS: u64 = 40;
const LONGEST_MS: u64 = 50;

#[tokio::test(flavor = "multi_thread")]
async fn every_reply_reaches_its_caller() {
    for protocol in ["thriftmux", "framed", "ttwitter", "buffered", "header"] {
        let backend = Backend::start().await;
        backend.accept_upgrades();
        backend.decide(|call| {
            let sum = call.bytes.iter().fold(7_u64, |sum, byte| sum.wrapping_mul(31) + u64::from(*byte));
            Plan::after(Duration::from_millis(if sum % 4 == 0 { sum / 4 % LONGEST_MS } else { 0 }))
        });
        let clients = format!("requestAttemptTimeoutMs: {LIMIT_MS}");
        let house = House::start(&yaml(&to(backend.addr()), protocol, &clients)).await;
        let mut callers = JoinSet::new();
        for n in 0..CALLERS {
            callers.spawn(many_at_once(house.addr, n));
            callers.spawn(one_by_one(house.addr, n, Form::FramedBinary));
            callers.spawn(one_by_one(house.addr, n, Form::FramedCompact));
            callers.spawn(one_by_one(house.addr, n, Form::TTwitter));
        }
        let right: usize = callers.join_all().await.into_iter().sum();
        assert!(right > CALLS as usize, "{protocol}: {right} calls were answered");
        house.pages.until_idle().await;
        // Tags come back: there are never many more than calls at once.
        let tags = backend.calls().into_iter().filter_map(|call| call.tag);
        assert!(tags.max().is_none_or(|tag| tag < MOST_TAGS), "{protocol}");
    }
}

/// Texts are unique, and of many lengths.
fn text(form: Form, caller: u64, n: u32) -> String {
    format!("{form:?} {caller} {n} {}", "x".repeat((n as usize * 97) % 3000))
}

/// What may come in place of a reply.
fn is_timeout(text: &str) -> bool {
    text.contains("no answer within the attempt's")
}

async fn one_by_one(gateway: SocketAddr, caller: u64, form: Form) -> usize {
    let mut client = Caller::connect(form, gateway).await;
    let mut right = 0;
    for n in 0..CALLS {
        let sent = text(form, caller, n);
        let got = client.echo("/s/probe", &sent).await.text();
        assert!(got == sent || is_timeout(&got), "{sent} was answered by {got}");
        right += usize::from(got == sent);
    }
    right
}

/// A third of the calls is given up.
async fn many_at_once(gateway: SocketAddr, caller: u64) -> usize {
    let mut client = Caller::connect(Form::ThriftMux, gateway).await;
    let mut dice = SmallRng::seed_from_u64(caller);
    let mut open = HashMap::new();
    let mut right = 0;
    for n in 0..CALLS {
        // Tags are used again as soon as they are free.
        let tag = (2..).find(|tag| !open.contains_key(tag)).expect("a free tag");
        let sent = text(Form::ThriftMux, caller, n);
        client.send(tag, &echo("/s/probe", &sent)).await;
        open.insert(tag, sent);
        if dice.random_range(0..3) == 0 {
            client.discard(tag, "enough").await;
        }
        while open.len() >= WINDOW {
            right += take(&mut client, &mut open).await;
        }
    }
    while !open.is_empty() {
        right += take(&mut client, &mut open).await;
    }
    right
}

async fn take(client: &mut Caller, open: &mut HashMap<u32, String>) -> usize {
    let (kind, tag, body) = client.message().await.expect("an open connection");
    let sent = open.remove(&tag).unwrap_or_else(|| panic!("tag {tag} is not in use"));
    if kind == mux::RDISCARDED {
        return 0;
    }
    assert_eq!(kind, mux::RDISPATCH);
    let (status, contexts, body) = mux::parse_rdispatch(&body).expect("an Rdispatch");
    let got = muxgate_testkit::caller::Answer { status, contexts, body }.text();
    assert!(got == sent || is_timeout(&got), "{sent} was answered by {got}");
    usize::from(got == sent)
}
