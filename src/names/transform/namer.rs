//! A namer behind a transformer.

use super::change::{Change, Map, Watched};
use crate::names::addr::{Addr, Bound};
use crate::names::namer::{Answer, Lookup, Named, Namer};
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use futures_util::future::{pending, select_all};
use muxgate_wire::name::{NameTree, Path, Weighted};
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// Names that are transformed at the same time.
pub const MAX_NAMES: usize = 100_000;

/// A namer whose answers are changed.
pub struct Transformed {
    shared: Arc<Shared>,
    runtime: Handle,
}

struct Shared {
    inner: Arc<dyn Namer>,
    change: Change,
    names: DashMap<Path, watch::Sender<Answer>>,
}

impl Transformed {
    pub(super) fn new(inner: Arc<dyn Namer>, change: Change, runtime: Handle) -> Self {
        Self { shared: Arc::new(Shared { inner, change, names: DashMap::new() }), runtime }
    }
}

impl Namer for Transformed {
    fn prefix(&self) -> &Path {
        self.shared.inner.prefix()
    }

    fn lookup(&self, path: &Path) -> Lookup {
        if let Change::Const(name) = &self.shared.change {
            return Lookup::Fixed(Answer::path(Some(name.clone())));
        }
        if self.shared.names.len() >= MAX_NAMES && !self.shared.names.contains_key(path) {
            return Lookup::Fixed(Answer::Failed(format!("more than {MAX_NAMES} names are transformed")));
        }
        let place = match self.shared.names.entry(path.clone()) {
            Entry::Occupied(known) => return Lookup::Live(known.get().subscribe()),
            Entry::Vacant(place) => place,
        };
        let asked = self.shared.inner.lookup(path);
        let mut work = Work { asked, watched: Vec::new(), sets: HashMap::new() };
        let (to, answer) = watch::channel(work.answer(&self.shared.change));
        place.insert(to.clone());
        self.runtime.spawn(follow(Arc::clone(&self.shared), path.clone(), work, to));
        Lookup::Live(answer)
    }
}

/// One name: what it was before the change, and the sets that came of it.
struct Work {
    asked: Lookup,
    /// What the change itself depends on.
    watched: Vec<Watched>,
    sets: HashMap<Path, (watch::Receiver<Addr>, watch::Sender<Addr>)>,
}

impl Work {
    fn answer(&mut self, change: &Change) -> Answer {
        self.watched = change.watches();
        let before = match &mut self.asked {
            Lookup::Fixed(answer) => answer.clone(),
            Lookup::Live(answer) => answer.borrow_and_update().clone(),
        };
        let Answer::Ok(tree) = before else { return before };
        let mut used = HashMap::new();
        let mut unknown = None;
        let tree = self.tree(&tree, change, &mut used, &mut unknown);
        self.sets = used;
        unknown.unwrap_or(Answer::Ok(tree))
    }

    fn tree(
        &mut self,
        tree: &NameTree<Named>,
        change: &Change,
        used: &mut HashMap<Path, (watch::Receiver<Addr>, watch::Sender<Addr>)>,
        unknown: &mut Option<Answer>,
    ) -> NameTree<Named> {
        match tree {
            NameTree::Alt(all) => {
                NameTree::Alt(all.iter().map(|tree| self.tree(tree, change, used, unknown)).collect())
            }
            NameTree::Union(all) => {
                let branch = |branch: &Weighted<Named>| Weighted {
                    weight: branch.weight,
                    tree: self.tree(&branch.tree, change, used, unknown),
                };
                NameTree::Union(all.iter().map(branch).collect())
            }
            NameTree::Leaf(Named::Bound(bound)) => match change {
                Change::Replace(name) | Change::Const(name) => NameTree::Leaf(Named::Path(name.clone())),
                Change::Addresses { id, map } => self.set(bound, id, map, used, unknown),
            },
            other => other.clone(),
        }
    }

    fn set(
        &mut self,
        bound: &Bound,
        id: &Path,
        map: &Map,
        used: &mut HashMap<Path, (watch::Receiver<Addr>, watch::Sender<Addr>)>,
        unknown: &mut Option<Answer>,
    ) -> NameTree<Named> {
        let mut from = bound.addr.clone();
        let addr = map.apply(&from.borrow_and_update());
        let id = id.concat(&bound.id);
        let known = self.sets.remove(&id).or_else(|| used.remove(&id));
        let to = known.map_or_else(|| watch::Sender::new(Addr::Pending), |(_, to)| to);
        to.send_if_modified(|now| {
            let news = *now != addr;
            if news {
                *now = addr.clone();
            }
            news
        });
        let leaf = Bound { id: id.clone(), addr: to.subscribe(), ..bound.clone() };
        used.insert(id, (from, to));
        match addr {
            Addr::Neg => NameTree::Neg,
            // Whether anything is left is not known yet: neither is whether the name leads anywhere.
            Addr::Pending => {
                unknown.get_or_insert(Answer::Pending);
                NameTree::Neg
            }
            Addr::Failed(why) => {
                unknown.get_or_insert(Answer::Failed(why));
                NameTree::Neg
            }
            Addr::Bound(_) => NameTree::Leaf(Named::Bound(leaf)),
        }
    }

    /// Ends when something that the answer was made of has changed.
    async fn changed(&mut self) {
        let mut all: Vec<Pin<Box<dyn Future<Output = ()> + Send + '_>>> = Vec::new();
        if let Lookup::Live(answer) = &mut self.asked {
            all.push(Box::pin(next(answer)));
        }
        all.extend(self.sets.values_mut().map(|(from, _)| Box::pin(next(from)) as _));
        all.extend(self.watched.iter_mut().map(|watched| match watched {
            Watched::Answer(answer) => Box::pin(next(answer)) as _,
            Watched::Addr(addr) => Box::pin(next(addr)) as Pin<Box<dyn Future<Output = ()> + Send>>,
        }));
        if all.is_empty() {
            return pending().await;
        }
        select_all(all).await;
    }
}

/// Waits for a change; for ever, if there will be none.
async fn next<T>(receiver: &mut watch::Receiver<T>) {
    if receiver.changed().await.is_err() {
        pending::<()>().await;
    }
}

async fn follow(shared: Arc<Shared>, path: Path, mut work: Work, to: watch::Sender<Answer>) {
    loop {
        let changed = tokio::select! {
            () = work.changed() => true,
            () = to.closed() => false,
        };
        if changed {
            let answer = work.answer(&shared.change);
            to.send_if_modified(|now| {
                let news = !now.same(&answer);
                if news {
                    *now = answer;
                }
                news
            });
        } else if shared.names.remove_if(&path, |_, to| to.receiver_count() == 0).is_some() {
            return;
        }
    }
}
