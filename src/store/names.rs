//! What names mean under the tables: a binder for each namespace that somebody asks about, bounded and evicted when idle.

use super::refusal::Refusal;
use super::storage::Mirror;
use crate::names::{Base, Binder, Binding, Namers};
use muxgate_wire::name::{Dtab, Path};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// Most namespaces that names are bound in at once.
pub(super) const MAX_BINDERS: usize = 1000;

/// Most names that are kept bound in one namespace.
pub(super) const MAX_NAMES: usize = 1000;

/// What nobody has asked for in so long is let go.
const IDLE: Duration = Duration::from_secs(600);

/// Binders by namespace. The empty name is that of no namespace: its table is empty.
pub(super) struct Names {
    namers: Namers,
    mirror: watch::Receiver<Mirror>,
    rooms: Mutex<HashMap<String, Arc<Room>>>,
}

/// Where the names of one namespace are bound.
pub(super) struct Room {
    pub binder: Binder,
    /// Names without a table of their own, while somebody asks for them.
    kept: Mutex<BTreeMap<Path, (Arc<Binding>, Instant)>>,
    used: Mutex<Instant>,
    follower: AbortHandle,
}

impl Drop for Room {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

impl Names {
    pub(super) fn new(namers: Namers, mirror: watch::Receiver<Mirror>) -> Self {
        Self { namers, mirror, rooms: Mutex::default() }
    }

    /// What is asked.
    pub(super) fn namers(&self) -> &Namers {
        &self.namers
    }

    /// The room of a namespace. A namespace without a table has an empty one, as in namerd.
    ///
    /// # Errors
    /// If there are too many in use.
    pub(super) fn room(&self, namespace: &str) -> Result<Arc<Room>, Refusal> {
        let mut rooms = self.rooms.lock();
        if let Some(room) = rooms.get(namespace) {
            *room.used.lock() = Instant::now();
            return Ok(Arc::clone(room));
        }
        if rooms.len() >= MAX_BINDERS {
            rooms.retain(|_, room| Arc::strong_count(room) > 1 || room.used.lock().elapsed() < IDLE);
        }
        if rooms.len() >= MAX_BINDERS {
            let idle = rooms.iter().filter(|(_, room)| Arc::strong_count(room) == 1);
            let oldest = idle.min_by_key(|(_, room)| *room.used.lock()).map(|(name, _)| name.clone());
            let oldest = oldest.ok_or_else(|| {
                Refusal::later(format!("names of {MAX_BINDERS} namespaces are in use: no more now"))
            })?;
            rooms.remove(&oldest);
        }
        let room = Arc::new(self.open(namespace.to_owned()));
        rooms.insert(namespace.to_owned(), Arc::clone(&room));
        Ok(room)
    }

    /// The room of a namespace, if there is one.
    pub(super) fn known(&self, namespace: &str) -> Option<Arc<Room>> {
        self.rooms.lock().get(namespace).cloned()
    }

    /// All rooms.
    pub(super) fn all(&self) -> Vec<(String, Arc<Room>)> {
        self.rooms.lock().iter().map(|(name, room)| (name.clone(), Arc::clone(room))).collect()
    }

    fn open(&self, namespace: String) -> Room {
        let mut mirror = self.mirror.clone();
        let (sender, base) = watch::channel(table(&mirror.borrow_and_update(), &namespace));
        let follower = tokio::spawn(async move {
            while mirror.changed().await.is_ok() {
                let next = table(&mirror.borrow_and_update(), &namespace);
                sender.send_if_modified(|now| {
                    let differs = *now != next;
                    *now = next;
                    differs
                });
            }
        });
        Room {
            binder: Binder::new(self.namers.clone(), base),
            kept: Mutex::default(),
            used: Mutex::new(Instant::now()),
            follower: follower.abort_handle(),
        }
    }
}

/// A namespace without a table has an empty one, as in namerd. What is stored and is no table makes names fail.
fn table(mirror: &Mirror, namespace: &str) -> Base {
    if !mirror.known && !namespace.is_empty() {
        return Base::Pending("the tables are not known yet".into());
    }
    match mirror.tables.get(namespace).map(|table| Dtab::parse(&*table.dtab)) {
        None => Dtab::empty().into(),
        Some(Ok(dtab)) => dtab.into(),
        Some(Err(error)) => Base::Failed(format!("what is stored is no dtab: {error}")),
    }
}

impl Room {
    /// Binds a name. Without a table of its own it is shared, and stays bound for a while.
    pub(super) fn bind(&self, path: &Path, local: &Dtab) -> Arc<Binding> {
        if !local.is_empty() {
            return Arc::new(self.binder.bind(path, local));
        }
        let mut kept = self.kept.lock();
        if let Some((binding, used)) = kept.get_mut(path) {
            *used = Instant::now();
            return Arc::clone(binding);
        }
        kept.retain(|_, (binding, used)| Arc::strong_count(binding) > 1 || used.elapsed() < IDLE);
        let binding = Arc::new(self.binder.bind(path, local));
        if kept.len() < MAX_NAMES {
            kept.insert(path.clone(), (Arc::clone(&binding), Instant::now()));
        }
        binding
    }

    /// What is bound here.
    pub(super) fn bound(&self) -> Vec<Arc<Binding>> {
        self.kept.lock().values().map(|(binding, _)| Arc::clone(binding)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::BindState;
    use crate::store::storage::{Table, Version};

    fn mirror(tables: &[(&str, &str)]) -> Mirror {
        let table = |(name, dtab): &(&str, &str)| {
            ((*name).to_owned(), Table { dtab: (*dtab).into(), version: Version(1) })
        };
        Mirror { tables: Arc::new(tables.iter().map(table).collect()), known: true, outage: None }
    }

    #[tokio::test(start_paused = true)]
    async fn names_follow_their_tables_and_rooms_are_bounded() {
        let (sender, receiver) = watch::channel(mirror(&[("a", "/svc=>/$/nil")]));
        let names = Names::new(
            crate::names::namers::system(&crate::names::namers::configured::Env::new(hosts()))
                .into_iter()
                .collect(),
            receiver,
        );
        let path = Path::parse("/svc/x").unwrap();
        let binding = names.room("a").unwrap().bind(&path, &Dtab::empty());
        let text = |binding: &Binding| match binding.state() {
            BindState::Bound(tree) => tree.to_string(),
            other => format!("{other:?}"),
        };
        assert_eq!(text(&binding), "$");
        let mut watch = binding.watch();
        sender.send_replace(mirror(&[("a", "/svc=>/$/fail")]));
        watch.changed().await.unwrap();
        assert_eq!(text(&binding), "!");
        for at in 0..MAX_BINDERS + 5 {
            names.room(&format!("n{at}")).unwrap();
        }
        assert_eq!(names.rooms.lock().len(), MAX_BINDERS);
    }

    fn hosts() -> Arc<crate::names::namers::dns::Hosts> {
        crate::names::namers::dns::Hosts::new(crate::names::namers::dns::Client::new(&Default::default()))
    }
}
