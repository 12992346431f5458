//! Numbers: a registry hands out shared handles, the rooms count on them, prometheus and admin read them.
//!
//! A handle is looked up once, when a listener, route or endpoint is built, and kept. A series lives as long as a handle
//! of it: what is gone leaves no line behind. Labels come from outside, so their number and length have bounds.

mod base;
pub mod calls;
mod discovery;
pub mod exceptions;
pub mod latency;
mod series;
mod table;
#[cfg(test)]
mod tests;

pub use base::TableStats;
pub use calls::{Call, Calls, Outcome, Totals};
pub use discovery::DiscoveryStats;
pub use series::{
    CertificateStats, Counter, EndpointStats, Gauge, ListenerStats, OpenConnection, RouteStats, SpanStats,
};

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use table::Table;

/// How many series there may be, and how long their labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Listeners kept apart.
    pub listeners: usize,
    /// Routes kept apart.
    pub routes: usize,
    /// Endpoints kept apart.
    pub endpoints: usize,
    /// Longest label in bytes; a longer one is cut, and those alike up to there share a series.
    pub label: usize,
}

impl Limits {
    /// More namers than anyone configures.
    pub const DISCOVERIES: usize = 100;
    /// More listeners than anyone configures.
    pub const LISTENERS: usize = 100;
    /// A series of a route takes some 2 KB of memory and 40 lines of text.
    pub const ROUTES: usize = 1000;
    /// A series of an endpoint takes some 2 KB of memory and 40 lines of text.
    pub const ENDPOINTS: usize = 2000;
    /// Enough for any name that a person gives.
    pub const LABEL: usize = 200;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            listeners: Self::LISTENERS,
            routes: Self::ROUTES,
            endpoints: Self::ENDPOINTS,
            label: Self::LABEL,
        }
    }
}

/// The label of the one series that all share for which there is no room.
pub const OTHER: &str = "other";
/// The label of the one series of all names that lead nowhere.
pub const UNKNOWN: &str = "unknown";

/// Where all series are found.
#[derive(Debug)]
pub struct Registry {
    label: usize,
    discoveries: Table<Arc<str>, DiscoveryStats>,
    listeners: Table<Arc<str>, ListenerStats>,
    routes: Table<Arc<str>, RouteStats>,
    endpoints: Table<(Arc<str>, SocketAddr), EndpointStats>,
    other_discovery: Arc<DiscoveryStats>,
    other_listener: Arc<ListenerStats>,
    other_route: Arc<RouteStats>,
    unknown_route: Arc<RouteStats>,
    other_endpoint: Arc<EndpointStats>,
    spans: Arc<SpanStats>,
    certificates: Arc<CertificateStats>,
    base: OnceLock<Arc<TableStats>>,
}

impl Registry {
    /// An empty registry.
    pub fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            label: limits.label,
            discoveries: Table::new(Limits::DISCOVERIES),
            listeners: Table::new(limits.listeners),
            routes: Table::new(limits.routes),
            endpoints: Table::new(limits.endpoints),
            other_discovery: Arc::new(DiscoveryStats::new(OTHER.into())),
            other_listener: Arc::new(ListenerStats::new(OTHER.into())),
            other_route: Arc::new(RouteStats::new(OTHER.into())),
            unknown_route: Arc::new(RouteStats::new(UNKNOWN.into())),
            other_endpoint: Arc::new(EndpointStats::new(OTHER.into(), None)),
            spans: Arc::new(SpanStats::default()),
            certificates: Arc::new(CertificateStats::default()),
            base: OnceLock::new(),
        })
    }

    /// The numbers of a listener, by its configured name.
    pub fn listener(&self, name: &str) -> Arc<ListenerStats> {
        let label = self.cut(name);
        let series = self.listeners.get(Arc::clone(&label), || ListenerStats::new(label));
        series.unwrap_or_else(|| Arc::clone(&self.other_listener))
    }

    /// The numbers of a route, by its path. Only for names that lead somewhere: see [`Registry::unknown_route`].
    pub fn route(&self, path: &str) -> Arc<RouteStats> {
        let label = self.cut(path);
        let series = self.routes.get(Arc::clone(&label), || RouteStats::new(label));
        series.unwrap_or_else(|| Arc::clone(&self.other_route))
    }

    /// The shared numbers of all names that lead nowhere, so that a stranger cannot mint series.
    pub fn unknown_route(&self) -> Arc<RouteStats> {
        Arc::clone(&self.unknown_route)
    }

    /// The numbers of an endpoint of the cluster with this bound id.
    pub fn endpoint(&self, cluster: &str, address: SocketAddr) -> Arc<EndpointStats> {
        let label = self.cut(cluster);
        let series =
            self.endpoints.get((Arc::clone(&label), address), || EndpointStats::new(label, Some(address)));
        series.unwrap_or_else(|| Arc::clone(&self.other_endpoint))
    }

    /// The numbers of a namer that watches a source, by its prefix.
    pub fn discovery(&self, prefix: &str) -> Arc<DiscoveryStats> {
        let label = self.cut(prefix);
        let series = self.discoveries.get(Arc::clone(&label), || DiscoveryStats::new(label));
        series.unwrap_or_else(|| Arc::clone(&self.other_discovery))
    }

    /// All namers that watch a source, by prefix; those beyond the bound are not shown.
    pub fn discoveries(&self) -> Vec<Arc<DiscoveryStats>> {
        self.discoveries.live()
    }

    /// The numbers of spans.
    pub fn spans(&self) -> &Arc<SpanStats> {
        &self.spans
    }

    /// The numbers of certificates.
    pub fn certificates(&self) -> &Arc<CertificateStats> {
        &self.certificates
    }

    /// The numbers of the base table that is followed in a store; shown from now on.
    pub fn follow_base(&self) -> Arc<TableStats> {
        Arc::clone(self.base.get_or_init(Arc::default))
    }

    /// The same, if a table is followed.
    pub fn base(&self) -> Option<&Arc<TableStats>> {
        self.base.get()
    }

    /// All listeners that live, by name; `other` only once it is used.
    pub fn listeners(&self) -> Vec<Arc<ListenerStats>> {
        let mut all = self.listeners.live();
        all.extend(used(&self.other_listener, &self.other_listener.calls));
        all
    }

    /// All routes that live, by path; `other` and `unknown` only once they are used.
    pub fn routes(&self) -> Vec<Arc<RouteStats>> {
        let mut all = self.routes.live();
        all.extend(used(&self.other_route, &self.other_route.calls));
        all.extend(used(&self.unknown_route, &self.unknown_route.calls));
        all
    }

    /// All endpoints that live, by cluster and address; `other` only once it is used.
    pub fn endpoints(&self) -> Vec<Arc<EndpointStats>> {
        let mut all = self.endpoints.live();
        all.extend(used(&self.other_endpoint, &self.other_endpoint.calls));
        all
    }

    fn cut(&self, label: &str) -> Arc<str> {
        Arc::from(label.get(..label.floor_char_boundary(self.label)).unwrap_or_default())
    }
}

fn used<S>(series: &Arc<S>, calls: &Calls) -> Option<Arc<S>> {
    (Arc::strong_count(series) > 1 || calls.totals().requests > 0).then(|| Arc::clone(series))
}
