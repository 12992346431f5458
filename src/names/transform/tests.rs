//! Transformers in front of a namer whose sets a test changes.

use super::change::{Change, Subnet};
use super::*;
use crate::names::addr::{Addr, Bound, EndpointAddr};
use crate::names::namer::{Answer, Lookup, Named};
use crate::names::tests::fake::path;
use muxgate_wire::name::NameTree;
use std::net::SocketAddr;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// Has one name, a set.
struct One(Path, watch::Receiver<Addr>);

impl Namer for One {
    fn prefix(&self) -> &Path {
        &self.0
    }

    fn lookup(&self, asked: &Path) -> Lookup {
        let (id, residual) = (asked.take(3), asked.skip(3));
        Lookup::Fixed(Answer::bound(Bound::new(id, residual, self.1.clone())))
    }
}

fn endpoints(texts: &[(&str, f64)]) -> Addr {
    Addr::bound(
        texts.iter().map(|(text, weight)| EndpointAddr {
            addr: text.parse::<SocketAddr>().unwrap(),
            weight: *weight,
        }),
    )
}

struct Before {
    to: watch::Sender<Addr>,
    answer: watch::Receiver<Answer>,
}

/// The name `/#/one/a/rest` behind a transformer.
fn before(change: Change, first: Addr) -> Before {
    let (to, addr) = watch::channel(first);
    let namer = Transformed::new(Arc::new(One(path("/#/one"), addr)), change, Handle::current());
    let Lookup::Live(answer) = namer.lookup(&path("/#/one/a/rest")) else { panic!("fixed") };
    Before { to, answer }
}

fn shown(answer: &Answer) -> String {
    match answer {
        Answer::Ok(NameTree::Leaf(Named::Bound(bound))) => match &*bound.addr.borrow() {
            Addr::Bound(all) => {
                let all: Vec<_> = all.iter().map(|e| format!("{}*{}", e.addr, e.weight)).collect();
                format!("{bound}: {}", all.join(" "))
            }
            other => format!("{bound}: {other:?}"),
        },
        Answer::Ok(NameTree::Leaf(Named::Path(name))) => name.to_string(),
        Answer::Ok(NameTree::Neg) => "neg".into(),
        other => format!("{other:?}"),
    }
}

impl Before {
    async fn wait(&mut self, wanted: &str) {
        loop {
            let (text, addr) = {
                let answer = self.answer.borrow_and_update();
                let addr = match &*answer {
                    Answer::Ok(NameTree::Leaf(Named::Bound(bound))) => Some(bound.addr.clone()),
                    _ => None,
                };
                (shown(&answer), addr)
            };
            if text == wanted {
                return;
            }
            // A set changes in its place.
            let mut addr = addr.unwrap_or_else(|| Addr::Pending.fixed());
            tokio::select! {
                changed = self.answer.changed() => changed.unwrap(),
                Ok(()) = addr.changed() => {}
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_port_is_replaced_and_changes_follow() {
    let mut name = before(Change::port(4141), endpoints(&[("10.0.0.1:80", 2.0)]));
    name.wait("/%/io.l5d.port/4141/#/one/a + /rest: 10.0.0.1:4141*2").await;
    let kept = name.answer.borrow().clone();
    name.to.send_replace(endpoints(&[("10.0.0.2:80", 1.0)]));
    name.wait("/%/io.l5d.port/4141/#/one/a + /rest: 10.0.0.2:4141*1").await;
    assert!(kept.same(&name.answer.borrow()), "the addresses change in their place");
}

#[tokio::test(start_paused = true)]
async fn a_set_without_addresses_is_negative_until_one_comes() {
    let subnet = Subnet { ip: "10.1.2.9".parse().unwrap(), bits: 24 };
    let mut name = before(Change::local_node(subnet), Addr::Pending);
    name.wait("Pending").await;
    name.to.send_replace(endpoints(&[("10.1.3.1:80", 1.0)]));
    name.wait("neg").await;
    name.to.send_replace(endpoints(&[("10.1.3.1:80", 1.0), ("10.1.2.1:80", 1.0)]));
    name.wait("/%/io.l5d.k8s.localnode/10.1.2.9/#/one/a + /rest: 10.1.2.1:80*1").await;
    name.to.send_replace(Addr::Neg);
    name.wait("neg").await;
}

#[tokio::test(start_paused = true)]
async fn hosts_are_kept_or_not() {
    let all = endpoints(&[("127.0.0.1:80", 1.0), ("192.0.2.7:80", 1.0)]);
    before(Change::localhost(), all.clone())
        .wait("/%/io.l5d.localhost/#/one/a + /rest: 127.0.0.1:80*1")
        .await;
    let host = Change::host("192.0.2.7".parse().unwrap());
    before(host, all).wait("/%/io.l5d.specificHost/192.0.2.7/#/one/a + /rest: 192.0.2.7:80*1").await;
}

#[tokio::test(start_paused = true)]
async fn a_gateway_stands_for_all_of_its_subnet() {
    let (fleet, addr) = watch::channel(endpoints(&[("10.1.2.200:4140", 1.0), ("10.1.9.200:4140", 1.0)]));
    let set = Bound::new(path("/fleet"), Path::default(), addr);
    let change = Change::gateways(Lookup::Fixed(Answer::bound(set)), &path("/ns/port/l5d"), 24);
    let all = [("10.1.2.1:80", 1.0), ("10.1.2.2:80", 2.0), ("10.1.3.1:80", 1.0)];
    let mut name = before(change, endpoints(&all));
    let id = "/%/io.l5d.k8s.daemonset/ns/port/l5d/#/one/a + /rest";
    name.wait(&format!("{id}: 10.1.2.200:4140*3")).await;
    fleet.send_replace(endpoints(&[("10.1.3.200:4140", 1.0)]));
    name.wait(&format!("{id}: 10.1.3.200:4140*1")).await;
    fleet.send_replace(Addr::Neg);
    name.wait("neg").await;
}

#[tokio::test(start_paused = true)]
async fn names_are_replaced_where_there_are_some() {
    let replace = || Change::Replace(path("/other"));
    before(replace(), endpoints(&[("10.0.0.1:80", 1.0)])).wait("/other").await;
    let one = Arc::new(One(path("/#/one"), Addr::Neg.fixed()));
    let always = Transformed::new(one, Change::Const(path("/other")), Handle::current());
    let Lookup::Fixed(answer) = always.lookup(&path("/#/one/x")) else { panic!("live") };
    assert_eq!(shown(&answer), "/other");
}
