//! The frame, with a scripted source and paused time.

use super::*;
use crate::names::namers::configured::Env;
use crate::names::namers::dns::Hosts;
use crate::names::tests::fake::NoHosts;
use crate::names::{Addr, Answer, Lookup, Named, Namer};
use muxgate_wire::name::NameTree;
use tokio::sync::{Mutex, mpsc};

/// What the source does next.
enum Do {
    All(Vec<(&'static str, u16)>),
    One(&'static str, Option<u16>),
    Fail(&'static str),
}

struct Scripted(Mutex<mpsc::UnboundedReceiver<Do>>);

#[async_trait]
impl Source for Scripted {
    fn meanings(&self, rest: &Path) -> Result<Vec<Meaning>, String> {
        Ok((1..=rest.len())
            .rev()
            .map(|used| Meaning { subject: Path::empty(), name: rest.take(used), used })
            .collect())
    }

    async fn follow(&self, _: &Path, says: &Says) -> SourceError {
        let members = |port| vec![Member::new("127.0.0.1", port)];
        loop {
            match self.0.lock().await.recv().await {
                Some(Do::All(names)) => {
                    says.all(names.into_iter().map(|(name, port)| (path(name), members(port))));
                }
                Some(Do::One(name, port)) => {
                    says.one(&path(name), port.map(members).unwrap_or_default());
                }
                Some(Do::Fail(why)) => return SourceError(why.into()),
                None => std::future::pending().await,
            }
        }
    }

    async fn check(&self, _: &Path) -> Result<(), SourceError> {
        Ok(())
    }
}

fn path(text: &str) -> Path {
    Path::parse(text).unwrap()
}

fn scripted() -> (Discovered, mpsc::UnboundedSender<Do>) {
    let (to, script) = mpsc::unbounded_channel();
    let hosts = Hosts::new(NoHosts);
    (Discovered::new(path("/#/scripted"), Scripted(Mutex::new(script)), &Env::new(hosts)), to)
}

/// Follows a name until it says something like this: the id, the residual and the port, or in one word.
async fn wait(namer: &Discovered, name: &str, wanted: &str) {
    let Lookup::Live(mut answer) = namer.lookup(&path(name)) else { panic!("{name}: fixed") };
    let shown = |answer: &Answer| match answer {
        Answer::Ok(NameTree::Leaf(Named::Bound(bound))) => match &*bound.addr.borrow() {
            Addr::Bound(endpoints) => format!("{bound} at {}", endpoints[0].addr.port()),
            other => format!("{bound}: {other:?}"),
        },
        Answer::Ok(NameTree::Neg) => "neg".into(),
        Answer::Failed(why) => format!("failed: {why}"),
        Answer::Pending => "pending".into(),
        other => format!("{other:?}"),
    };
    answer.wait_for(|answer| shown(answer) == wanted).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn names_are_pending_then_known_then_gone() {
    let (namer, to) = scripted();
    wait(&namer, "/#/scripted/a/rest", "pending").await;
    to.send(Do::All(vec![("/a", 1)])).unwrap();
    wait(&namer, "/#/scripted/a/rest", "/#/scripted/a + /rest at 1").await;
    wait(&namer, "/#/scripted/b", "neg").await;
    to.send(Do::One("/b", Some(2))).unwrap();
    wait(&namer, "/#/scripted/b", "/#/scripted/b at 2").await;
    to.send(Do::One("/a", None)).unwrap();
    wait(&namer, "/#/scripted/a/rest", "neg").await;
}

#[tokio::test(start_paused = true)]
async fn an_outage_keeps_what_is_known() {
    let (namer, to) = scripted();
    to.send(Do::All(vec![("/a", 1)])).unwrap();
    wait(&namer, "/#/scripted/a", "/#/scripted/a at 1").await;
    to.send(Do::Fail("the wire is cut")).unwrap();
    wait(&namer, "/#/scripted/b", "failed: the source of /#/scripted cannot be asked: the wire is cut").await;
    wait(&namer, "/#/scripted/a", "/#/scripted/a at 1").await;
    to.send(Do::All(vec![("/a", 3)])).unwrap();
    wait(&namer, "/#/scripted/b", "neg").await;
    wait(&namer, "/#/scripted/a", "/#/scripted/a at 3").await;
}
