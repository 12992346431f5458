//! The frame, with a scripted source and paused time.

mod doubt;
mod restart;
mod silence;
mod strangers;

use super::*;
use crate::names::namers::configured::Env;
use crate::names::namers::dns::Hosts;
use crate::names::tests::fake::NoHosts;
use crate::names::{Addr, Answer, Lookup, Named, Namer, Standing};
use muxgate_wire::name::NameTree;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::{Mutex, mpsc, watch};
use tokio::time::{Instant, sleep};

/// What the source does next.
enum Do {
    All(Vec<(&'static str, u16)>),
    One(&'static str, Option<u16>),
    Alive,
    Fail(&'static str),
}

/// What is seen of the source from outside.
#[derive(Default)]
struct Seen {
    follows: AtomicUsize,
    checks: AtomicUsize,
    /// What a check says; nothing: it never answers.
    check: parking_lot::Mutex<Option<Result<(), &'static str>>>,
    /// The first element is a subject of its own.
    by_first: bool,
}

struct Scripted(Mutex<mpsc::UnboundedReceiver<Do>>, Arc<Seen>);

#[async_trait]
impl Source for Scripted {
    fn meanings(&self, rest: &Path) -> Result<Vec<Meaning>, String> {
        let subject = rest.take(usize::from(self.1.by_first));
        let one = |used| Meaning { subject: subject.clone(), name: rest.take(used), used };
        Ok((1..=rest.len()).rev().map(one).collect())
    }

    async fn follow(&self, _: &Path, says: &Says) -> SourceError {
        self.1.follows.fetch_add(1, Relaxed);
        let members = |port| vec![Member::new("127.0.0.1", port)];
        loop {
            match self.0.lock().await.recv().await {
                Some(Do::All(names)) => {
                    says.all(names.into_iter().map(|(name, port)| (path(name), members(port))));
                }
                Some(Do::One(name, port)) => {
                    says.one(&path(name), port.map(members).unwrap_or_default());
                }
                Some(Do::Alive) => says.alive(),
                Some(Do::Fail(why)) => return SourceError(why.into()),
                None => std::future::pending().await,
            }
        }
    }

    async fn check(&self, _: &Path) -> Result<(), SourceError> {
        self.1.checks.fetch_add(1, Relaxed);
        let answer = *self.1.check.lock();
        match answer {
            Some(answer) => answer.map_err(|why| SourceError(why.into())),
            None => std::future::pending().await,
        }
    }
}

fn path(text: &str) -> Path {
    Path::parse(text).unwrap()
}

/// A namer, its source, and the hand that moves it.
struct House {
    namer: Discovered,
    seen: Arc<Seen>,
    env: Env,
    to: mpsc::UnboundedSender<Do>,
}

impl House {
    fn new() -> Self {
        Self::with(Env::new(Hosts::new(NoHosts)), false)
    }

    fn with(env: Env, by_first: bool) -> Self {
        let (to, script) = mpsc::unbounded_channel();
        let check = parking_lot::Mutex::new(Some(Ok(())));
        let seen = Arc::new(Seen { by_first, check, ..Seen::default() });
        let namer =
            Discovered::new(path("/#/scripted"), Scripted(Mutex::new(script), Arc::clone(&seen)), &env);
        Self { namer, seen, env, to }
    }

    fn does(&self, what: Do) {
        assert!(self.to.send(what).is_ok());
    }

    fn says_to_checks(&self, answer: Option<Result<(), &'static str>>) {
        *self.seen.check.lock() = answer;
    }

    fn look(&self, name: &str) -> watch::Receiver<Answer> {
        match self.namer.lookup(&path(&format!("/#/scripted{name}"))) {
            Lookup::Live(answer) => answer,
            Lookup::Fixed(answer) => panic!("{name}: {answer:?}"),
        }
    }

    /// Waits until a name says this.
    async fn wait(&self, name: &str, wanted: &str) {
        until(&mut self.look(name), wanted).await;
    }

    /// Holds a name from now on, and waits until it says this.
    async fn held(&self, name: &str, wanted: &str) -> watch::Receiver<Answer> {
        let mut answer = self.look(name);
        until(&mut answer, wanted).await;
        answer
    }
}

/// The id, the residual and the port, or one word.
fn shown(answer: &Answer) -> String {
    match answer {
        Answer::Ok(NameTree::Leaf(Named::Bound(bound))) => match &*bound.addr.borrow() {
            Addr::Bound(endpoints) => format!("{bound} at {}", endpoints[0].addr.port()),
            other => format!("{bound}: {other:?}"),
        },
        Answer::Ok(NameTree::Neg) => "neg".into(),
        Answer::Failed(why) => format!("failed: {why}"),
        Answer::Pending => "pending".into(),
        other => format!("{other:?}"),
    }
}

fn now(answer: &watch::Receiver<Answer>) -> String {
    shown(&answer.borrow())
}

fn standing(answer: &watch::Receiver<Answer>) -> Standing {
    match &*answer.borrow() {
        Answer::Ok(NameTree::Leaf(Named::Bound(bound))) => bound.source.as_ref().unwrap().standing(),
        other => panic!("{other:?}"),
    }
}

/// Waits until an answer, or its addresses, say this. What is seen is a millisecond old at most.
async fn until(answer: &mut watch::Receiver<Answer>, wanted: &str) {
    for _ in 0..200_000 {
        if now(answer) == wanted {
            return;
        }
        settle().await;
    }
    panic!("waited for {wanted}: {}", now(answer));
}

/// Lets everything happen that can happen without time.
async fn settle() {
    sleep(Duration::from_millis(1)).await;
}

async fn secs(n: u64) {
    sleep(Duration::from_secs(n)).await;
}

const A1: &str = "/#/scripted/a at 1";
const CUT: &str = "failed: the source of /#/scripted cannot be asked: the wire is cut";

#[tokio::test(start_paused = true)]
async fn names_are_pending_then_known_then_gone() {
    let house = House::new();
    house.wait("/a/rest", "pending").await;
    house.does(Do::All(vec![("/a", 1)]));
    house.wait("/a/rest", "/#/scripted/a + /rest at 1").await;
    house.wait("/b", "neg").await;
    house.does(Do::One("/b", Some(2)));
    house.wait("/b", "/#/scripted/b at 2").await;
    house.does(Do::One("/a", None));
    house.wait("/a/rest", "neg").await;
}

#[tokio::test(start_paused = true)]
async fn an_outage_keeps_what_is_known() {
    let house = House::new();
    house.does(Do::All(vec![("/a", 1)]));
    let a = house.held("/a", A1).await;
    assert_eq!(standing(&a).explain(), None);
    house.does(Do::Fail("the wire is cut"));
    let _b = house.held("/b", CUT).await;
    house.wait("/a", A1).await;
    secs(3).await;
    let said = standing(&a).explain().unwrap();
    assert!(said.starts_with("served from the last good answer since 3 s: "), "{said}");
    assert!(said.ends_with("cannot be asked: the wire is cut"), "{said}");
    house.does(Do::All(vec![("/a", 3)]));
    house.wait("/b", "neg").await;
    house.wait("/a", "/#/scripted/a at 3").await;
    assert_eq!(standing(&a).explain(), None);
}

#[tokio::test(start_paused = true)]
async fn a_source_that_tells_nothing_is_failed_and_asked_again() {
    let house = House::new();
    let start = Instant::now();
    let mut a = house.held("/a", "pending").await;
    until(&mut a, "failed: the source of /#/scripted cannot be asked: no answer within 5 s").await;
    assert_eq!(start.elapsed().as_secs(), 5);
    assert_eq!(house.seen.follows.load(Relaxed), 1);
    until(&mut a, "failed: the source of /#/scripted cannot be asked: no answer within 30 s").await;
    settle().await;
    secs(1).await;
    assert_eq!(house.seen.follows.load(Relaxed), 2);
    house.does(Do::All(vec![("/a", 1)]));
    until(&mut a, A1).await;
}

#[tokio::test(start_paused = true)]
async fn all_is_asked_for_anew_now_and_then() {
    let house = House::new();
    let _a = house.look("/a");
    house.does(Do::All(vec![("/a", 1)]));
    let began = Instant::now();
    while house.seen.follows.load(Relaxed) < 2 {
        secs(1).await;
    }
    assert!(began.elapsed() <= params::RESYNC + Duration::from_secs(1));
    house.does(Do::All(vec![("/a", 1)]));
    secs(params::LAST_ANSWER.as_secs() + 1).await;
    let stats = house.env.registry.discovery("/#/scripted");
    assert_eq!((stats.resyncs.get(), stats.failures.get(), stats.subjects.get()), (1, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn pauses_between_attempts_grow_to_a_bound() {
    let house = House::new();
    let _a = house.look("/a");
    (0..1000).for_each(|_| house.does(Do::Fail("the wire is cut")));
    secs(100).await;
    let follows = house.seen.follows.load(Relaxed);
    assert!((26..40).contains(&follows), "{follows}");
}
