//! The base table from a store: followed live, kept over outages and restarts, reported back.
//!
//! In come lines of one of several stores; out goes [`Base`], the store's table with our own entries behind it. One task
//! stays with one store until it is refused, cut off or met with silence, and then moves on to the next. What is believed
//! is decided in `belief`; the last good table lies on disk. Once a version is in force everywhere here, all stores are
//! told so.

mod belief;
mod follow;
mod keep;
mod plain;
mod report;
mod status;
#[cfg(test)]
mod tests;
mod version;

pub use belief::GRACE;
pub use report::id;
pub use version::Version;

use super::binder::{Base, Binder};
use crate::observe::stats::TableStats;
use crate::outside::http::{self, Http, HttpError};
use crate::outside::kept::Kept;
use belief::Belief;
use follow::Following;
use keep::Keep;
use muxgate_wire::name::Dtab;
use parking_lot::Mutex;
use serde_json::Value;
use status::Status;
use std::fmt;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Addresses of stores that one gateway may have.
pub const MAX_STORES: usize = 16;

/// Longest name of a table, in bytes.
pub const MAX_NAMESPACE: usize = 256;

/// Where the table is, and what it is called there.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// The stores, one of which is enough; the first is asked first.
    pub stores: Vec<http::Params>,
    /// Letters, digits, `_`, `-` and `.`.
    pub namespace: Arc<str>,
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stores: Vec<_> = self.stores.iter().map(|store| store.base.as_str()).collect();
        write!(f, "the table {} of {}", self.namespace, stores.join(" or "))
    }
}

/// Follows a table for as long as it lives.
pub struct Follower {
    status: Arc<Mutex<Status>>,
    stores: Vec<Http>,
    namespace: Arc<str>,
    tasks: JoinSet<()>,
}

impl Follower {
    /// Starts to follow a table, from what was kept of it on; `own` is laid over it. Must be called on a runtime.
    ///
    /// # Errors
    /// An address or certificates that cannot be used.
    pub fn start(
        params: &Params,
        own: Dtab,
        kept: Arc<Kept>,
        stats: Arc<TableStats>,
    ) -> Result<(Self, watch::Receiver<Base>), HttpError> {
        let stores = params.stores.iter().map(Http::open).collect::<Result<Vec<_>, _>>()?;
        let keep = Keep::new(kept, params);
        let (kept, when) = keep.get().unzip();
        let status = Arc::new(Mutex::new(Status::new(params)));
        let (to, base) = watch::channel(Base::Pending(format!("asking for {params}")));
        let namespace = Arc::clone(&params.namespace);
        let following = Following {
            stores: stores.clone(),
            namespace: Arc::clone(&namespace),
            own,
            belief: Belief::new(kept),
            keep,
            status: Arc::clone(&status),
            stats,
            to,
        };
        following.begin(when);
        let mut tasks = JoinSet::new();
        tasks.spawn(following.run());
        Ok((Self { status, stores, namespace, tasks }, base))
    }

    /// Tells every store, from now on, what is in force here. `id` is who we are: host and first port.
    pub fn report(&mut self, binder: &Arc<Binder>, id: &str) {
        for store in &self.stores {
            let who = report::Who { id: id.into(), namespace: Arc::clone(&self.namespace) };
            self.tasks.spawn(report::report(store.clone(), who, Arc::downgrade(binder)));
        }
    }

    /// Why there is no table yet; nothing once there is one.
    pub fn missing(&self) -> Option<String> {
        self.status.lock().missing()
    }

    /// What is known of the table, for people: `namespace`, `version`, `from`, `since`, `store`, `outage`, `lastError`,
    /// `doubted`.
    pub fn to_json(&self) -> Value {
        self.status.lock().to_json()
    }
}
