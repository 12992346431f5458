//! Host names: asked again in time, the last good addresses kept, and nothing asked for nobody.

use super::fake::path;
use crate::names::namers::configured::Env;
use crate::names::namers::dns::{DOUBT, EARLIEST, Found, Hosts, LATEST, Resolve};
use crate::names::namers::system;
use crate::names::{Addr, Answer, Bound, Lookup, Named, Namers};
use async_trait::async_trait;
use muxgate_wire::name::NameTree;
use parking_lot::Mutex;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Says what it is told, and counts.
#[derive(Clone)]
struct Script(Arc<Mutex<(Found, usize)>>);

#[async_trait]
impl Resolve for Script {
    async fn resolve(&self, _: &str) -> Found {
        let mut script = self.0.lock();
        script.1 += 1;
        script.0.clone()
    }
}

impl Script {
    fn say(&self, found: Found) {
        self.0.lock().0 = found;
    }

    fn asked(&self) -> usize {
        self.0.lock().1
    }
}

fn ips(last: u8, ttl: Duration) -> Found {
    Found::Ips(vec![IpAddr::V4(Ipv4Addr::new(192, 0, 2, last))], Instant::now() + ttl)
}

fn script(found: Found) -> (Script, Namers) {
    let script = Script(Arc::new(Mutex::new((found, 0))));
    (script.clone(), system(&Env::new(Hosts::new(script))).into_iter().collect())
}

fn bound(namers: &Namers, name: &str) -> Bound {
    let asked = path(name);
    let namer = namers.candidates(&asked)[0];
    match namers.get(namer).unwrap().lookup(&asked) {
        Lookup::Fixed(Answer::Ok(NameTree::Leaf(Named::Bound(bound)))) => bound,
        other => panic!("{other:?}"),
    }
}

fn members(bound: &Bound) -> String {
    match &*bound.addr.borrow() {
        Addr::Bound(endpoints) => endpoints.iter().map(|e| e.addr.to_string()).collect::<Vec<_>>().join(" "),
        other => format!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn literals_need_no_task() {
    let (script, namers) = script(Found::Neg);
    for (name, addr, residual) in [
        ("/$/inet/127.0.0.1/80/x", "127.0.0.1:80", "/x"),
        ("/$/inet/::1/80", "[::1]:80", "/"),
        ("/$/inet/8080/x", "127.0.0.1:8080", "/x"),
        ("/$/fixedinet/10.0.0.1/80", "10.0.0.1:80", "/"),
        ("/$/io.buoyant.rinet/80/10.0.0.1/x/y", "10.0.0.1:80", "/x/y"),
    ] {
        let bound = bound(&namers, name);
        assert_eq!((members(&bound).as_str(), bound.residual.as_str()), (addr, residual), "{name}");
        assert!(bound.addr.has_changed().is_err(), "nothing will ever change");
    }
    assert_eq!((script.asked(), tokio::runtime::Handle::current().metrics().num_alive_tasks()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_host_is_asked_again_by_ttl_and_within_bounds() {
    let (script, namers) = script(ips(1, Duration::from_secs(2)));
    let bound = bound(&namers, "/$/inet/web/80");
    assert_eq!(members(&bound), "Pending");
    sleep(Duration::from_millis(1)).await;
    assert_eq!((members(&bound).as_str(), script.asked()), ("192.0.2.1:80", 1));
    script.say(ips(2, Duration::from_secs(3600)));
    sleep(Duration::from_millis(1998)).await;
    assert_eq!(script.asked(), 1);
    sleep(Duration::from_millis(2)).await;
    assert_eq!((members(&bound).as_str(), script.asked()), ("192.0.2.2:80", 2));
    // A long TTL is cut to five seconds, one of zero is stretched to one.
    script.say(ips(3, Duration::ZERO));
    sleep(LATEST).await;
    assert_eq!(script.asked(), 3);
    sleep(EARLIEST * 3).await;
    assert_eq!(script.asked(), 6);
}

#[tokio::test(start_paused = true)]
async fn failing_to_ask_keeps_the_last_good_and_no_such_host_does_not() {
    let (script, namers) = script(Found::Failed("resolver is away".into()));
    let bound = bound(&namers, "/$/inet/web/80");
    sleep(Duration::from_millis(1)).await;
    assert_eq!(members(&bound), r#"Failed("resolver is away")"#);
    script.say(ips(1, LATEST));
    sleep(EARLIEST).await;
    assert_eq!(members(&bound), "192.0.2.1:80");
    script.say(Found::Failed("again".into()));
    sleep(LATEST).await;
    assert_eq!(members(&bound), "192.0.2.1:80");
    script.say(ips(2, LATEST));
    sleep(EARLIEST).await;
    assert_eq!(members(&bound), "192.0.2.2:80");
    script.say(Found::Neg);
    sleep(LATEST).await;
    assert_eq!(members(&bound), "Neg");
}

#[tokio::test(start_paused = true)]
async fn one_task_a_host_and_none_for_nobody() {
    let (script, namers) = script(ips(1, LATEST));
    let (one, two) = (bound(&namers, "/$/inet/web/80"), bound(&namers, "/$/inet/web/80/x"));
    assert!(one.addr.same_channel(&two.addr));
    sleep(LATEST / 2).await;
    let asked = script.asked();
    drop((one, two));
    sleep(LATEST * 10).await;
    assert_eq!((script.asked(), tokio::runtime::Handle::current().metrics().num_alive_tasks()), (asked, 0));
}

#[tokio::test(start_paused = true)]
async fn a_fixed_host_is_asked_until_it_answers() {
    let (script, namers) = script(Found::Failed("away".into()));
    let bound = bound(&namers, "/$/fixedinet/web/80");
    sleep(EARLIEST * 2).await;
    script.say(ips(1, Duration::ZERO));
    sleep(EARLIEST).await;
    let asked = script.asked();
    script.say(ips(2, Duration::ZERO));
    sleep(LATEST * 10).await;
    assert_eq!((members(&bound).as_str(), script.asked()), ("192.0.2.1:80", asked));
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_gone_after_an_outage_is_doubted_for_a_while() {
    let (script, namers) = script(ips(1, LATEST));
    let bound = bound(&namers, "/$/inet/web/80");
    sleep(EARLIEST).await;
    script.say(Found::Failed("away".into()));
    sleep(LATEST).await;
    script.say(Found::Neg);
    sleep(DOUBT).await;
    assert_eq!(members(&bound), "192.0.2.1:80");
    sleep(LATEST * 2).await;
    assert_eq!(members(&bound), "Neg");
    // Without an outage before it, the word is believed at once.
    script.say(ips(2, LATEST));
    sleep(LATEST).await;
    assert_eq!(members(&bound), "192.0.2.2:80");
    script.say(Found::Neg);
    sleep(LATEST).await;
    assert_eq!(members(&bound), "Neg");
}
