//! Addresses of a replica set, which change over time, and the bound name that holds them.

use super::standing::Stands;
use muxgate_wire::name::Path;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::watch;

/// One endpoint of a replica set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EndpointAddr {
    /// Where it listens.
    pub addr: SocketAddr,
    /// Its weight among the endpoints of its set, 1 if none was given. Independent of the weights of a tree.
    pub weight: f64,
}

impl From<SocketAddr> for EndpointAddr {
    fn from(addr: SocketAddr) -> Self {
        Self { addr, weight: 1.0 }
    }
}

/// What is known of the members of a replica set.
#[derive(Clone, Debug, PartialEq)]
pub enum Addr {
    /// Nothing yet.
    Pending,
    /// The members, perhaps none.
    Bound(Arc<[EndpointAddr]>),
    /// There is no such set.
    Neg,
    /// It could not be found out, and never was before.
    Failed(String),
}

impl Addr {
    /// A set with these members, in order of address, each once.
    pub fn bound(endpoints: impl IntoIterator<Item = EndpointAddr>) -> Self {
        let mut endpoints: Vec<_> = endpoints.into_iter().collect();
        endpoints.sort_by(|a, b| a.addr.cmp(&b.addr).then(a.weight.total_cmp(&b.weight)));
        endpoints.dedup();
        Self::Bound(endpoints.into())
    }

    /// Whether there is somebody to call.
    pub fn has_members(&self) -> bool {
        matches!(self, Self::Bound(endpoints) if !endpoints.is_empty())
    }

    /// Addresses that never change: the sender is gone, so waiting for a change ends at once.
    pub fn fixed(self) -> watch::Receiver<Addr> {
        watch::channel(self).1
    }
}

/// Passes on what is news. Pending and failed do not replace an answer: the last good one stays (a set that became
/// negative or lost its members is an answer). Returns whether something was passed on.
pub fn publish(to: &watch::Sender<Addr>, next: Addr) -> bool {
    to.send_if_modified(|now| {
        let known = matches!(now, Addr::Bound(_) | Addr::Neg);
        if (known && matches!(next, Addr::Pending | Addr::Failed(_))) || *now == next {
            return false;
        }
        *now = next;
        true
    })
}

/// What a namer returns in the end. Equality is by id and residual; the addresses belong to the id.
#[derive(Clone, Debug)]
pub struct Bound {
    /// Names the replica set; looking it up again gives the same set. Clients, statistics and caches go by it.
    pub id: Path,
    /// What the namer did not use. A server that speaks Mux gets it as destination.
    pub residual: Path,
    /// The members.
    pub addr: watch::Receiver<Addr>,
    /// How it stands with the source that is watched for it; nothing if it is not of that kind.
    pub source: Option<Arc<dyn Stands>>,
}

impl Bound {
    /// A bound name that no watched source stands behind.
    pub fn new(id: Path, residual: Path, addr: watch::Receiver<Addr>) -> Self {
        Self { id, residual, addr, source: None }
    }

    /// Whether the other is the same name and takes its addresses from the same place.
    pub(super) fn same(&self, other: &Bound) -> bool {
        self == other && (self.addr.same_channel(&other.addr) || self.same_forever(other))
    }

    /// Whether the addresses of both are fixed, and equal.
    fn same_forever(&self, other: &Bound) -> bool {
        let fixed = |addr: &watch::Receiver<Addr>| addr.has_changed().is_err();
        fixed(&self.addr) && fixed(&other.addr) && *self.addr.borrow() == *other.addr.borrow()
    }
}

impl PartialEq for Bound {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && self.residual == other.residual
    }
}

impl Eq for Bound {}

impl std::hash::Hash for Bound {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.id.hash(state);
        self.residual.hash(state);
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.residual.is_empty() {
            true => self.id.fmt(f),
            false => write!(f, "{} + {}", self.id, self.residual),
        }
    }
}
