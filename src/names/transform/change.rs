//! What a transformer does to addresses.

use crate::names::addr::{Addr, EndpointAddr};
use crate::names::namer::{Answer, Lookup, Named};
use muxgate_wire::name::{NameTree, Path};
use std::fmt;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use tokio::sync::watch;

/// Bits of a subnet, if nothing else is said: that of a node in many clusters of Kubernetes, and linkerd's.
pub const DEFAULT_BITS: u8 = 24;

/// Addresses that begin alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet {
    /// One of them.
    pub ip: IpAddr,
    /// How many bits are alike.
    pub bits: u8,
}

impl Subnet {
    /// Whether an address is in it.
    pub fn has(&self, ip: IpAddr) -> bool {
        match (self.ip, ip) {
            (IpAddr::V4(own), IpAddr::V4(ip)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits.min(32))).unwrap_or(0);
                (own.to_bits() ^ ip.to_bits()) & mask == 0
            }
            (IpAddr::V6(own), IpAddr::V6(ip)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.bits.min(128))).unwrap_or(0);
                (own.to_bits() ^ ip.to_bits()) & mask == 0
            }
            _ => false,
        }
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ip, self.bits)
    }
}

/// A transformer at work.
pub(super) enum Change {
    /// Changes addresses.
    Addresses { id: Path, map: Map },
    /// Puts another name in the place of each set.
    Replace(Path),
    /// Says always the same.
    Const(Path),
}

pub(super) enum Map {
    Port(u16),
    Local,
    Host(IpAddr),
    Subnet(Subnet),
    Gateways { gateways: Box<Gateways>, bits: u8 },
}

/// The gateways of a fleet, live.
pub(super) struct Gateways(Lookup);

impl Change {
    pub(super) fn port(port: u16) -> Self {
        Self::Addresses { id: id(&["io.l5d.port", &port.to_string()]), map: Map::Port(port) }
    }

    pub(super) fn localhost() -> Self {
        Self::Addresses { id: id(&["io.l5d.localhost"]), map: Map::Local }
    }

    pub(super) fn host(host: IpAddr) -> Self {
        Self::Addresses { id: id(&["io.l5d.specificHost", &host.to_string()]), map: Map::Host(host) }
    }

    pub(super) fn local_node(subnet: Subnet) -> Self {
        Self::Addresses {
            id: id(&["io.l5d.k8s.localnode", &subnet.ip.to_string()]),
            map: Map::Subnet(subnet),
        }
    }

    pub(super) fn gateways(lookup: Lookup, name: &Path, bits: u8) -> Self {
        let gateways = Box::new(Gateways(lookup));
        Self::Addresses {
            id: id(&["io.l5d.k8s.daemonset"]).concat(name),
            map: Map::Gateways { gateways, bits },
        }
    }

    /// What else the change depends on, to be waited for: taken before it is applied, so that nothing in between is lost.
    pub(super) fn watches(&self) -> Vec<Watched> {
        match self {
            Self::Addresses { map: Map::Gateways { gateways, .. }, .. } => gateways.watches(),
            _ => Vec::new(),
        }
    }
}

/// The prefix of changed ids.
fn id(elements: &[&str]) -> Path {
    let all = std::iter::once("%").chain(elements.iter().copied()).map(str::as_bytes);
    Path::from_elements(all).unwrap_or_default()
}

/// Something whose change matters.
pub(super) enum Watched {
    Answer(watch::Receiver<Answer>),
    Addr(watch::Receiver<Addr>),
}

impl Gateways {
    fn answer(&self) -> Answer {
        match &self.0 {
            Lookup::Fixed(answer) => answer.clone(),
            Lookup::Live(answer) => answer.borrow().clone(),
        }
    }

    fn watches(&self) -> Vec<Watched> {
        let answer = match &self.0 {
            Lookup::Fixed(_) => None,
            Lookup::Live(answer) => {
                let mut answer = answer.clone();
                answer.mark_unchanged();
                Some(Watched::Answer(answer))
            }
        };
        let addr = match self.answer() {
            Answer::Ok(NameTree::Leaf(Named::Bound(mut bound))) => {
                bound.addr.mark_unchanged();
                Some(Watched::Addr(bound.addr))
            }
            _ => None,
        };
        answer.into_iter().chain(addr).collect()
    }

    fn addresses(&self) -> Addr {
        match self.answer() {
            Answer::Pending => Addr::Pending,
            Answer::Failed(why) => Addr::Failed(why),
            Answer::Ok(NameTree::Leaf(Named::Bound(bound))) => bound.addr.borrow().clone(),
            Answer::Ok(_) => Addr::Neg,
        }
    }
}

impl Map {
    /// The set as it is behind the transformer; without any address it is negative.
    pub(super) fn apply(&self, addr: &Addr) -> Addr {
        let Addr::Bound(all) = addr else { return addr.clone() };
        let changed = match self {
            Self::Port(port) => all.iter().map(|endpoint| with_port(endpoint, *port)).collect(),
            Self::Local => kept(all, is_here),
            Self::Host(host) => kept(all, |ip| ip == *host),
            Self::Subnet(subnet) => kept(all, |ip| subnet.has(ip)),
            Self::Gateways { gateways, bits } => match gateways.addresses() {
                Addr::Bound(gateways) => by_gateways(all, &gateways, *bits),
                Addr::Neg => Vec::new(),
                unknown => return unknown,
            },
        };
        if changed.is_empty() { Addr::Neg } else { Addr::bound(changed) }
    }
}

fn with_port(endpoint: &EndpointAddr, port: u16) -> EndpointAddr {
    EndpointAddr { addr: SocketAddr::new(endpoint.addr.ip(), port), ..*endpoint }
}

fn kept(all: &[EndpointAddr], keeps: impl Fn(IpAddr) -> bool) -> Vec<EndpointAddr> {
    all.iter().filter(|endpoint| keeps(endpoint.addr.ip())).copied().collect()
}

/// Each address by the gateways in its subnet; their weight is the sum of those that they stand for.
fn by_gateways(all: &[EndpointAddr], gateways: &[EndpointAddr], bits: u8) -> Vec<EndpointAddr> {
    let weight = |gateway: &EndpointAddr| {
        let subnet = Subnet { ip: gateway.addr.ip(), bits };
        let theirs = all.iter().filter(|endpoint| subnet.has(endpoint.addr.ip()));
        theirs.map(|endpoint| endpoint.weight).fold(None, |sum, weight| Some(sum.unwrap_or(0.0) + weight))
    };
    gateways
        .iter()
        .filter_map(|gateway| Some(EndpointAddr { weight: weight(gateway)?, ..*gateway }))
        .collect()
}

/// Whether an address is one of this host's: only those can be bound.
fn is_here(ip: IpAddr) -> bool {
    ip.is_loopback() || UdpSocket::bind((ip, 0)).is_ok()
}
