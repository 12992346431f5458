//! Bindings that stay true: each follows its name, whatever changes.
//!
//! A binding at rest, whose answer depends on nothing that can change but the base table, has no task; the one that follows the
//! base table resolves it again. Any other has one small task that sleeps until an answer it read has changed.
//! So a change costs work only where it is read.

mod base;
mod binding;
mod book;

pub use base::{Base, Origin, Table};
pub use binding::Binding;

use super::addr::{Addr, Bound};
use super::delegate::{Delegation, delegate};
use super::namer::Namers;
use super::resolve::{Book, Failure, Resolution, State, Why, resolve};
use arc_swap::ArcSwap;
use binding::{Inner, without_table};
use book::{Held, Holding, any_changed};
use dashmap::DashMap;
use muxgate_wire::name::{Dtab, NameTree, Path};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

/// Bindings that are resolved again in one go when the base table changes, before others get a turn.
const BATCH: usize = 64;

/// How long a table that is new waits for namers that have not answered yet before it counts as in force: an old answer
/// serves until theirs is there, and theirs may never come.
const CATCH_UP: Duration = Duration::from_secs(2);

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
    /// The table that rounds work with from now on.
    base: ArcSwap<Base>,
    /// The last one that every binding has worked with.
    in_force: watch::Sender<Base>,
    runtime: Handle,
    serial: AtomicU64,
    all: DashMap<u64, Weak<Inner>>,
    /// Some binding that was behind is not any more.
    caught_up: Notify,
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
    pub fn new(namers: Namers, mut base: watch::Receiver<Base>) -> Self {
        let first = base.borrow_and_update().clone();
        let shared = Arc::new(Shared {
            namers,
            base: ArcSwap::from_pointee(first.clone()),
            in_force: watch::channel(first).0,
            runtime: Handle::current(),
            serial: AtomicU64::new(0),
            all: DashMap::new(),
            caught_up: Notify::new(),
            follower: Mutex::new(None),
        });
        if base.has_changed().is_ok() {
            let task = shared.runtime.spawn(follow_base(base, Arc::downgrade(&shared)));
            *shared.follower.lock() = Some(task.abort_handle());
        }
        Self { shared }
    }

    /// The base table that is in force everywhere: every binding has been resolved again by it, and every later call goes
    /// by it. Follows the one that was given to [`Binder::new`]; of several changes in a row some may be left out.
    ///
    /// Where a namer has to be asked for the first time, its answer is waited for, but for 2 s at most.
    pub fn in_force(&self) -> watch::Receiver<Base> {
        self.shared.in_force.subscribe()
    }

    /// Names that lead somewhere now, each once, in order, and at most so many.
    pub fn names(&self, most: usize) -> Vec<Path> {
        let mut names = BTreeSet::new();
        for binding in self.shared.all.iter() {
            if names.len() >= most {
                break;
            }
            names.extend(binding.upgrade().filter(|b| b.is_bound()).map(|b| b.path().clone()));
        }
        names.into_iter().collect()
    }

    /// Binds `path` by the base table with the entries of `local` behind it. The state is worked out at once from what
    /// is known.
    pub fn bind(&self, path: &Path, local: &Dtab) -> Binding {
        let serial = self.shared.serial.fetch_add(1, Ordering::Relaxed);
        let inner = Inner::new(serial, path, local, &self.shared);
        // First here, then the first round: whoever changes the table in between sees this binding.
        self.shared.all.insert(serial, Arc::downgrade(&inner));
        inner.advance();
        Binding::new(inner)
    }

    /// What `path` comes to right now; waits until it is not pending, but not longer than `within`.
    pub async fn dry_run(&self, path: &Path, local: &Dtab, within: Duration) -> Resolution {
        let end = Instant::now() + within;
        let settled = |resolution: &Resolution| resolution.state != State::Pending;
        match self.table(local, end).await {
            Ok(dtab) => self.settle(end, |book| resolve(&dtab, path, book), settled).await,
            Err(base) => without_table(path, &base),
        }
    }

    /// The tree of all that `path` could mean right now; waits until every namer has answered, but not longer than
    /// `within`.
    ///
    /// # Errors
    /// A loop, or a tree beyond the limits; or there is no table.
    pub async fn delegate(&self, path: &Path, local: &Dtab, within: Duration) -> Result<Delegation, Failure> {
        let end = Instant::now() + within;
        let dtab = self.table(local, end).await.map_err(|base| {
            let why = match base {
                Base::Pending(why) => format!("no table yet: {why}"),
                Base::Failed(why) => why,
                Base::Known(_) => String::new(),
            };
            Failure { path: path.clone(), why: Why::NoTable(why) }
        })?;
        let settled = |tree: &Result<Delegation, Failure>| !tree.as_ref().is_ok_and(Delegation::has_pending);
        let tree = self.settle(end, |book| Ok(delegate(&dtab, path, book)?.0), settled).await?;
        // The names are known; their addresses may still be asked for.
        for bound in tree.leaves() {
            let mut addr = bound.addr.clone();
            let _ = timeout_at(end, addr.wait_for(|addr| *addr != Addr::Pending)).await;
        }
        Ok(tree)
    }

    /// The table, with `local` over it; waits for it if need be.
    async fn table(&self, local: &Dtab, end: Instant) -> Result<Dtab, Base> {
        let mut in_force = self.shared.in_force.subscribe();
        let known = in_force.wait_for(|base| !matches!(base, Base::Pending(_)));
        let waiting = matches!(&**self.shared.base.load(), Base::Pending(_));
        if waiting {
            let _ = timeout_at(end, known).await;
        }
        match &**self.shared.base.load() {
            Base::Known(table) => Ok(table.dtab.concat(local)),
            other => Err(other.clone()),
        }
    }

    async fn settle<T>(
        &self,
        end: Instant,
        work: impl Fn(&dyn Book) -> T,
        settled: impl Fn(&T) -> bool,
    ) -> T {
        let mut held = Held::new();
        loop {
            let book = Holding::new(&self.shared.namers, held);
            let outcome = work(&book);
            held = book.used();
            if settled(&outcome)
                || timeout_at(end, any_changed(held.values().cloned().collect())).await.is_err()
            {
                return outcome;
            }
        }
    }
}

/// When the base table changes: resolve everything again, and say when that is done.
async fn follow_base(mut base: watch::Receiver<Base>, shared: Weak<Shared>) {
    while base.changed().await.is_ok() {
        let next = base.borrow_and_update().clone();
        let Some(shared) = shared.upgrade() else { return };
        if !shared.base.load().gives_way_to(&next) {
            continue;
        }
        // From here on new bindings use it; those that exist are all seen below.
        shared.base.store(Arc::new(next.clone()));
        let all: Vec<_> = shared.all.iter().map(|entry| entry.value().clone()).collect();
        for batch in all.chunks(BATCH) {
            batch.iter().filter_map(Weak::upgrade).for_each(|binding| binding.advance());
            tokio::task::yield_now().await;
        }
        caught_up(&shared, all, &base).await;
        // If there is a newer one, it is the next to be said.
        if !base.has_changed().unwrap_or(false) {
            shared.in_force.send_replace(next);
        }
    }
}

/// Waits until nobody is served by an older table because namers have not answered yet; for [`CATCH_UP`] at most, and no
/// longer than `base` is the newest.
async fn caught_up(shared: &Shared, mut behind: Vec<Weak<Inner>>, base: &watch::Receiver<Base>) {
    let end = Instant::now() + CATCH_UP;
    let mut newer = base.clone();
    loop {
        let news = shared.caught_up.notified();
        behind.retain(|binding| binding.upgrade().is_some_and(|binding| binding.is_behind()));
        if behind.is_empty() {
            return;
        }
        tokio::select! {
            news = timeout_at(end, news) => if news.is_err() { return },
            Ok(()) = newer.changed() => return,
        }
    }
}
