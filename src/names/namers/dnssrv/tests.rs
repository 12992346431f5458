use super::*;
use crate::names::namers::configured::Env;
use crate::names::namers::dns::{Hosts, LATEST};
use crate::names::source::Discovered;
use crate::names::{Addr, Answer, Lookup, Named, Namer};
use muxgate_wire::name::NameTree;
use parking_lot::Mutex;

type Said = Result<(Vec<Srv>, Duration), &'static str>;

/// Says what it is told, for every name; hosts that begin with `gone` do not exist, others are 192.0.2.1.
struct Script {
    said: Mutex<Said>,
    asked: Mutex<Vec<Instant>>,
}

#[async_trait]
impl Records for Script {
    async fn srv(&self, name: &str) -> Result<(Vec<Srv>, Instant), String> {
        assert_eq!(name, "_mux._tcp.users.test");
        self.asked.lock().push(Instant::now());
        let (records, ttl) = self.said.lock().clone()?;
        Ok((records, Instant::now() + ttl))
    }

    async fn is_gone(&self, host: &str) -> bool {
        host.starts_with("gone")
    }
}

struct One;

#[async_trait]
impl Resolve for One {
    async fn resolve(&self, _: &str) -> Found {
        Found::Ips(vec![[192, 0, 2, 1].into()], Instant::now() + LATEST)
    }
}

fn srv(priority: u16, weight: u16, port: u16, target: &str) -> Srv {
    Srv { priority, weight, port, target: target.into() }
}

fn namer(said: Said) -> (Arc<Script>, Discovered) {
    let script = Arc::new(Script { said: Mutex::new(said), asked: Mutex::default() });
    let source = DnsSrv::new(Arc::clone(&script), Params::default().refresh);
    (script, Discovered::new(Path::parse("/#/io.l5d.dnssrv").unwrap(), source, &Env::new(Hosts::new(One))))
}

/// Waits until the name comes to this.
async fn wait(namer: &Discovered, wanted: &str) {
    let name = Path::parse("/#/io.l5d.dnssrv/_mux._tcp.users.test/rest").unwrap();
    let Lookup::Live(mut answer) = namer.lookup(&name) else { panic!("fixed") };
    loop {
        let now = answer.borrow_and_update().clone();
        match now {
            Answer::Ok(NameTree::Leaf(Named::Bound(mut bound))) => {
                assert_eq!(bound.to_string(), "/#/io.l5d.dnssrv/_mux._tcp.users.test + /rest");
                if show(&bound.addr.borrow_and_update()) == wanted {
                    return;
                }
                tokio::select! {
                    changed = bound.addr.changed() => changed.unwrap(),
                    changed = answer.changed() => changed.unwrap(),
                }
            }
            Answer::Ok(NameTree::Neg) if wanted == "neg" => return,
            Answer::Failed(why) if why.ends_with(wanted) => return,
            _ => answer.changed().await.unwrap(),
        }
    }
}

fn show(addr: &Addr) -> String {
    match addr {
        Addr::Bound(all) => {
            all.iter().map(|e| format!("{}*{}", e.addr.port(), e.weight)).collect::<Vec<_>>().join(" ")
        }
        other => format!("{other:?}"),
    }
}

const LONG: Duration = Duration::from_secs(3600);

#[tokio::test(start_paused = true)]
async fn records_become_members_and_go_again() {
    let (script, namer) = namer(Ok((vec![srv(0, 3, 1, "a"), srv(0, 1, 2, "b"), srv(9, 1, 3, "c")], LONG)));
    wait(&namer, "1*3 2*1").await;
    *script.said.lock() = Ok((vec![srv(0, 1, 2, "b")], LONG));
    wait(&namer, "2*1").await;
    for nothing in [vec![], vec![srv(0, 0, 0, "")]] {
        *script.said.lock() = Ok((nothing, LONG));
        wait(&namer, "neg").await;
        *script.said.lock() = Ok((vec![srv(0, 1, 2, "b")], LONG));
        wait(&namer, "2*1").await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_priority_takes_over_when_no_target_of_the_first_is_left() {
    let (script, namer) = namer(Ok((vec![srv(1, 1, 1, "gone"), srv(1, 1, 2, "b"), srv(2, 1, 3, "c")], LONG)));
    wait(&namer, "1*1 2*1").await;
    *script.said.lock() = Ok((vec![srv(1, 1, 1, "gone"), srv(2, 1, 3, "c")], LONG));
    wait(&namer, "3*1").await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_asked_says_nothing_about_the_name() {
    let (script, namer) = namer(Err("DNS cannot be asked"));
    wait(&namer, "DNS cannot be asked").await;
    *script.said.lock() = Ok((vec![srv(0, 0, 1, "a")], LONG));
    wait(&namer, "1*1").await;
    *script.said.lock() = Err("DNS cannot be asked");
    tokio::time::sleep(LATEST * 2).await;
    wait(&namer, "1*1").await;
}

#[tokio::test(start_paused = true)]
async fn a_name_is_asked_for_again_by_ttl_and_within_bounds() {
    for (ttl, wait_for) in [(LONG, 5), (Duration::from_secs(2), 2), (Duration::ZERO, 1)] {
        let (script, namer) = namer(Ok((vec![srv(0, 0, 1, "a")], ttl)));
        let began = Instant::now();
        let name = Path::parse("/#/io.l5d.dnssrv/_mux._tcp.users.test").unwrap();
        let _held = namer.lookup(&name);
        tokio::time::sleep(Duration::from_secs(11)).await;
        let asked: Vec<_> = script.asked.lock().iter().map(|at| (*at - began).as_secs()).collect();
        assert_eq!(asked[..3], [0, wait_for, 2 * wait_for], "{ttl:?}");
    }
}

#[test]
fn weights_are_shares() {
    let weights = |all: &[u16]| {
        let group: Vec<_> =
            all.iter().enumerate().map(|(at, weight)| srv(0, *weight, at as u16 + 1, "a")).collect();
        records::members(&group).iter().map(|member| member.weight).collect::<Vec<_>>()
    };
    assert_eq!(weights(&[0, 0, 0]), [1.0, 1.0, 1.0]);
    assert_eq!(weights(&[60, 20, 20]), [60.0, 20.0, 20.0]);
    let mixed = weights(&[1, 0, 0]);
    let share = (mixed[1] + mixed[2]) / mixed.iter().sum::<f64>();
    assert!((share - 0.01).abs() < 1e-9, "{mixed:?}");
}
