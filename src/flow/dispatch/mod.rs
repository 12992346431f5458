//! Endpoint to session: one attempt, with its span, accrual, judgement and deadline.
//!
//! In comes a call for one address; out goes what its service answered, judged once.

pub mod accrual;
mod deadline;
mod events;
mod observed;
mod params;
mod session;
mod translate;

pub use params::{Accrual, Params, Pool, Tls, Upstream};

use crate::observe::{Registry, Tracer};
use accrual::AccrualLayer;
use deadline::AttemptDeadline;
use events::Counted;
use muxgate_rpc::{Serve, Svc};
use muxgate_wire::name::Path;
use observed::Observed;
use session::Session;
use std::net::SocketAddr;
use std::sync::Arc;
use tower::Layer;
use translate::{Translated, Translation};

/// Settings of a cluster's endpoints by its bound id.
pub type ParamsOf = Arc<dyn Fn(&Path) -> Params + Send + Sync>;

/// Builds what answers for an endpoint.
pub struct Dispatch {
    params: ParamsOf,
    tracer: Tracer,
    registry: Arc<Registry>,
}

impl Dispatch {
    /// Endpoints with these settings, seen by these instruments.
    pub fn new(params: ParamsOf, tracer: Tracer, registry: Arc<Registry>) -> Self {
        Self { params, tracer, registry }
    }

    /// The layers of one endpoint, outermost first: span and numbers, accrual, attempt deadline, translation if there is
    /// any, session.
    pub fn build(&self, cluster: &Path, address: SocketAddr) -> Svc {
        let params = (self.params)(cluster);
        let stats = self.registry.endpoint(cluster.as_str(), address);
        let events = Arc::new(Counted::new(Arc::clone(&stats), cluster.clone(), address));
        let session = Session::new(address, &params, Arc::clone(&events) as _);
        let observe = Observe { tracer: self.tracer.clone(), stats, cluster: cluster.clone(), address };
        match Translation::of(&params) {
            Some(translation) => bounded(params, Translated::new(translation, session), observe, events),
            None => bounded(params, session, observe, events),
        }
    }
}

fn bounded(params: Params, session: impl Serve, observe: Observe, events: Arc<Counted>) -> Svc {
    let bounded = AttemptDeadline::new(params.attempt, session);
    match params.accrual {
        Some(accrual) => observe.over(AccrualLayer::new(accrual, events).layer(bounded)),
        None => observe.over(bounded),
    }
}

struct Observe {
    tracer: Tracer,
    stats: Arc<crate::observe::EndpointStats>,
    cluster: Path,
    address: SocketAddr,
}

impl Observe {
    fn over(self, inner: impl Serve) -> Svc {
        Svc::new(Observed::new(self.tracer, self.stats, self.cluster, self.address, inner))
    }
}
