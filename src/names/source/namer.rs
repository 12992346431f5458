//! The namer that is made of a source: paths, and the subjects that they need.

use super::belief::Belief;
use super::params::MAX_FOLLOWED;
use super::show::Stand;
use super::subject::{Hold, Subject};
use super::{Common, MAX_MEANINGS, Meaning, Source};
use crate::names::addr::Bound;
use crate::names::namer::{Answer, Lookup, Namer};
use crate::names::namers::configured::Env;
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use futures_util::future::select_all;
use muxgate_wire::name::Path;
use std::sync::Arc;
use tokio::sync::watch;

/// A namer whose answers come from a source.
pub struct Discovered {
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    common: Arc<Common>,
    source: Arc<dyn Source>,
    subjects: DashMap<Path, Arc<Subject>>,
    paths: DashMap<Path, watch::Sender<Answer>>,
}

impl Discovered {
    /// A namer for `prefix`, such as `/#/io.l5d.serversets`. Host names among members are followed through the hosts of
    /// `env`, and tasks run where theirs do.
    pub fn new(prefix: Path, source: impl Source, env: &Env) -> Self {
        let common = Arc::new(Common::new(prefix, env));
        let (source, subjects, paths) = (Arc::new(source), DashMap::new(), DashMap::new());
        let shared = Arc::new(Shared { common, source, subjects, paths });
        env.watched.add(&shared);
        let ages = Arc::downgrade(&shared);
        shared.common.stats.age_from(move || {
            let subjects = ages.upgrade()?.subjects();
            subjects.iter().filter_map(|subject| subject.look(|state| state.age())).max()
        });
        Self { shared }
    }
}

impl Namer for Discovered {
    fn prefix(&self) -> &Path {
        self.shared.prefix()
    }

    fn lookup(&self, path: &Path) -> Lookup {
        let shared = &self.shared;
        let rest = path.skip(shared.prefix().len());
        let meanings = match shared.source.meanings(&rest) {
            Ok(meanings) if meanings.is_empty() => return Lookup::Fixed(Answer::NEG),
            Ok(meanings) => meanings,
            Err(why) => return Lookup::Fixed(Answer::Failed(format!("{path}: {why}"))),
        };
        if shared.paths.len() >= MAX_FOLLOWED && !shared.paths.contains_key(path) {
            return Lookup::Fixed(full());
        }
        let place = match shared.paths.entry(path.clone()) {
            Entry::Occupied(known) => return Lookup::Live(known.get().subscribe()),
            Entry::Vacant(place) => place,
        };
        let hold = |meaning: Meaning| Some(Held { hold: shared.hold(&meaning)?, meaning });
        let held = meanings.into_iter().take(MAX_MEANINGS).map(hold).collect::<Option<Vec<_>>>();
        let Some(mut held) = held else { return Lookup::Fixed(full()) };
        let (to, answer) = watch::channel(shared.answer(path, &mut held));
        place.insert(to.clone());
        let following = follow(Arc::clone(shared), path.clone(), held, to);
        shared.common.hosts.runtime().spawn(following);
        Lookup::Live(answer)
    }
}

fn full() -> Answer {
    Answer::Failed(format!("more than {MAX_FOLLOWED} names are followed"))
}

struct Held {
    meaning: Meaning,
    hold: Hold,
}

impl Shared {
    pub(super) fn prefix(&self) -> &Path {
        &self.common.prefix
    }

    pub(super) fn subjects(&self) -> Vec<Arc<Subject>> {
        self.subjects.iter().map(|subject| Arc::clone(subject.value())).collect()
    }

    /// What is believed of a name; its subject is watched from now on, if it was not. None, if there is no room for it.
    fn hold(self: &Arc<Self>, meaning: &Meaning) -> Option<Hold> {
        if self.subjects.len() >= MAX_FOLLOWED && !self.subjects.contains_key(&meaning.subject) {
            return None;
        }
        match self.subjects.entry(meaning.subject.clone()) {
            Entry::Occupied(known) => known.get().hold(&meaning.name),
            Entry::Vacant(place) => {
                let subject = Subject::new(meaning.subject.clone(), Arc::clone(&self.common));
                let hold = subject.hold(&meaning.name);
                place.insert(Arc::clone(&subject));
                let shared = Arc::clone(self);
                self.common.hosts.runtime().spawn(async move {
                    subject.follow(&*shared.source, |path| shared.forget(path)).await;
                });
                hold
            }
        }
    }

    /// Forgets a subject, if nobody holds a name of it.
    fn forget(&self, subject: &Path) -> bool {
        self.subjects.remove_if(subject, |_, subject| !subject.is_held()).is_some()
    }

    /// The first meaning that is not negative.
    fn answer(&self, path: &Path, held: &mut [Held]) -> Answer {
        let mut first = None;
        for Held { meaning, hold } in held {
            // All are marked as seen: one that is behind a hit now may be asked for by the next change.
            let belief = hold.belief.borrow_and_update();
            let used = self.prefix().len() + meaning.used;
            let answer = match &*belief {
                Belief::Pending => Answer::Pending,
                Belief::Failed(why) => Answer::Failed(why.clone()),
                Belief::Neg => continue,
                Belief::Members(addr) => Answer::bound(Bound {
                    source: Some(Stand::of(&hold.subject, &meaning.name)),
                    ..Bound::new(path.take(used), path.skip(used), addr.clone())
                }),
            };
            first.get_or_insert(answer);
        }
        first.unwrap_or(Answer::NEG)
    }
}

/// Passes on what is news about a path, until nobody holds it.
async fn follow(shared: Arc<Shared>, path: Path, mut held: Vec<Held>, to: watch::Sender<Answer>) {
    loop {
        let changed = {
            let changes = held.iter_mut().map(|held| Box::pin(held.hold.belief.changed()));
            tokio::select! {
                _ = select_all(changes) => true,
                () = to.closed() => false,
            }
        };
        if changed {
            let next = shared.answer(&path, &mut held);
            to.send_if_modified(|now| {
                let news = !now.same(&next);
                if news {
                    *now = next;
                }
                news
            });
        } else if shared.paths.remove_if(&path, |_, to| to.receiver_count() == 0).is_some() {
            return;
        }
    }
}
