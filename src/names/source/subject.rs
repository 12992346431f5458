//! One subject: what its source said of each name, and what is believed of it.
//!
//! ```text
//!   asking ──▶ told ──▶ (changes) ──▶ cannot go on: outage ──▶ pause ──▶ asking
//!                          └── resync ──▶ asking
//! ```

use super::{Member, Set, Source, SourceError};
use crate::names::addr::Addr;
use crate::names::namers::dns::Hosts;
use muxgate_rpc::life::jittered;
use muxgate_wire::name::Path;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// Everything is asked for anew after this time at the latest, whatever was heard in between.
pub const RESYNC: Duration = Duration::from_secs(300);

/// A subject of which nobody holds a name is followed for this long: the next call may want it again.
pub const LINGER: Duration = Duration::from_secs(30);

/// First pause after a failure; it doubles with each further one.
pub const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// Longest pause: an outage that ends is noticed within this time.
pub const LAST_PAUSE: Duration = Duration::from_secs(4);

/// What is believed of a name.
#[derive(Clone, Debug)]
pub(super) enum Belief {
    Pending,
    Failed(String),
    Neg,
    Members(watch::Receiver<Addr>),
}

/// What a source reports to.
pub struct Says(Arc<Subject>);

impl Says {
    pub(super) fn new(subject: &Arc<Subject>) -> Self {
        Self(Arc::clone(subject))
    }

    /// These are all names of the subject that have members; others have none.
    pub fn all(&self, names: impl IntoIterator<Item = (Path, Vec<Member>)>) {
        self.0.told_all(names.into_iter().collect());
    }

    /// This is what one name has now; nothing: there is no such name any more.
    pub fn one(&self, name: &Path, members: Vec<Member>) {
        self.0.told_one(name, members);
    }

    /// Nothing is new, and the source is well.
    pub fn alive(&self) {
        self.0.state.lock().heard();
    }
}

pub(super) struct Subject {
    path: Path,
    hosts: Arc<Hosts>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    names: HashMap<Path, Name>,
    /// Whether the source has told everything once.
    told: bool,
    /// Since when it cannot be asked, and why.
    outage: Option<(Instant, String)>,
    heard: Option<Instant>,
}

struct Name {
    members: Vec<Member>,
    set: Set,
    belief: watch::Sender<Belief>,
}

impl State {
    fn heard(&mut self) {
        self.heard = Some(Instant::now());
        self.outage = None;
    }

    /// What is believed of names without members.
    fn otherwise(&self) -> Belief {
        match (&self.outage, self.told) {
            (Some((_, why)), _) => Belief::Failed(why.clone()),
            (None, true) => Belief::Neg,
            (None, false) => Belief::Pending,
        }
    }
}

impl Subject {
    pub(super) fn new(path: Path, hosts: Arc<Hosts>) -> Arc<Self> {
        Arc::new(Self { path, hosts, state: Mutex::default() })
    }

    /// What is believed of a name, and word of changes.
    pub(super) fn hold(&self, name: &Path) -> watch::Receiver<Belief> {
        let mut state = self.state.lock();
        let otherwise = state.otherwise();
        let known = state.names.entry(name.clone()).or_insert_with(|| Name {
            members: Vec::new(),
            set: Set::new(),
            belief: watch::Sender::new(otherwise.clone()),
        });
        known.belief.subscribe()
    }

    /// Whether somebody holds a name.
    pub(super) fn is_held(&self) -> bool {
        self.state.lock().names.values().any(|name| name.belief.receiver_count() > 0)
    }

    fn told_all(&self, mut all: HashMap<Path, Vec<Member>>) {
        let mut state = self.state.lock();
        state.heard();
        state.told = true;
        let known: Vec<Path> = state.names.keys().cloned().collect();
        for name in known {
            let members = all.remove(&name).unwrap_or_default();
            self.set(&mut state, &name, members);
        }
        for (name, members) in all {
            self.set(&mut state, &name, members);
        }
    }

    fn told_one(&self, name: &Path, members: Vec<Member>) {
        let mut state = self.state.lock();
        state.heard();
        self.set(&mut state, name, members);
    }

    fn set(&self, state: &mut State, name: &Path, members: Vec<Member>) {
        let otherwise = state.otherwise();
        if members.is_empty() {
            let Some(known) = state.names.get_mut(name) else { return };
            known.members = members;
            known.set.gone();
            known.belief.send_replace(otherwise);
            if known.belief.receiver_count() == 0 {
                state.names.remove(name);
            }
            return;
        }
        let known = state.names.entry(name.clone()).or_insert_with(|| Name {
            members: Vec::new(),
            set: Set::new(),
            belief: watch::Sender::new(Belief::Pending),
        });
        if known.members != members {
            known.set.update(&members, &self.hosts);
            known.members = members;
        }
        if !matches!(*known.belief.borrow(), Belief::Members(_)) {
            known.belief.send_replace(Belief::Members(known.set.addr()));
        }
    }

    fn failed(&self, error: &SourceError) {
        let mut state = self.state.lock();
        let since = state.outage.take().map_or_else(Instant::now, |(since, _)| since);
        tracing::warn!(subject = self.path.as_str(), %error, "discovery cannot be asked; what is known goes on");
        state.outage = Some((since, error.0.clone()));
        let otherwise = state.otherwise();
        for name in state.names.values().filter(|name| name.members.is_empty()) {
            name.belief.send_replace(otherwise.clone());
        }
    }

    /// Follows the source until nobody holds a name any more and `forget` agrees.
    pub(super) async fn follow(&self, source: &dyn Source, says: &Says, forget: impl Fn(&Path) -> bool) {
        let mut pause = FIRST_PAUSE;
        loop {
            let began = Instant::now();
            let mut asking = pin!(source.follow(&self.path, says));
            let mut resync = pin!(sleep(jittered(RESYNC)));
            let error = loop {
                tokio::select! {
                    error = &mut asking => break Some(error),
                    () = &mut resync => break None,
                    () = sleep(LINGER) => if !self.is_held() && forget(&self.path) { return },
                }
            };
            let Some(error) = error else { continue };
            if self.state.lock().heard.is_some_and(|heard| heard > began) {
                pause = FIRST_PAUSE;
            }
            self.failed(&error);
            sleep(jittered(pause)).await;
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }
}
