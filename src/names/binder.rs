//! Live binding: resolve, publish, sleep until something that was read changes, again.
//!
//! A binding whose answers are all fixed has no task of its own; one task of the binder resolves it again when the base
//! table changes. Others have one small task, which ends when the binding is dropped. How many bindings there are is
//! for the caller to bound.
//!
//! ```text
//!   bind ──▶ round ──▶ nothing live was read ──▶ at rest ◀── base table changed: round
//!              │ something live was read            ▲
//!              ▼                                    │ nothing live any more
//!            task: wait for an answer or the base table, round
//! ```

use super::addr::{Addr, Bound};
use super::delegate::{Delegation, delegate};
use super::explain::{Step, explain};
use super::namer::{Answer, Lookup, Namers};
use super::resolve::{Book, Failure, Read, Resolution, State, resolve};
use dashmap::DashMap;
use futures_util::future::{Either, pending, select_all};
use muxgate_wire::name::{Dtab, NameTree, Path};
use parking_lot::Mutex;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

/// Bindings at rest that are resolved again in one go when the base table changes, before others get a turn.
const BATCH: usize = 64;

/// What a client that holds on to a binding works with.
#[derive(Clone, Debug)]
pub enum BindState {
    /// Not known yet; requests wait.
    Pending,
    /// The tree to use, without alternations. Stays while later answers are pending or failed.
    Bound(Arc<NameTree<Bound>>),
    /// It could not be found out, and nothing is known from before. The text says what was tried.
    Failed(String),
}

impl BindState {
    /// Whether passing on `next` would be no news.
    fn keeps(&self, next: &Self) -> bool {
        match (self, next) {
            (Self::Bound(now), Self::Bound(next)) => {
                now == next && now.leaves().into_iter().zip(next.leaves()).all(|(now, next)| now.same(next))
            }
            (Self::Bound(_), Self::Pending | Self::Failed(_)) => true,
            (Self::Failed(now), Self::Failed(next)) => now == next,
            (Self::Pending, Self::Pending) => true,
            _ => false,
        }
    }
}

/// Binds names by a base table and a set of namers.
pub struct Binder {
    shared: Arc<Shared>,
}

struct Shared {
    namers: Namers,
    base: watch::Receiver<Dtab>,
    runtime: Handle,
    serial: AtomicU64,
    /// Bindings without a task.
    at_rest: DashMap<u64, Weak<Inner>>,
    follower: Mutex<Option<AbortHandle>>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(task) = self.follower.get_mut().take() {
            task.abort();
        }
    }
}

impl Binder {
    /// A binder; its tasks run on the current runtime. If the sender of the base table is gone, the table is fixed.
    ///
    /// # Panics
    /// Outside a runtime.
    pub fn new(namers: Namers, base: watch::Receiver<Dtab>) -> Self {
        let shared = Arc::new(Shared {
            namers,
            base: base.clone(),
            runtime: Handle::current(),
            serial: AtomicU64::new(0),
            at_rest: DashMap::new(),
            follower: Mutex::new(None),
        });
        if base.has_changed().is_ok() {
            let task = shared.runtime.spawn(follow_base(base, Arc::downgrade(&shared)));
            *shared.follower.lock() = Some(task.abort_handle());
        }
        Self { shared }
    }

    /// Binds `path` by the base table with the entries of `local` behind it. The state is worked out at once from what
    /// is known.
    pub fn bind(&self, path: &Path, local: &Dtab) -> Binding {
        let inner = Arc::new(Inner {
            serial: self.shared.serial.fetch_add(1, Ordering::Relaxed),
            path: path.clone(),
            local: local.clone(),
            state: watch::channel(BindState::Pending).0,
            work: Mutex::new(Work {
                base: self.shared.base.clone(),
                held: HashMap::new(),
                last: None,
                explained: None,
                stale: None,
                task: None,
                closed: false,
            }),
            shared: self.shared.clone(),
        });
        inner.advance();
        Binding { inner }
    }

    /// What `path` comes to right now; waits until it is not pending, but not longer than `within`.
    pub async fn dry_run(&self, path: &Path, local: &Dtab, within: Duration) -> Resolution {
        let settled = |resolution: &Resolution| resolution.state != State::Pending;
        self.settle(local, within, |dtab, book| resolve(dtab, path, book), settled).await
    }

    /// The tree of all that `path` could mean right now; waits until every namer has answered, but not longer than
    /// `within`.
    ///
    /// # Errors
    /// A loop, or a tree beyond the limits.
    pub async fn delegate(&self, path: &Path, local: &Dtab, within: Duration) -> Result<Delegation, Failure> {
        let settled = |tree: &Result<Delegation, Failure>| !tree.as_ref().is_ok_and(Delegation::has_pending);
        let end = Instant::now() + within;
        let tree =
            self.settle(local, within, |dtab, book| Ok(delegate(dtab, path, book)?.0), settled).await?;
        // The names are known; their addresses may still be asked for.
        for bound in tree.leaves() {
            let mut addr = bound.addr.clone();
            let _ = timeout_at(end, addr.wait_for(|addr| *addr != Addr::Pending)).await;
        }
        Ok(tree)
    }

    async fn settle<T>(
        &self,
        local: &Dtab,
        within: Duration,
        work: impl Fn(&Dtab, &dyn Book) -> T,
        settled: impl Fn(&T) -> bool,
    ) -> T {
        let end = Instant::now() + within;
        let mut held = HashMap::new();
        loop {
            let dtab = self.shared.base.borrow().concat(local);
            let book = Holding::new(&self.shared.namers, held);
            let outcome = work(&dtab, &book);
            held = book.used();
            if settled(&outcome)
                || timeout_at(end, any_changed(held.values().cloned().collect())).await.is_err()
            {
                return outcome;
            }
        }
    }
}

/// When the base table changes: resolve again what has no task to do so.
async fn follow_base(mut base: watch::Receiver<Dtab>, shared: Weak<Shared>) {
    while base.changed().await.is_ok() {
        let Some(shared) = shared.upgrade() else { return };
        let resting: Vec<_> = shared.at_rest.iter().filter_map(|entry| entry.value().upgrade()).collect();
        drop(shared);
        for batch in resting.chunks(BATCH) {
            for inner in batch {
                inner.advance();
            }
            tokio::task::yield_now().await;
        }
    }
}

/// A name that is being followed; dropping it ends that.
pub struct Binding {
    inner: Arc<Inner>,
}

impl Binding {
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

    /// One line: what became of the name in the last resolution, and what was tried.
    pub fn explain(&self) -> String {
        let mut work = self.inner.work.lock();
        let Work { last, explained, .. } = &mut *work;
        let text = || last.as_ref().map(|last| explain(&self.inner.path, last)).unwrap_or_default();
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
        self.inner.shared.at_rest.remove(&self.inner.serial);
    }
}

struct Inner {
    serial: u64,
    path: Path,
    local: Dtab,
    state: watch::Sender<BindState>,
    work: Mutex<Work>,
    shared: Arc<Shared>,
}

/// What a round works on. Rounds hold the lock, so that the latest table wins.
struct Work {
    base: watch::Receiver<Dtab>,
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

type Held = HashMap<Read, watch::Receiver<Answer>>;

impl Inner {
    /// A round, and then either a task or rest, as the answers demand. Returns what a task has to wait for.
    fn advance(self: &Arc<Self>) -> Option<(Vec<watch::Receiver<Answer>>, watch::Receiver<Dtab>)> {
        let mut work = self.work.lock();
        loop {
            if work.closed {
                return None;
            }
            self.round(&mut work);
            if !work.held.is_empty() {
                break;
            }
            work.task = None;
            if work.base.has_changed().is_err() {
                return None;
            }
            // First rest, then look again: from here on the follower of the base table sees this binding.
            self.shared.at_rest.insert(self.serial, Arc::downgrade(self));
            if !matches!(work.base.has_changed(), Ok(true)) {
                return None;
            }
        }
        self.shared.at_rest.remove(&self.serial);
        if work.task.is_none() {
            work.task = Some(self.shared.runtime.spawn(follow(self.clone())).abort_handle());
        }
        Some((work.held.values().cloned().collect(), work.base.clone()))
    }

    fn round(&self, work: &mut Work) {
        let dtab = work.base.borrow_and_update().concat(&self.local);
        let book = Holding::new(&self.shared.namers, std::mem::take(&mut work.held));
        let mut resolution = resolve(&dtab, &self.path, &book);
        // What is live of them is held; the rest need not be kept.
        resolution.reads = Vec::new();
        work.held = book.used();
        self.publish(match &resolution.state {
            State::Pending => BindState::Pending,
            State::Ok(tree) => BindState::Bound(Arc::new(tree.clone())),
            State::Failed(_) => BindState::Failed(explain(&self.path, &resolution)),
        });
        let stale =
            !matches!(resolution.state, State::Ok(_)) && matches!(*self.state.borrow(), BindState::Bound(_));
        work.stale = stale.then(|| work.stale.unwrap_or_else(Instant::now));
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

    /// What the task waits for.
    fn waits(&self) -> (Vec<watch::Receiver<Answer>>, watch::Receiver<Dtab>) {
        let work = self.work.lock();
        (work.held.values().cloned().collect(), work.base.clone())
    }
}

async fn follow(inner: Arc<Inner>) {
    let (mut answers, mut base) = inner.waits();
    loop {
        let changed_base = async {
            if base.changed().await.is_err() {
                pending::<()>().await;
            }
        };
        tokio::select! {
            () = any_changed(answers) => {}
            () = changed_base => {}
        }
        match inner.advance() {
            Some(next) => (answers, base) = next,
            None => return,
        }
    }
}

/// Ends when one of them has changed since it was read; never, if none can change any more.
async fn any_changed(receivers: Vec<watch::Receiver<Answer>>) {
    let changes = receivers.into_iter().map(|mut receiver| {
        Box::pin(async move {
            if receiver.changed().await.is_err() {
                pending::<()>().await;
            }
        })
    });
    let changes: Vec<_> = changes.collect();
    let any = if changes.is_empty() { Either::Left(pending()) } else { Either::Right(select_all(changes)) };
    any.await;
}

/// A book that asks namers when it is opened at a new page, and holds on to what may change.
struct Holding<'a> {
    namers: &'a Namers,
    before: Held,
    now: RefCell<Held>,
}

impl<'a> Holding<'a> {
    fn new(namers: &'a Namers, before: Held) -> Self {
        Self { namers, before, now: RefCell::default() }
    }

    /// The live answers that were read; others are let go, and namers may stop their work for them.
    fn used(self) -> Held {
        self.now.into_inner()
    }
}

impl Book for Holding<'_> {
    fn candidates(&self, path: &Path) -> Vec<usize> {
        self.namers.candidates(path)
    }

    fn prefix(&self, namer: usize) -> Path {
        self.namers.get(namer).map(|namer| namer.prefix().clone()).unwrap_or_default()
    }

    fn said(&self, namer: usize, path: &Path) -> Option<Answer> {
        let read = Read { namer, path: path.clone() };
        let mut now = self.now.borrow_mut();
        if let Some(receiver) = now.get(&read) {
            return Some(receiver.borrow().clone());
        }
        let mut receiver = match self.before.get(&read) {
            Some(receiver) => receiver.clone(),
            None => match self.namers.get(namer)?.lookup(path) {
                Lookup::Fixed(answer) => return Some(answer),
                Lookup::Live(receiver) => receiver,
            },
        };
        let answer = receiver.borrow_and_update().clone();
        // A receiver without a sender has nothing more to say.
        if receiver.has_changed().is_ok() {
            now.insert(read, receiver);
        }
        Some(answer)
    }
}
