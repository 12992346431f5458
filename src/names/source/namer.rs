//! The namer that is made of a source: paths, and the subjects that they need.

use super::subject::{Belief, Says, Subject};
use super::{MAX_MEANINGS, Meaning, Source};
use crate::names::addr::Bound;
use crate::names::namer::{Answer, Lookup, Namer};
use crate::names::namers::dns::Hosts;
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use futures_util::future::select_all;
use muxgate_wire::name::Path;
use std::sync::Arc;
use tokio::sync::watch;

/// Subjects, and paths, of one namer that are followed at the same time.
pub const MAX_FOLLOWED: usize = 100_000;

/// A namer whose answers come from a source.
pub struct Discovered {
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    prefix: Path,
    source: Arc<dyn Source>,
    hosts: Arc<Hosts>,
    subjects: DashMap<Path, Arc<Subject>>,
    paths: DashMap<Path, watch::Sender<Answer>>,
}

impl Discovered {
    /// A namer for `prefix`, such as `/#/io.l5d.serversets`. Host names among members are followed through `hosts`, and tasks
    /// run where its tasks do.
    pub fn new(prefix: Path, source: impl Source, hosts: Arc<Hosts>) -> Self {
        let (subjects, paths) = (DashMap::new(), DashMap::new());
        Self { shared: Arc::new(Shared { prefix, source: Arc::new(source), hosts, subjects, paths }) }
    }
}

impl Namer for Discovered {
    fn prefix(&self) -> &Path {
        &self.shared.prefix
    }

    fn lookup(&self, path: &Path) -> Lookup {
        let rest = path.skip(self.shared.prefix.len());
        let meanings = match self.shared.source.meanings(&rest) {
            Ok(meanings) if meanings.is_empty() => return Lookup::Fixed(Answer::NEG),
            Ok(meanings) => meanings,
            Err(why) => return Lookup::Fixed(Answer::Failed(format!("{path}: {why}"))),
        };
        if self.shared.paths.len() >= MAX_FOLLOWED && !self.shared.paths.contains_key(path) {
            return Lookup::Fixed(Answer::Failed(format!("more than {MAX_FOLLOWED} names are followed")));
        }
        let place = match self.shared.paths.entry(path.clone()) {
            Entry::Occupied(known) => return Lookup::Live(known.get().subscribe()),
            Entry::Vacant(place) => place,
        };
        let hold = |meaning: Meaning| {
            let belief = self.shared.hold(&meaning);
            (meaning, belief)
        };
        let mut held: Vec<_> = meanings.into_iter().take(MAX_MEANINGS).map(hold).collect();
        let (to, answer) = watch::channel(self.shared.answer(path, &mut held));
        place.insert(to.clone());
        let following = follow(Arc::clone(&self.shared), path.clone(), held, to);
        self.shared.hosts.runtime().spawn(following);
        Lookup::Live(answer)
    }
}

type Held = (Meaning, watch::Receiver<Belief>);

impl Shared {
    /// What is believed of a name; its subject is watched from now on, if it was not.
    fn hold(self: &Arc<Self>, meaning: &Meaning) -> watch::Receiver<Belief> {
        match self.subjects.entry(meaning.subject.clone()) {
            Entry::Occupied(known) => known.get().hold(&meaning.name),
            Entry::Vacant(place) => {
                let subject = Subject::new(meaning.subject.clone(), Arc::clone(&self.hosts));
                let belief = subject.hold(&meaning.name);
                place.insert(Arc::clone(&subject));
                let (source, shared) = (Arc::clone(&self.source), Arc::clone(self));
                let forget = move |path: &Path| shared.forget(path);
                self.hosts.runtime().spawn(async move {
                    subject.follow(&*source, &Says::new(&subject), forget).await;
                });
                belief
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
        for (meaning, belief) in held {
            // All are marked as seen: one that is behind a hit now may be asked for by the next change.
            let belief = belief.borrow_and_update();
            let answer = match &*belief {
                Belief::Pending => Answer::Pending,
                Belief::Failed(why) => Answer::Failed(why.clone()),
                Belief::Neg => continue,
                Belief::Members(addr) => Answer::bound(Bound {
                    id: path.take(self.prefix.len() + meaning.used),
                    residual: path.skip(self.prefix.len() + meaning.used),
                    addr: addr.clone(),
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
            let changes = held.iter_mut().map(|(_, belief)| Box::pin(belief.changed()));
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
