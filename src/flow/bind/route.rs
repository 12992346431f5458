//! One name under one dtab: its live binding, and what it led to last.

use super::Params;
use super::targets::{Clusters, Target, Targets};
use crate::names::{BindState, Binding, Bound};
use crate::observe::RouteStats;
use arc_swap::ArcSwap;
use muxgate_rpc::{Failure, Purse, Why};
use muxgate_wire::name::Path;
use std::sync::{Arc, OnceLock};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// Bytes of a call's own table that are shown: callers write it.
const MAX_DTAB_TEXT: usize = 1024;

/// What all routes of one name share.
pub struct Service {
    pub(super) stats: Arc<RouteStats>,
    pub(super) purse: Arc<Purse>,
}

impl Service {
    pub(super) fn new(params: &Params, stats: Arc<RouteStats>) -> Self {
        let budget = &params.budget;
        let purse = Purse::new(budget.percent, budget.min_per_sec, budget.ttl);
        let purse = Arc::new(purse.told_to(Arc::clone(&stats) as _));
        stats.watch_purse(&purse);
        Self { stats, purse }
    }
}

/// A route. It follows its name for as long as it lives.
pub struct Route<S> {
    name: Path,
    params: Params,
    binding: Binding,
    service: OnceLock<Arc<Service>>,
    seen: ArcSwap<Seen<S>>,
}

/// The state of the binding that the targets were made of.
struct Seen<S> {
    states: watch::Receiver<BindState>,
    way: Way<S>,
}

enum Way<S> {
    Pending,
    To(Targets<S>),
    /// Nobody is there: negative, fail or empty.
    Nowhere,
    Failed(String),
}

impl<S: Clone> Route<S> {
    pub(super) fn new(name: Path, binding: Binding, params: Params) -> Self {
        let seen = Seen { states: binding.watch(), way: Way::Pending };
        Self { name, params, binding, service: OnceLock::new(), seen: ArcSwap::from_pointee(seen) }
    }

    pub(super) fn name(&self) -> &Path {
        &self.name
    }

    pub(super) fn params(&self) -> &Params {
        &self.params
    }

    pub(super) fn service_or_init(&self, make: impl FnOnce() -> Arc<Service>) -> Arc<Service> {
        Arc::clone(self.service.get_or_init(make))
    }

    /// What the binding says now; worked out again only when it has changed.
    fn seen(&self, clusters: &impl Clusters<Cluster = S>) -> arc_swap::Guard<Arc<Seen<S>>> {
        let seen = self.seen.load();
        if !matches!(seen.way, Way::Pending) && !seen.states.has_changed().unwrap_or(false) {
            return seen;
        }
        let mut states = seen.states.clone();
        let way = match &*states.borrow_and_update() {
            BindState::Pending => Way::Pending,
            BindState::Bound(tree) => Targets::of(tree, clusters).map_or(Way::Nowhere, Way::To),
            BindState::Failed(why) => Way::Failed(why.clone()),
        };
        self.seen.store(Arc::new(Seen { states, way }));
        self.seen.load()
    }

    pub(super) fn leads_somewhere(&self, clusters: &impl Clusters<Cluster = S>) -> bool {
        matches!(self.seen(clusters).way, Way::To(_))
    }

    /// Where a call goes; waits while the name is not known, as long as the call and the binding limit allow.
    pub(super) async fn target(
        &self,
        clusters: &impl Clusters<Cluster = S>,
        arrived: Instant,
        deadline: Option<Instant>,
    ) -> Result<Target<S>, Failure> {
        if let Some(known) = self.known(clusters) {
            return known;
        }
        let limit = arrived + self.params.binding;
        let until = deadline.map_or(limit, |deadline| deadline.min(limit));
        let mut states = self.binding.watch();
        let waiting = states.wait_for(|state| !matches!(state, BindState::Pending));
        let answered = timeout_at(until, waiting).await.is_ok();
        self.known(clusters).filter(|_| answered).unwrap_or_else(|| {
            Err(Failure::new(
                Why::NameUnavailable,
                format!("the name {} is not known in time: {}", self.name, self.binding.explain()),
            ))
        })
    }

    fn known(&self, clusters: &impl Clusters<Cluster = S>) -> Option<Result<Target<S>, Failure>> {
        let seen = self.seen(clusters);
        match &seen.way {
            Way::Pending => None,
            Way::To(targets) => Some(
                targets
                    .pick()
                    .ok_or_else(|| self.nowhere(format!("{}: the branch taken has no members", self.name))),
            ),
            Way::Nowhere => Some(Err(self.nowhere(self.binding.explain()))),
            Way::Failed(why) => Some(Err(Failure::new(
                Why::NameUnavailable,
                format!("the name {} cannot be looked up: {why}", self.name),
            ))),
        }
    }

    fn nowhere(&self, why: String) -> Failure {
        Failure::new(Why::NoSuchName, why)
    }

    /// Why an old answer is served, if it is.
    fn kept(&self) -> Option<String> {
        let BindState::Bound(tree) = self.binding.state() else { return None };
        let old = |bound: &&Bound| bound.source.as_ref().and_then(|source| source.standing().explain());
        tree.leaves().iter().find_map(old)
    }

    /// The route for people.
    pub(super) fn explain(&self) -> serde_json::Value {
        let state = match &self.seen.load().way {
            Way::Pending => "pending",
            Way::To(_) => "bound",
            Way::Nowhere => "nowhere",
            Way::Failed(_) => "failed",
        };
        let mut row = serde_json::json!({
            "name": self.name.as_str(), "state": state, "steps": self.binding.explain(),
        });
        if let Some(kept) = self.kept() {
            row["kept"] = kept.into();
        }
        let local = self.binding.local();
        if !local.entries().is_empty() {
            let text = local.to_string();
            let end = (0..=MAX_DTAB_TEXT.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
            row["dtab"] = text.get(..end.unwrap_or(0)).unwrap_or_default().into();
        }
        row
    }
}
