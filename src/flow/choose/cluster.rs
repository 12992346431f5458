//! One bound cluster: follows its addresses, balances over them, and tries another endpoint where that is proved safe.

use super::{Balance, Build, Endpoint, Params};
use crate::names::{Addr, EndpointAddr};
use muxgate_rpc::{Class, Failure, Flags, Request, Response, Serve, Status, Why};
use muxgate_wire::name::Path;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// What happens in a cluster, for counters. Nothing is called on the way of a call that works.
pub trait Events: Send + Sync + 'static {
    /// A failed attempt is followed by another at once.
    fn requeue(&self, _failed: &Failure) {}
    /// An attempt that could have been repeated was not: the purse is empty, or the call had its share of it.
    fn budget_exhausted(&self) {}
    /// The set changed; it has `size` endpoints now.
    fn members(&self, _size: usize, _added: usize, _removed: usize) {}
}

/// Nobody counts.
impl Events for () {}

/// Most requeues of one call, however rich the purse: each hits another endpoint, and 25 refusals in a row (the limit
/// that Finagle sets, too) say that the fault is not one endpoint's.
pub const MAX_REQUEUES: u64 = 25;

/// One call may spend this part of the purse's balance on requeues (Finagle: 20 %), and one requeue in any case.
const SHARE_OF_PURSE: u64 = 5;

/// How often one call may be sent to the same endpoint while that is open: a session that died between two calls is
/// replaced at once, and the endpoint itself is well.
const SAME_ENDPOINT: usize = 2;

/// Most endpoints of a cluster; the rest of a longer answer is left out.
pub const MAX_ENDPOINTS: usize = 16_384;

/// What a cluster is made of.
pub struct Parts {
    /// The bound id, without the residual.
    pub id: Path,
    /// Settings.
    pub params: Params,
    /// How long a call waits while nothing is known, at most.
    pub binding: Duration,
    /// What discovery says.
    pub members: watch::Receiver<Addr>,
    /// Makes what answers for an address.
    pub build: Arc<dyn Build>,
    /// Is told what happens.
    pub events: Arc<dyn Events>,
}

/// A cluster in use. Its small task ends with it; endpoints live on until their last call is answered.
pub struct Cluster {
    shared: Arc<Shared>,
    follower: tokio::task::AbortHandle,
}

struct Shared {
    id: Path,
    params: Params,
    binding: Duration,
    balance: Balance,
    known: watch::Sender<Known>,
    build: Arc<dyn Build>,
    events: Arc<dyn Events>,
}

/// Where the present set comes from; read only when it has no endpoint to offer.
#[derive(Clone, Debug, PartialEq)]
enum Known {
    Pending,
    Members,
    Nothing,
    Failed(Arc<str>),
}

impl Cluster {
    /// Starts to follow the members. Must be called inside a runtime.
    pub fn new(parts: Parts) -> Self {
        Self::seeded(parts, rand::random())
    }

    /// The same, with picks that can be repeated.
    pub fn seeded(parts: Parts, seed: u64) -> Self {
        let Parts { id, params, binding, mut members, build, events } = parts;
        let balance = Balance::new(&params.balancer, seed);
        let known = watch::Sender::new(Known::Pending);
        let shared = Arc::new(Shared { id, params, binding, balance, known, build, events });
        shared.follow(&members.borrow_and_update().clone());
        let follower = tokio::spawn({
            let shared = Arc::clone(&shared);
            async move {
                while members.changed().await.is_ok() {
                    let now = members.borrow_and_update().clone();
                    shared.follow(&now);
                }
            }
        });
        Self { shared, follower: follower.abort_handle() }
    }

    /// The bound id.
    pub fn id(&self) -> &Path {
        &self.shared.id
    }

    /// The endpoints, each with its weight over that of the heaviest, for views.
    pub fn endpoints(&self) -> Vec<(Arc<Endpoint>, f64)> {
        self.shared.balance.members()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

impl Serve for Cluster {
    /// # Errors
    /// That of the last attempt. An attempt that may be repeated but is not paid for comes back as non-retryable, so that
    /// callers above do not multiply it; one for which no further endpoint is left keeps its flags. Without any attempt:
    /// no endpoint, name not available (in time), expired.
    async fn call(&self, request: &mut Request) -> Result<Response, Failure> {
        let shared = &*self.shared;
        let endpoint = match shared.balance.pick(&request.local.tried) {
            Some(endpoint) => endpoint,
            None => shared.wait(request).await?,
        };
        shared.attempts(endpoint, request).await
    }

    fn status(&self) -> Status {
        match self.shared.balance.status() {
            // Calls wait.
            Status::Closed if *self.shared.known.borrow() == Known::Pending => Status::Open,
            status => status,
        }
    }
}

impl Shared {
    async fn attempts(
        &self,
        mut endpoint: Arc<Endpoint>,
        request: &mut Request,
    ) -> Result<Response, Failure> {
        let mut left = None;
        loop {
            let failure = match endpoint.call(request).await {
                Ok(response) => {
                    // A retry by the route prefers another.
                    if response.class == Class::Failure {
                        request.local.tried.push(endpoint.addr());
                    }
                    return Ok(response);
                }
                Err(failure) => failure,
            };
            request.local.tried.push(endpoint.addr());
            endpoint = self.another(request, failure, &mut left)?;
            request.local.attempt += 1;
        }
    }

    /// The endpoint of the next attempt, paid for; or the failure to give back.
    fn another(
        &self,
        request: &Request,
        failure: Failure,
        left: &mut Option<u64>,
    ) -> Result<Arc<Endpoint>, Failure> {
        let past = request.ctx.deadline.is_some_and(|deadline| deadline.is_past(Instant::now()));
        let Some(purse) = request.local.purse.as_ref().filter(|_| failure.is_retryable() && !past) else {
            return Err(failure);
        };
        let tried = &request.local.tried;
        let Some(next) = self.balance.pick(tried).filter(|next| may_try(next, tried)) else {
            return Err(failure);
        };
        let left = left.get_or_insert_with(|| (purse.balance() / SHARE_OF_PURSE).clamp(1, MAX_REQUEUES));
        if *left == 0 || !purse.withdraw() {
            self.events.budget_exhausted();
            return Err(failure.with(Flags::NON_RETRYABLE));
        }
        *left -= 1;
        self.events.requeue(&failure);
        Ok(next)
    }

    /// There is nobody to pick: waits while nothing is known, else says why.
    async fn wait(&self, request: &Request) -> Result<Arc<Endpoint>, Failure> {
        let latest = Instant::now() + self.binding;
        let deadline = request.ctx.deadline.map(|deadline| deadline.instant()).filter(|at| *at < latest);
        let mut updates = self.known.subscribe();
        let known =
            timeout_at(deadline.unwrap_or(latest), updates.wait_for(|known| *known != Known::Pending));
        let id = self.id.as_str();
        let known = match known.await {
            Ok(Ok(known)) => known.clone(),
            Ok(Err(_)) | Err(_) if deadline.is_some() => {
                return Err(Failure::new(
                    Why::Expired,
                    format!("{id}: the deadline passed before its addresses were known"),
                ));
            }
            Ok(Err(_)) | Err(_) => {
                let text = format!("{id}: its addresses were not known within {:?}", self.binding);
                return Err(Failure::new(Why::NameUnavailable, text));
            }
        };
        match known {
            Known::Failed(why) => Err(Failure::new(
                Why::NameUnavailable,
                format!("{id}: its addresses cannot be looked up: {why}"),
            )),
            Known::Nothing => {
                Err(Failure::new(Why::NoEndpoint, format!("{id}: there is no such host or set of endpoints")))
            }
            Known::Pending | Known::Members => self.balance.pick(&request.local.tried).ok_or_else(|| {
                let text = match self.balance.members().len() {
                    0 => format!("{id}: the cluster has no endpoints"),
                    count => format!("{id}: none of the {count} endpoints takes calls"),
                };
                Failure::new(Why::NoEndpoint, text)
            }),
        }
    }

    /// Takes over what discovery says.
    fn follow(&self, members: &Addr) {
        let known = match members {
            Addr::Pending if !matches!(*self.known.borrow(), Known::Failed(_)) => return,
            // Asked again: calls wait for the answer.
            Addr::Pending => Known::Pending,
            Addr::Bound(list) => {
                self.replace(list);
                Known::Members
            }
            Addr::Neg => {
                self.replace(&[]);
                Known::Nothing
            }
            Addr::Failed(_) if !matches!(*self.known.borrow(), Known::Pending | Known::Failed(_)) => {
                return;
            }
            Addr::Failed(why) => Known::Failed(why.as_str().into()),
        };
        self.known.send_replace(known);
    }

    /// A new set. Addresses that stay keep their service, load and record; of those named twice the weights add up.
    fn replace(&self, list: &[EndpointAddr]) {
        if list.len() > MAX_ENDPOINTS {
            tracing::warn!(
                cluster = self.id.as_str(),
                given = list.len(),
                "more than {MAX_ENDPOINTS} endpoints"
            );
        }
        let mut old: HashMap<_, _> =
            self.balance.members().into_iter().map(|(endpoint, _)| (endpoint.addr(), endpoint)).collect();
        let before = old.len();
        let mut places = HashMap::new();
        let mut next: Vec<(Arc<Endpoint>, f64)> = Vec::with_capacity(list.len().min(MAX_ENDPOINTS));
        for &EndpointAddr { addr, weight } in list.iter().take(MAX_ENDPOINTS) {
            if let Some(twin) = places.get(&addr).and_then(|place: &usize| next.get_mut(*place)) {
                twin.1 += weight;
                continue;
            }
            let endpoint = old.remove(&addr).unwrap_or_else(|| self.endpoint(addr));
            places.insert(addr, next.len());
            next.push((endpoint, weight));
        }
        let (size, removed) = (next.len(), old.len());
        self.balance.replace(next);
        self.events.members(size, size + removed - before, removed);
    }

    fn endpoint(&self, addr: SocketAddr) -> Arc<Endpoint> {
        Arc::new(Endpoint::new(addr, self.build.build(&self.id, addr), &self.params.balancer))
    }
}

/// Whether an endpoint may be tried (again) in this call.
fn may_try(endpoint: &Endpoint, tried: &[SocketAddr]) -> bool {
    match tried.iter().filter(|addr| **addr == endpoint.addr()).count() {
        0 => true,
        times => times < SAME_ENDPOINT && endpoint.status() == Status::Open,
    }
}
