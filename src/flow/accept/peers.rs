//! Connections by the address they come from.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

/// Counts open connections of each address. An address stands in the table only while it has one, so that the table is never
/// larger than the listener's own limit.
#[derive(Debug)]
pub struct Peers {
    most: usize,
    open: Mutex<HashMap<IpAddr, usize>>,
}

impl Peers {
    /// Up to `most` connections of each address.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, open: Mutex::default() })
    }

    /// Counts one more connection for as long as the guest lives; none if the address has as many as it may.
    pub fn enter(self: &Arc<Self>, address: IpAddr) -> Option<Guest> {
        // A socket that takes both families shows IPv4 callers as mapped addresses.
        let address = address.to_canonical();
        let mut open = self.open.lock();
        let count = open.get(&address).copied().unwrap_or(0);
        if count >= self.most {
            return None;
        }
        open.insert(address, count + 1);
        Some(Guest { peers: Arc::clone(self), address })
    }
}

/// One connection of an address.
#[derive(Debug)]
pub struct Guest {
    peers: Arc<Peers>,
    address: IpAddr,
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut open = self.peers.open.lock();
        if let Some(count) = open.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn a_mapped_address_is_the_address_and_nothing_is_left_of_those_who_went() {
        let peers = Peers::new(2);
        let (plain, other) = (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST));
        let mapped = IpAddr::V6(Ipv4Addr::LOCALHOST.to_ipv6_mapped());
        let (first, second) = (peers.enter(plain), peers.enter(mapped));
        assert!(first.is_some() && second.is_some());
        assert!(peers.enter(plain).is_none() && peers.enter(mapped).is_none());
        let third = peers.enter(other);
        assert!(third.is_some(), "another address has its own count");
        drop(first);
        assert!(peers.enter(mapped).is_some());
        drop((second, third));
        assert!(peers.open.lock().is_empty());
    }
}
