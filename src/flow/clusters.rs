//! The clusters in use, one for each bound id, whatever names and dtabs led there.

use super::bind::Clusters;
use super::choose::{self, Build, Cluster, Parts};
use super::dispatch::Dispatch;
use crate::names::Bound;
use dashmap::DashMap;
use muxgate_rpc::{Failure, Request, Response, Serve, Status};
use muxgate_wire::name::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Settings of a cluster by its bound id.
pub type ParamsOf = Arc<dyn Fn(&Path) -> choose::Params + Send + Sync>;

/// How long a call waits for a cluster's first addresses, at most.
const ADDRESSES_WITHIN: Duration = Duration::from_secs(10);

/// Clusters by id. They live as long as a route holds them; no table keeps them alive.
pub struct ClusterTable {
    params: ParamsOf,
    dispatch: Arc<Dispatch>,
    live: Arc<Live>,
}

type Live = DashMap<Path, Weak<Entry>>;

impl ClusterTable {
    /// Clusters whose endpoints are built by `dispatch`.
    pub fn new(params: ParamsOf, dispatch: Arc<Dispatch>) -> Self {
        Self { params, dispatch, live: Arc::default() }
    }

    /// The clusters in use, for admin pages.
    pub fn snapshot(&self) -> Vec<serde_json::Value> {
        let live: Vec<_> = self.live.iter().filter_map(|entry| entry.value().upgrade()).collect();
        live.iter().map(|entry| describe(&entry.cluster)).collect()
    }

    fn make(&self, bound: &Bound) -> Arc<Entry> {
        let dispatch = Arc::clone(&self.dispatch);
        let build: Arc<dyn Build> = Arc::new(move |id: &Path, address| dispatch.build(id, address));
        let cluster = Cluster::new(Parts {
            id: bound.id.clone(),
            params: (self.params)(&bound.id),
            binding: ADDRESSES_WITHIN,
            members: bound.addr.clone(),
            build,
            events: Arc::new(Logged(bound.id.clone())),
        });
        Arc::new(Entry { cluster, id: bound.id.clone(), live: Arc::downgrade(&self.live) })
    }
}

impl Clusters for ClusterTable {
    type Cluster = Held;

    fn cluster(&self, bound: &Bound) -> Held {
        let entry = match self.live.entry(bound.id.clone()) {
            dashmap::Entry::Occupied(mut known) => known.get().upgrade().unwrap_or_else(|| {
                let entry = self.make(bound);
                known.insert(Arc::downgrade(&entry));
                entry
            }),
            dashmap::Entry::Vacant(place) => {
                let entry = self.make(bound);
                place.insert(Arc::downgrade(&entry));
                entry
            }
        };
        Held(entry)
    }
}

/// A cluster that leaves the table when it is dropped.
struct Entry {
    cluster: Cluster,
    id: Path,
    live: Weak<Live>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let Some(live) = self.live.upgrade() {
            live.remove_if(&self.id, |_, entry| entry.strong_count() == 0);
        }
    }
}

/// A cluster in use.
#[derive(Clone)]
pub struct Held(Arc<Entry>);

impl Serve for Held {
    async fn call(&self, request: &mut Request) -> Result<Response, Failure> {
        self.0.cluster.call(request).await
    }

    fn status(&self) -> Status {
        self.0.cluster.status()
    }
}

/// What happens in a cluster, as log lines; its numbers are those of the route and of the endpoints.
struct Logged(Path);

impl choose::Events for Logged {
    fn requeue(&self, failed: &Failure) {
        tracing::debug!(cluster = self.0.as_str(), %failed, "trying another endpoint");
    }

    fn budget_exhausted(&self) {
        tracing::debug!(cluster = self.0.as_str(), "the retry budget does not pay for another attempt");
    }

    fn members(&self, size: usize, added: usize, removed: usize) {
        tracing::info!(cluster = self.0.as_str(), size, added, removed, "endpoints changed");
    }
}

fn describe(cluster: &Cluster) -> serde_json::Value {
    let endpoints = cluster.endpoints().into_iter().map(|(endpoint, weight)| {
        serde_json::json!({
            "address": endpoint.addr().to_string(),
            "weight": weight,
            "status": format!("{:?}", endpoint.status()).to_lowercase(),
            "in_flight": endpoint.in_flight(),
        })
    });
    serde_json::json!({ "id": cluster.id().as_str(), "endpoints": endpoints.collect::<Vec<_>>() })
}
