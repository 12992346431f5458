//! Answers that change, shared by those who ask for the same: for namers that know at once what to answer, and hear of
//! changes for all names together.

use crate::names::namer::{Answer, Lookup};
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use muxgate_wire::name::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::watch;

/// Names that are followed at the same time. A stranger may invent names; each costs a hundred bytes or two.
pub const MAX_NAMES: usize = 100_000;

/// Entries before those that nobody holds are looked for; twice what is left from then on.
const FIRST_SWEEP: usize = 1024;

/// The answers that somebody holds.
pub struct Live {
    answers: DashMap<Path, watch::Sender<Answer>>,
    sweep_at: AtomicUsize,
}

impl Default for Live {
    fn default() -> Self {
        Self { answers: DashMap::new(), sweep_at: AtomicUsize::new(FIRST_SWEEP) }
    }
}

impl Live {
    /// Joins those who hold the answer for `path`, or works it out. Whoever changes what `answer` depends on must call
    /// [`Live::refresh`] after the change: then no change is lost.
    pub fn join(&self, path: &Path, answer: impl FnOnce() -> Answer) -> Lookup {
        if self.answers.len() >= self.sweep_at.load(Ordering::Relaxed) {
            self.sweep();
        }
        if self.answers.len() >= MAX_NAMES && !self.answers.contains_key(path) {
            return Lookup::Fixed(Answer::Failed(format!("more than {MAX_NAMES} names are followed")));
        }
        Lookup::Live(match self.answers.entry(path.clone()) {
            Entry::Occupied(entry) => entry.get().subscribe(),
            // The answer is worked out while the entry is locked, so a refresh comes wholly before or after.
            Entry::Vacant(entry) => entry.insert(watch::channel(answer()).0).subscribe(),
        })
    }

    /// Works every answer out again and passes on what is news; lets go of names that nobody holds.
    pub fn refresh(&self, answer: impl Fn(&Path) -> Answer) {
        self.answers.retain(|path, to| {
            if to.receiver_count() == 0 {
                return false;
            }
            let next = answer(path);
            to.send_if_modified(|now| {
                let news = !now.same(&next);
                if news {
                    *now = next;
                }
                news
            });
            true
        });
    }

    /// Names that are followed, and some that nobody holds any more.
    pub fn len(&self) -> usize {
        self.answers.len()
    }

    /// Whether no name is followed.
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// Lets go of names that nobody holds.
    fn sweep(&self) {
        self.answers.retain(|_, to| to.receiver_count() > 0);
        self.sweep_at.store(FIRST_SWEEP.max(2 * self.answers.len()), Ordering::Relaxed);
    }
}
