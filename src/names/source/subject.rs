//! One subject: asked for again and again, as long as somebody holds a name of it.
//!
//! ```text
//!   asking ──▶ told ──▶ (changes) ──▶ cannot go on, or is not there: outage ──▶ pause ──▶ asking
//!                          └── resync ──▶ asking
//! ```

use super::belief::{Belief, State};
use super::params::{
    CHECK_WITHIN, FIRST_ANSWER, FIRST_PAUSE, LAST_ANSWER, LAST_PAUSE, LINGER, RESYNC, SELF_CHECK,
};
use super::{Common, Member, Source, SourceError};
use futures_util::FutureExt;
use futures_util::future::{Fuse, FusedFuture};
use muxgate_rpc::life::jittered;
use muxgate_wire::name::Path;
use parking_lot::Mutex;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// What a source reports to.
pub struct Says(Arc<Subject>);

impl Says {
    pub(super) fn new(subject: &Arc<Subject>) -> Self {
        Self(Arc::clone(subject))
    }

    /// These are all names of the subject that have members; others have none.
    pub fn all(&self, names: impl IntoIterator<Item = (Path, Vec<Member>)>) {
        self.0.state.lock().told_all(names.into_iter().collect());
        self.0.news.notify_one();
    }

    /// This is what one name has now; nothing: there is no such name any more.
    pub fn one(&self, name: &Path, members: Vec<Member>) {
        self.0.state.lock().told_one(name, members);
    }

    /// Nothing is new, and the source is well.
    pub fn alive(&self) {
        self.0.state.lock().heard = Some(Instant::now());
    }
}

pub(super) struct Subject {
    path: Path,
    common: Arc<Common>,
    state: Mutex<State>,
    /// There is something to do before it would be time for it.
    news: Notify,
    /// The first one holds a name, or the last one does not any more.
    held: Notify,
}

/// A name that somebody wants. What is believed of it is [`Belief`].
pub(super) struct Hold {
    pub subject: Arc<Subject>,
    pub belief: watch::Receiver<Belief>,
    name: Path,
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut state = self.subject.state.lock();
        state.release(&self.name);
        if state.holds == 0 {
            self.subject.held.notify_one();
        }
    }
}

impl Subject {
    pub(super) fn new(path: Path, common: Arc<Common>) -> Arc<Self> {
        let state = Mutex::new(State::new(path.clone(), Arc::clone(&common)));
        Arc::new(Self { path, common, state, news: Notify::new(), held: Notify::new() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.lock())
    }

    /// What is believed of a name, and word of changes. None, if there is no room for it.
    pub(super) fn hold(self: &Arc<Self>, name: &Path) -> Option<Hold> {
        let mut state = self.state.lock();
        let belief = state.hold(name)?;
        if state.is_asked() {
            self.news.notify_one();
        }
        if state.holds == 1 {
            self.held.notify_one();
        }
        Some(Hold { subject: Arc::clone(self), belief, name: name.clone() })
    }

    /// Whether somebody holds a name, or the addresses of one.
    pub(super) fn is_held(&self) -> bool {
        let mut state = self.state.lock();
        state.sweep() || state.holds > 0
    }

    /// Follows the source until nobody holds a name any more and `forget` agrees.
    pub(super) async fn follow(self: &Arc<Self>, source: &dyn Source, forget: impl Fn(&Path) -> bool) {
        tokio::select! {
            () = self.unwanted(forget) => {}
            () = self.ask_again_and_again(source) => {}
        }
    }

    /// Ends when nobody has wanted it for a while and `forget` agrees.
    async fn unwanted(&self, forget: impl Fn(&Path) -> bool) {
        loop {
            let idle = self.look(|state| (state.holds == 0).then_some(state.idle));
            let Some(since) = idle else {
                // Names may have been released whose addresses were still in use.
                let _ = timeout(LINGER, self.held.notified()).await;
                self.state.lock().sweep();
                continue;
            };
            let place = self.common.linger();
            if place.is_some() && since.elapsed() < LINGER {
                let _ = timeout(LINGER - since.elapsed(), self.held.notified()).await;
                continue;
            }
            if forget(&self.path) {
                return;
            }
            let _ = timeout(LINGER, self.held.notified()).await;
        }
    }

    async fn ask_again_and_again(self: &Arc<Self>, source: &dyn Source) {
        let mut pause = FIRST_PAUSE;
        loop {
            let began = Instant::now();
            let Some(error) = self.ask(source, began).await else {
                self.common.stats.resyncs.add_one();
                continue;
            };
            if self.look(|state| state.told.is_some_and(|told| told >= began)) {
                pause = FIRST_PAUSE;
            }
            if self.look(|state| state.outage.is_none()) {
                let subject = self.path.as_str();
                tracing::warn!(subject, %error, "discovery cannot be asked; what is known goes on");
            }
            self.state.lock().failed(&error.0);
            sleep(jittered(pause)).await;
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    /// Asks, and hears what changes, until that cannot go on; none: it is time to ask anew.
    async fn ask(self: &Arc<Self>, source: &dyn Source, began: Instant) -> Option<SourceError> {
        let says = Says::new(self);
        let mut asking = pin!(source.follow(&self.path, &says));
        let mut resync = pin!(sleep(jittered(RESYNC)));
        let mut checking = pin!(Fuse::terminated());
        let silence = jittered(SELF_CHECK);
        let mut checked = began;
        loop {
            let (told, next) = self.due(began);
            if told.is_none_or(|told| told < began) && began.elapsed() >= LAST_ANSWER {
                return Some(SourceError(format!("no answer within {} s", LAST_ANSWER.as_secs())));
            }
            let (is_asked, heard) = self.look(|state| (state.is_asked(), state.heard));
            let check_at = heard.map_or(checked, |heard| heard.max(checked)) + silence;
            let is_silent = told.is_some() && check_at <= Instant::now();
            if (is_asked || is_silent) && checking.is_terminated() {
                checking.set(self.check(source).fuse());
            }
            let next = if told.is_some() && !is_silent { next.min(check_at) } else { next };
            tokio::select! {
                error = &mut asking => return Some(error),
                () = &mut resync => return None,
                answer = &mut checking => {
                    checked = Instant::now();
                    match answer {
                        Ok(()) => self.state.lock().checked(),
                        Err(error) => return Some(error),
                    }
                }
                () = sleep_until(next) => {}
                () = self.news.notified() => {}
            }
        }
    }

    /// Does what is due; says when everything was told last, and when to look again.
    fn due(&self, began: Instant) -> (Option<Instant>, Instant) {
        let mut state = self.state.lock();
        state.waited(began);
        let doubts = state.end_doubts();
        let first = [began + FIRST_ANSWER, began + LAST_ANSWER].into_iter().find(|at| *at > Instant::now());
        let later = Instant::now() + LAST_ANSWER;
        (state.told, [doubts, first].into_iter().flatten().min().unwrap_or(later))
    }

    async fn check(&self, source: &dyn Source) -> Result<(), SourceError> {
        // It is never closed.
        let _turn = self.common.checks.acquire().await;
        self.common.stats.checks.add_one();
        timeout(CHECK_WITHIN, source.check(&self.path)).await.unwrap_or_else(|_| {
            Err(SourceError(format!("no answer within {} s to whether it is there", CHECK_WITHIN.as_secs())))
        })
    }
}
