//! One name that is followed.
//!
//! ```text
//!              round: nothing read can change           base table
//!   at rest ◀───────────────────────────────── bind ◀── (advanced by the binder, all bindings in one go)
//!      └──────── round: something can ────────▶ task ◀── answers (it sleeps until one changes)
//! ```

use super::book::{Held, Holding, any_changed};
use super::{Base, BindState, Shared};
use crate::names::explain::{Step, explain_by};
use crate::names::namer::Answer;
use crate::names::resolve::{Failure, Resolution, State, Why, resolve};
use muxgate_wire::name::{Dtab, NameTree, Path};
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// A name that is being followed; dropping it ends that.
pub struct Binding {
    inner: Arc<Inner>,
}

impl Binding {
    pub(super) fn new(inner: Arc<Inner>) -> Self {
        Self { inner }
    }

    /// The path that was bound.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// What to work with now.
    pub fn state(&self) -> BindState {
        self.inner.state.borrow().clone()
    }

    /// The state, and word of its changes. Equal trees are not passed on again. Does not keep the binding alive.
    pub fn watch(&self) -> watch::Receiver<BindState> {
        self.inner.state.subscribe()
    }

    /// The table that was laid over the base table.
    pub fn local(&self) -> &Dtab {
        &self.inner.local
    }

    /// What the last resolution came to, which differs from [`Binding::state`] while that holds on to a good answer.
    pub fn latest(&self) -> State {
        self.inner.work.lock().last.as_ref().map_or(State::Pending, |last| last.state.clone())
    }

    /// Since when the last good tree is served although the name is pending or failed by now; [`Binding::latest`] says
    /// why. None while what is served is current.
    pub fn stale_since(&self) -> Option<Instant> {
        self.inner.work.lock().stale
    }

    /// What happened in the last resolution.
    pub fn steps(&self) -> Vec<Step> {
        self.inner.work.lock().last.as_ref().map(|last| last.steps.clone()).unwrap_or_default()
    }

    /// One line: what became of the name in the last resolution, by which table, and what was tried.
    pub fn explain(&self) -> String {
        let mut work = self.inner.work.lock();
        let Work { last, explained, base, .. } = &mut *work;
        let text = || last.as_ref().map(|last| told(&self.inner.path, last, base)).unwrap_or_default();
        explained.get_or_insert_with(text).clone()
    }
}

impl Drop for Binding {
    fn drop(&mut self) {
        let mut work = self.inner.work.lock();
        work.closed = true;
        work.held.clear();
        if let Some(task) = work.task.take() {
            task.abort();
        }
        drop(work);
        self.inner.shared.all.remove(&self.inner.serial);
    }
}

pub(super) struct Inner {
    serial: u64,
    path: Path,
    local: Dtab,
    state: watch::Sender<BindState>,
    work: Mutex<Work>,
    /// Tells the task that there is something else to wait for.
    renewed: Notify,
    shared: Arc<Shared>,
}

/// What a round works on. Rounds hold the lock, so that the latest table wins.
struct Work {
    /// The base table of the last round.
    base: Arc<Base>,
    /// The live answers that the last round read.
    held: Held,
    last: Option<Resolution>,
    /// The explanation of the last round, once somebody asked for it: calls to an unknown name ask again and again.
    explained: Option<String>,
    /// Since when the last round has been worse than what is served.
    stale: Option<Instant>,
    task: Option<AbortHandle>,
    closed: bool,
}

impl Inner {
    pub(super) fn new(serial: u64, path: &Path, local: &Dtab, shared: &Arc<Shared>) -> Arc<Self> {
        Arc::new(Self {
            serial,
            path: path.clone(),
            local: local.clone(),
            state: watch::channel(BindState::Pending).0,
            work: Mutex::new(Work {
                base: shared.base.load_full(),
                held: Held::new(),
                last: None,
                explained: None,
                stale: None,
                task: None,
                closed: false,
            }),
            renewed: Notify::new(),
            shared: shared.clone(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it leads somewhere.
    pub(super) fn is_bound(&self) -> bool {
        matches!(&*self.state.borrow(), BindState::Bound(tree)
            if !matches!(**tree, NameTree::Neg | NameTree::Fail | NameTree::Empty))
    }

    /// Whether an old answer serves until the one by the present table is there.
    pub(super) fn is_behind(&self) -> bool {
        let work = self.work.lock();
        !work.closed && work.stale.is_some() && work.last.as_ref().is_some_and(|l| l.state == State::Pending)
    }

    /// A round, and then either a task or rest, as the answers demand.
    pub(super) fn advance(self: &Arc<Self>) {
        if self.step().is_some() {
            self.renewed.notify_one();
        }
    }

    /// What a task has to wait for after a round; none if it has to end.
    fn step(self: &Arc<Self>) -> Option<Vec<watch::Receiver<Answer>>> {
        let mut work = self.work.lock();
        if work.closed {
            return None;
        }
        self.round(&mut work);
        if work.held.is_empty() {
            // A task that is asleep has nothing to wake up for.
            if let Some(task) = work.task.take() {
                task.abort();
            }
            return None;
        }
        if work.task.is_none() {
            work.task = Some(self.shared.runtime.spawn(follow(self.clone())).abort_handle());
        }
        Some(work.waits())
    }

    fn round(&self, work: &mut Work) {
        work.base = self.shared.base.load_full();
        let before = std::mem::take(&mut work.held);
        let mut resolution = match &*work.base {
            Base::Known(table) => {
                let book = Holding::new(&self.shared.namers, before);
                let resolution = resolve(&table.dtab.concat(&self.local), &self.path, &book);
                work.held = book.used();
                resolution
            }
            other => without_table(&self.path, other),
        };
        // What is live of them is held; the rest need not be kept.
        resolution.reads = Vec::new();
        self.publish(match &resolution.state {
            State::Pending => BindState::Pending,
            State::Ok(tree) => BindState::Bound(Arc::new(tree.clone())),
            State::Failed(_) => BindState::Failed(told(&self.path, &resolution, &work.base)),
        });
        let stale =
            !matches!(resolution.state, State::Ok(_)) && matches!(*self.state.borrow(), BindState::Bound(_));
        let was_behind = work.stale.is_some();
        work.stale = stale.then(|| work.stale.unwrap_or_else(Instant::now));
        if was_behind && resolution.state != State::Pending {
            self.shared.caught_up.notify_waiters();
        }
        work.last = Some(resolution);
        work.explained = None;
    }

    fn publish(&self, next: BindState) {
        self.state.send_if_modified(|now| {
            let news = !now.keeps(&next);
            if news {
                *now = next;
            }
            news
        });
    }
}

impl Work {
    fn waits(&self) -> Vec<watch::Receiver<Answer>> {
        self.held.values().cloned().collect()
    }
}

/// What every name comes to while there is no table.
pub(super) fn without_table(path: &Path, base: &Base) -> Resolution {
    let state = match base {
        Base::Failed(why) => State::Failed(Failure { path: path.clone(), why: Why::NoTable(why.clone()) }),
        Base::Pending(_) | Base::Known(_) => State::Pending,
    };
    Resolution { state, reads: Vec::new(), steps: Vec::new() }
}

/// The explanation of what `path` came to under `base`.
fn told(path: &Path, resolution: &Resolution, base: &Base) -> String {
    match base {
        Base::Pending(why) => format!("no table yet: {why}"),
        Base::Failed(why) => why.clone(),
        Base::Known(table) => explain_by(path, resolution, table.origin.as_ref()),
    }
}

/// Sleeps until something that was read has changed; the table's changes come from the binder.
async fn follow(inner: Arc<Inner>) {
    let mut answers = inner.work.lock().waits();
    loop {
        tokio::select! {
            () = any_changed(answers) => match inner.step() {
                Some(next) => answers = next,
                None => return,
            },
            () = inner.renewed.notified() => answers = inner.work.lock().waits(),
        }
    }
}
