//! The way of a request, from the edge to the wire. The alphabet is the order of events: accept, address, admit, bind,
//! choose, dispatch.
//!
//! Each room receives the next one as a value, so only this file knows the order:
//!
//! ```text
//! accept    connection → session → Screen (trust) → Edge (span, numbers,    one per listener
//!           panic guard) → Bounded (what a call may bring) → Lawful (whose
//!           dtab may override what)
//! address   Address (the name that is meant)
//! admit     Admit (expired, too many)
//! bind      Bind (route: name + dtab → cluster; total deadline, purse)      one per gateway
//! choose    Cluster (balance, requeue)                                      one per bound id
//! dispatch  Observed (span, numbers) → Accrual → AttemptDeadline
//!           → Translated (only where a setting asks for it) → Session       one per endpoint
//! ```

pub mod accept;
pub mod address;
pub mod admit;
pub mod bind;
pub mod choose;
mod clusters;
pub mod dispatch;

pub use clusters::ClusterTable;

use crate::names::Binder;
use crate::observe::{Registry, Tracer};
use accept::overrides::Lawful;
use accept::{Bounded, Counted, Edge, Listener, Screen};
use address::Address;
use admit::Admit;
use bind::{Bind, Bounds};
use dispatch::Dispatch;
use muxgate_rpc::Pressure;
use std::sync::Arc;

/// What the flow is made of.
pub struct Parts {
    /// Follows names.
    pub binder: Arc<Binder>,
    /// Counts.
    pub registry: Arc<Registry>,
    /// Traces.
    pub tracer: Tracer,
    /// Settings of a service by its name.
    pub service: bind::ParamsOf,
    /// Settings of a cluster by its bound id.
    pub cluster: Arc<dyn Fn(&muxgate_wire::name::Path) -> choose::Params + Send + Sync>,
    /// Settings of a cluster's endpoints by its bound id.
    pub endpoint: dispatch::ParamsOf,
    /// How much is kept.
    pub bounds: Bounds,
}

/// The rooms behind the listeners, in order.
pub struct Flow {
    bind: Arc<Bind<ClusterTable>>,
    clusters: Arc<ClusterTable>,
    registry: Arc<Registry>,
    tracer: Tracer,
}

impl Flow {
    /// Puts the rooms together. Must be called on a runtime.
    pub fn new(parts: Parts) -> Self {
        let Parts { binder, registry, tracer, service, cluster, endpoint, bounds } = parts;
        let dispatch = Dispatch::new(endpoint, tracer.clone(), Arc::clone(&registry));
        let clusters = Arc::new(ClusterTable::new(cluster, Arc::new(dispatch)));
        let bind = Bind::new(binder, Arc::clone(&clusters), service, Arc::clone(&registry), &bounds);
        Self { bind, clusters, registry, tracer }
    }

    /// Puts a listener in front.
    ///
    /// # Errors
    /// When its address cannot be listened on.
    pub fn listen(
        &self,
        accept: accept::Params,
        address: &address::Params,
        admit: &admit::Params,
    ) -> std::io::Result<Listener> {
        let stats = self.registry.listener(&accept.name);
        let pressure = Pressure::new(admit.max_concurrent);
        let named = Address::new(address, Admit::new(pressure.clone(), Arc::clone(&self.bind)));
        let events = Arc::new(Counted(Arc::clone(&stats)));
        let lawful = Lawful::new(accept.overrides.clone(), Arc::clone(&events) as _, named);
        let bounded = Bounded::new(accept.limits, events, lawful);
        let edge = Edge::new(self.tracer.clone(), Arc::clone(&stats), bounded);
        let screen = Screen::new(accept.trust, edge);
        Listener::bind(accept, stats, screen, pressure)
    }

    /// The routes in use.
    pub fn routes(&self) -> Vec<serde_json::Value> {
        self.bind.explain()
    }

    /// The clusters in use.
    pub fn clusters(&self) -> Vec<serde_json::Value> {
        self.clusters.snapshot()
    }
}
