//! Name and dtab to a cluster: routes, total deadline, retry budget, classified retries.
//!
//! In comes a request whose `dst` is its full name; out goes one whose `dst` is the residual, with the purse that pays
//! for its further attempts. Routes are many and cheap, clusters few and shared: they come from the room below.

mod cache;
mod params;
mod retry;
mod route;
mod targets;

pub use params::{Backoff, Budget, Classifier, Params, Retries};
pub use retry::MAX_RETRIES;
pub use targets::Clusters;

use crate::names::Binder;
use crate::observe::Registry;
use cache::Cache;
use muxgate_rpc::{Deadline, Failure, Flags, Request, Response, Serve, Why};
use muxgate_wire::name::{Dtab, Path};
use muxgate_wire::pairs::Pairs;
use route::{Route, Service};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Settings of a service by its name.
pub type ParamsOf = Arc<dyn Fn(&Path) -> Params + Send + Sync>;

/// How many names and caches are kept.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Routes that led somewhere.
    pub routes: usize,
    /// Routes that have not: kept apart, so that a stranger's invented names push out no real one.
    pub unknown: usize,
    /// A route nobody asks for goes after this time (linkerd's `idleTtlSecs`).
    pub idle: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { routes: 10_000, unknown: 1_000, idle: Duration::from_secs(600) }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    name: Path,
    dtab: Pairs,
}

/// Finds the route of each call and keeps its promises: total deadline, budget, name known in time.
pub struct Bind<C: Clusters> {
    binder: Arc<Binder>,
    clusters: Arc<C>,
    params: ParamsOf,
    registry: Arc<Registry>,
    routes: Cache<Key, Arc<Route<C::Cluster>>>,
    unknown: Cache<Key, Arc<Route<C::Cluster>>>,
    /// Those with a series of their own; they go by age alone, so that no flood of names takes a series from a name that
    /// had it first.
    services: Cache<Path, Arc<Service>>,
}

impl<C: Clusters> Bind<C> {
    /// Routes by `binder`, to `clusters`. Must be called on a runtime: idle routes are dropped by a task.
    pub fn new(
        binder: Arc<Binder>,
        clusters: Arc<C>,
        params: ParamsOf,
        registry: Arc<Registry>,
        bounds: &Bounds,
    ) -> Arc<Self> {
        let bind = Arc::new(Self {
            binder,
            clusters,
            params,
            registry,
            routes: Cache::new(bounds.routes),
            unknown: Cache::new(bounds.unknown),
            services: Cache::new(usize::MAX),
        });
        let weak = Arc::downgrade(&bind);
        let idle = bounds.idle;
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(idle / 2).await;
                let Some(bind) = weak.upgrade() else { return };
                bind.routes.age();
                bind.unknown.age();
                bind.services.age();
            }
        });
        bind
    }

    /// All routes now known, for admin pages.
    pub fn explain(&self) -> Vec<serde_json::Value> {
        self.routes.values().iter().chain(&self.unknown.values()).map(|route| route.explain()).collect()
    }

    fn route(&self, request: &Request) -> Result<Arc<Route<C::Cluster>>, Failure> {
        let key = Key { name: request.dst.clone(), dtab: request.dtab.clone() };
        if let Some(route) = self.routes.get(&key) {
            return Ok(route);
        }
        let route = match self.unknown.get(&key) {
            Some(route) => route,
            None => {
                let local = Dtab::from_pairs(&key.dtab)
                    .map_err(|error| Failure::new(Why::BadRequest, format!("dtab of the call: {error}")))?;
                let binding = self.binder.bind(&key.name, &local);
                let route = Route::new(key.name.clone(), binding, (self.params)(&key.name));
                self.unknown.insert(key.clone(), Arc::new(route))
            }
        };
        if route.leads_somewhere(&*self.clusters) {
            self.unknown.remove(&key);
            return Ok(self.routes.insert(key, route));
        }
        Ok(route)
    }

    /// What all routes of one name share: numbers and budget. Names that lead nowhere share one series.
    fn service(&self, route: &Route<C::Cluster>) -> Arc<Service> {
        route.service_or_init(|| {
            self.services.get(route.name()).unwrap_or_else(|| {
                let stats = self.registry.route(route.name().as_str());
                let has_series = *stats.label == *route.name().as_str();
                let service = Arc::new(Service::new(route.params(), stats));
                match has_series {
                    true => self.services.insert(route.name().clone(), service),
                    false => service,
                }
            })
        })
    }
}

impl<C: Clusters> Serve for Bind<C> {
    async fn call(&self, request: &mut Request) -> Result<Response, Failure> {
        if let Some(named) = &request.local.named {
            let _ = named.set(request.dst.clone());
        }
        let arrived = request.local.arrived;
        let route = match self.route(request) {
            Ok(route) => route,
            Err(failure) => return self.unrouted(arrived, failure),
        };
        let limit = limit(request, route.params());
        let target = match route.target(&*self.clusters, arrived, limit.map(|(at, _)| at)).await {
            Ok(target) => target,
            Err(failure) => return self.unrouted(arrived, failure),
        };
        let service = self.service(&route);
        let counted = service.stats.begin(arrived);
        service.purse.deposit(arrived);
        request.local.purse = Some(Arc::clone(&service.purse));
        request.dst = target.residual;
        let retries = &route.params().retries;
        let call = async {
            match retries.classifier {
                Classifier::NonRetryableFailures => target.cluster.call(request).await,
                // Boxed, so that calls that are not tried again do not carry the room for this.
                Classifier::RetryableFailures => {
                    let until = limit.map(|(at, _)| at);
                    Box::pin(retry::attempts(&target.cluster, request, retries, until)).await
                }
            }
        };
        let result = match limit {
            Some((at, whose)) => timeout_at(at, call).await.unwrap_or_else(|_| Err(late(whose))),
            None => call.await,
        };
        counted.end(&result, Instant::now());
        result
    }
}

impl<C: Clusters> Bind<C> {
    fn unrouted(&self, arrived: Instant, failure: Failure) -> Result<Response, Failure> {
        let result = Err(failure.with(Flags::NON_RETRYABLE));
        self.registry.unknown_route().begin(arrived).end(&result, Instant::now());
        result
    }
}

/// Whose limit a call has.
#[derive(Clone, Copy)]
enum Whose {
    Caller,
    Service,
}

/// The moment that ends the call: the caller's, or the service's total if that is sooner.
fn limit(request: &mut Request, params: &Params) -> Option<(Instant, Whose)> {
    let theirs = request.ctx.deadline.filter(|_| !request.local.deadline_doubted);
    let ours = params.total.map(|total| Deadline::at(request.local.arrived + total));
    let (smallest, whose) = match (theirs, ours) {
        (Some(theirs), Some(ours)) if theirs.min(ours) == ours => (ours, Whose::Service),
        (Some(theirs), _) => (theirs, Whose::Caller),
        (None, Some(ours)) => (ours, Whose::Service),
        (None, None) => return None,
    };
    request.ctx.deadline = Some(smallest);
    Some((smallest.instant(), whose))
}

/// The limit passed. At the caller's, nobody waits any more; but unlike a call that came too late, this one may have been
/// done, so it is not called rejected.
fn late(whose: Whose) -> Failure {
    match whose {
        Whose::Caller => {
            Failure::new(Why::Expired, "no answer before the call's deadline").without(Flags::REJECTED)
        }
        Whose::Service => Failure::new(Why::Timeout, "no answer within the time limit of the service"),
    }
}
