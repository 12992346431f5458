//! The file namer `io.l5d.fs`: every file in a directory is a replica set, folders are further elements.
//!
//! The directory is kept in memory, so a lookup touches no disk: a stranger's name can neither escape from the root nor
//! cost more than a look into a table. A task follows the directory: by its events, and by a look every few seconds in
//! case the events fail. A missing file is negative, an empty one is a set without members. A bad file keeps its last
//! good content. Names beginning with a dot are ignored.

pub mod file;
mod params;
mod scan;

#[cfg(test)]
mod tests;

pub use params::Params;
pub use scan::{MAX_DEPTH, MAX_FILES};

use super::dns::Hosts;
use super::live::Live;
use crate::names::addr::Bound;
use crate::names::namer::{Answer, Lookup, Namer};
use arc_swap::ArcSwap;
use muxgate_wire::name::Path;
use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use parking_lot::Mutex;
use scan::{Node, Nodes, scan};
use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path as FilePath, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Notify;

/// A look at the directory after this time even without an event: links may lead where nothing is watched.
pub const LOOK: Duration = Duration::from_secs(5);

/// The same while the directory cannot be watched at all.
pub const LOOK_UNWATCHED: Duration = Duration::from_secs(1);

/// Events are gathered for this long before the directory is looked at.
const GATHER: Duration = Duration::from_millis(20);

/// Files named by events that are read again whatever their time stamps say; for more, the stamps decide.
const MAX_TOUCHED: usize = 1000;

/// A file namer.
pub struct Fs {
    shared: Arc<Shared>,
}

struct Shared {
    prefix: Path,
    root: PathBuf,
    hosts: Arc<Hosts>,
    known: ArcSwap<Known>,
    live: Live,
    events: Arc<Events>,
}

/// What is known of the directory.
struct Known {
    /// As of the last look that succeeded; none before there was one.
    nodes: Option<Nodes>,
    /// Why the last look did not.
    error: Option<String>,
}

/// What happened since the last look.
#[derive(Default)]
struct Events {
    touched: Mutex<HashSet<PathBuf>>,
    some: Notify,
}

impl Fs {
    /// A namer for `prefix`, such as `/#/io.l5d.fs`, over the files below `root`. Reads the directory before it returns.
    /// If that fails, names are failed until it succeeds. Follows host names in files through `hosts`.
    ///
    /// # Panics
    /// Outside a runtime.
    pub fn new(prefix: Path, root: impl Into<PathBuf>, hosts: Arc<Hosts>) -> Self {
        let shared = Arc::new(Shared {
            prefix,
            root: root.into(),
            hosts,
            known: ArcSwap::from_pointee(Known { nodes: None, error: None }),
            live: Live::default(),
            events: Arc::default(),
        });
        let watched = Watched::new(&shared.root, &shared.events);
        shared.look(&HashSet::new());
        let events = shared.events.clone();
        shared.hosts.runtime().spawn(follow(Arc::downgrade(&shared), events, watched));
        Self { shared }
    }
}

/// The file that a beginning of the path leads to; what follows is residual.
fn find(nodes: &Nodes, prefix: &Path, path: &Path) -> Answer {
    let rest = path.skip(prefix.len());
    for used in 1..=rest.len() {
        match nodes.get(&rest.take(used)) {
            Some(Node::Folder) => {}
            Some(Node::File(file)) => {
                return Answer::bound(Bound::new(
                    path.take(prefix.len() + used),
                    rest.skip(used),
                    file.set.addr(),
                ));
            }
            Some(Node::Gone(_)) | None => break,
        }
    }
    Answer::NEG
}

impl Namer for Fs {
    fn prefix(&self) -> &Path {
        &self.shared.prefix
    }

    fn lookup(&self, path: &Path) -> Lookup {
        self.shared.live.join(path, || self.shared.answer(path))
    }
}

impl Drop for Fs {
    fn drop(&mut self) {
        // The task sees that nobody is left, and ends.
        self.shared.events.some.notify_one();
    }
}

impl Shared {
    fn answer(&self, path: &Path) -> Answer {
        let known = self.known.load();
        match &known.nodes {
            Some(nodes) => find(nodes, &self.prefix, path),
            None => Answer::Failed(known.error.clone().unwrap_or_default()),
        }
    }

    /// Looks at the directory and passes on what is news. May block on the disk.
    fn look(&self, touched: &HashSet<PathBuf>) {
        let before = self.known.load_full();
        let known = match scan(&self.root, before.nodes.as_ref(), touched, &self.hosts) {
            Ok(nodes) => Known { nodes: Some(nodes), error: None },
            Err(error) => {
                let error = Some(format!("{}: {error}", self.root.display()));
                if before.error != error {
                    tracing::warn!(
                        error,
                        "cannot read the directory of names; the last good content goes on"
                    );
                }
                Known { nodes: before.nodes.clone(), error }
            }
        };
        self.known.store(Arc::new(known));
        self.live.refresh(|path| self.answer(path));
    }
}

/// Looks at the directory on every event and every few seconds, as long as the namer lives.
async fn follow(shared: Weak<Shared>, events: Arc<Events>, mut watched: Watched) {
    loop {
        tokio::select! {
            () = events.some.notified() => tokio::time::sleep(GATHER).await,
            () = tokio::time::sleep(if watched.watcher.is_some() { LOOK } else { LOOK_UNWATCHED }) => {}
        }
        let Some(shared) = shared.upgrade() else { return };
        let events = events.clone();
        let look = tokio::task::spawn_blocking(move || {
            if watched.id.is_none() || watched.id != id(&shared.root) {
                watched = Watched::new(&shared.root, &events);
            }
            let touched = std::mem::take(&mut *events.touched.lock());
            shared.look(&touched);
            watched
        });
        match look.await {
            Ok(still) => watched = still,
            // The runtime is going away.
            Err(_) => return,
        }
    }
}

/// A watch on a directory, which dies with that very directory.
struct Watched {
    id: Option<(u64, u64)>,
    watcher: Option<RecommendedWatcher>,
}

impl Watched {
    fn new(root: &FilePath, events: &Arc<Events>) -> Self {
        Self { id: id(root), watcher: watch(root, events) }
    }
}

/// Which directory the root is: it may be replaced by another of the same name.
fn id(root: &FilePath) -> Option<(u64, u64)> {
    std::fs::metadata(root).ok().map(|meta| (meta.dev(), meta.ino()))
}

/// Watches the directory and all below it. Without a watch the regular look has to do.
fn watch(root: &FilePath, events: &Arc<Events>) -> Option<RecommendedWatcher> {
    let to = events.clone();
    let heard = move |event: notify::Result<notify::Event>| {
        // Our own reading makes events of access; only the end of writing is one that counts.
        let paths = match event {
            Ok(event) => match event.kind {
                EventKind::Access(AccessKind::Close(AccessMode::Write)) => event.paths,
                EventKind::Access(_) => return,
                _ => event.paths,
            },
            Err(_) => Vec::new(),
        };
        let mut touched = to.touched.lock();
        let room = MAX_TOUCHED.saturating_sub(touched.len());
        touched.extend(paths.into_iter().take(room));
        drop(touched);
        to.some.notify_one();
    };
    let watcher = notify::recommended_watcher(heard).and_then(|mut watcher| {
        watcher.watch(root, RecursiveMode::Recursive)?;
        Ok(watcher)
    });
    watcher
        .inspect_err(|error| tracing::debug!(root = %root.display(), %error, "cannot watch; polls instead"))
        .ok()
}
