//! A namer with a table, as `tests/golden/dtab-cases.json` describes it, and a resolver that knows few hosts.

use crate::names::namers::configured::Env;
use crate::names::namers::dns::{Found, Hosts, Resolve};
use crate::names::namers::live::Live;
use crate::names::namers::system;
use crate::names::{Addr, Answer, Bound, Lookup, Named, Namer, Namers};
use async_trait::async_trait;
use muxgate_wire::name::{NameTree, Path};
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::watch;

pub fn path(text: &str) -> Path {
    Path::parse(text).unwrap()
}

/// Answers by the longest key that is a prefix of the asked path.
pub struct Fake {
    prefix: Path,
    table: Mutex<BTreeMap<Path, (Value, watch::Receiver<Addr>)>>,
    live: Live,
    /// How often it was asked for a name that it did not follow yet.
    pub asked: AtomicUsize,
}

impl Fake {
    pub fn new(prefix: &str, table: &Value) -> Arc<Self> {
        let fake = Arc::new(Self {
            prefix: path(prefix),
            table: Mutex::default(),
            live: Live::default(),
            asked: AtomicUsize::new(0),
        });
        for (key, value) in table.as_object().unwrap() {
            fake.set(key, value.clone());
        }
        fake
    }

    /// Changes what it says of a key, a path below its prefix.
    pub fn set(&self, key: &str, value: Value) {
        let members = match value.as_str() {
            Some("leaf_addr_empty") => Addr::bound([]),
            Some("leaf_addr_neg") => Addr::Neg,
            _ => Addr::bound(["192.0.2.1:80".parse::<std::net::SocketAddr>().unwrap().into()]),
        };
        self.table.lock().insert(path(key), (value, members.fixed()));
        self.live.refresh(|path| self.answer(path));
    }

    fn answer(&self, asked: &Path) -> Answer {
        let below = asked.skip(self.prefix.len());
        let table = self.table.lock();
        let best = table.iter().filter(|(key, _)| below.starts_with(key)).max_by_key(|(key, _)| key.len());
        let Some((key, (value, addr))) = best else { return Answer::NEG };
        let residual = below.skip(key.len());
        match value {
            Value::String(text) => match text.as_str() {
                "neg" => Answer::NEG,
                "empty" => Answer::Ok(NameTree::Empty),
                "fail" => Answer::Ok(NameTree::Fail),
                "pending" => Answer::Pending,
                _ => Answer::bound(Bound::new(self.prefix.concat(key), residual, addr.clone())),
            },
            Value::Object(object) => match (object.get("failed"), object.get("tree")) {
                (Some(why), _) => Answer::Failed(why.as_str().unwrap().to_string()),
                (_, tree) => {
                    let tree = NameTree::parse(tree.unwrap().as_str().unwrap()).unwrap();
                    Answer::Ok(tree.map(&mut |leaf: Path| Named::Path(leaf.concat(&residual))))
                }
            },
            other => panic!("unknown answer {other}"),
        }
    }
}

impl Namer for Fake {
    fn prefix(&self) -> &Path {
        &self.prefix
    }

    fn lookup(&self, path: &Path) -> Lookup {
        self.live.join(path, || {
            self.asked.fetch_add(1, Ordering::Relaxed);
            self.answer(path)
        })
    }
}

/// Knows no host.
pub struct NoHosts;

#[async_trait]
impl Resolve for NoHosts {
    async fn resolve(&self, _: &str) -> Found {
        Found::Neg
    }
}

/// The system namers, and behind them these.
pub fn namers(more: impl IntoIterator<Item = Arc<dyn Namer>>) -> Namers {
    system(&Env::new(Hosts::new(NoHosts))).into_iter().chain(more).collect()
}

/// The fakes of a case, by prefix.
pub fn fakes(case: &Value) -> BTreeMap<String, Arc<Fake>> {
    let tables = case["namers"].as_object().cloned().unwrap_or_default();
    tables.iter().map(|(prefix, table)| (prefix.clone(), Fake::new(prefix, table))).collect()
}
