//! Host names: asked again as their TTL demands, at least every few seconds; the last good addresses stay while the
//! servers cannot be asked, and for a while also when such an outage ends with the word that there is no such host. One task a host and port, as long as somebody holds its addresses.

mod client;
mod files;

#[cfg(test)]
mod tests;

pub use client::{Client, Params, Srv};

use crate::names::addr::{Addr, EndpointAddr, publish};
use async_trait::async_trait;
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::Instant;

/// A host is asked for again after this time at the latest, whatever its TTL (Finagle's default).
pub const LATEST: Duration = Duration::from_secs(5);

/// And not before this time, also when its TTL is 0.
pub const EARLIEST: Duration = Duration::from_secs(1);

/// How long it is not believed that a host is gone, if that is the first thing that is heard after an outage.
pub const DOUBT: Duration = Duration::from_secs(60);

/// Host and port pairs that are followed at the same time.
pub const MAX_HOSTS: usize = 10_000;

/// What a resolver says about a host.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// Its addresses, and until when they hold.
    Ips(Vec<IpAddr>, Instant),
    /// There is no such host, or it has no addresses.
    Neg,
    /// The resolver could not be reached or failed.
    Failed(String),
}

/// Something that knows the addresses of hosts.
#[async_trait]
pub trait Resolve: Send + Sync {
    /// Asks for a host.
    async fn resolve(&self, host: &str) -> Found;
}

/// The hosts that somebody follows.
pub struct Hosts {
    resolve: Arc<dyn Resolve>,
    runtime: Handle,
    followed: DashMap<Key, watch::Sender<Addr>>,
}

/// Host, port, and whether the first answer is kept for good.
type Key = (Arc<str>, u16, bool);

impl Hosts {
    /// Follows hosts by asking `resolve`; tasks run on the current runtime.
    ///
    /// # Panics
    /// Outside a runtime.
    pub fn new(resolve: impl Resolve + 'static) -> Arc<Self> {
        Arc::new(Self { resolve: Arc::new(resolve), runtime: Handle::current(), followed: DashMap::new() })
    }

    /// The addresses of a host, at this port. An address literal is answered at once and needs no task. With `once`,
    /// the first good answer is kept for good.
    pub fn follow(self: &Arc<Self>, host: &str, port: u16, once: bool) -> watch::Receiver<Addr> {
        if let Ok(ip) = host.parse::<IpAddr>() {
            return Addr::bound([SocketAddr::new(ip, port).into()]).fixed();
        }
        let key: Key = (host.into(), port, once);
        if self.followed.len() >= MAX_HOSTS && !self.followed.contains_key(&key) {
            return Addr::Failed(format!("more than {MAX_HOSTS} hosts are followed")).fixed();
        }
        match self.followed.entry(key.clone()) {
            Entry::Occupied(entry) => entry.get().subscribe(),
            Entry::Vacant(entry) => {
                let (to, addr) = watch::channel(Addr::Pending);
                entry.insert(to.clone());
                self.runtime.spawn(ask_again_and_again(self.clone(), key, to));
                addr
            }
        }
    }

    /// Where tasks that belong to names run.
    pub(in crate::names) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Forgets a host, if nobody holds its addresses.
    fn forget(&self, key: &Key) -> bool {
        self.followed.remove_if(key, |_, to| to.receiver_count() == 0).is_some()
    }
}

async fn ask_again_and_again(hosts: Arc<Hosts>, key: Key, to: watch::Sender<Addr>) {
    let (host, port, once) = &key;
    let mut outage = Outage::default();
    loop {
        let found = tokio::select! {
            found = hosts.resolve.resolve(host) => found,
            () = to.closed() => {
                if hosts.forget(&key) {
                    return;
                }
                continue;
            }
        };
        let wait = match &found {
            Found::Ips(_, until) => until.saturating_duration_since(Instant::now()).clamp(EARLIEST, LATEST),
            Found::Neg => LATEST,
            Found::Failed(_) => EARLIEST,
        };
        let done = *once && matches!(found, Found::Ips(..));
        if outage.believes(&found, matches!(*to.borrow(), Addr::Bound(_))) {
            publish(&to, addr_of(found, *port));
        }
        let next = Instant::now() + wait;
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(next), if !done => break,
                () = to.closed() => {
                    if hosts.forget(&key) {
                        return;
                    }
                }
            }
        }
    }
}

/// Whether the servers were away: they may come back before what they know does.
#[derive(Default)]
enum Outage {
    #[default]
    None,
    Away,
    /// They are back, and say since then that there is no such host.
    Doubted(Instant),
}

impl Outage {
    /// Whether what was found is passed on; `known`: the host had addresses.
    fn believes(&mut self, found: &Found, known: bool) -> bool {
        *self = match (found, &self) {
            (Found::Ips(..), _) => Self::None,
            (Found::Failed(_), Self::None) => Self::Away,
            (Found::Failed(_), _) => return true,
            (Found::Neg, Self::None) => return true,
            (Found::Neg, Self::Away) if known => Self::Doubted(Instant::now()),
            (Found::Neg, Self::Doubted(since)) if known && since.elapsed() < DOUBT => return false,
            (Found::Neg, _) => Self::None,
        };
        !matches!(self, Self::Doubted(_))
    }
}

fn addr_of(found: Found, port: u16) -> Addr {
    match found {
        Found::Ips(ips, _) => {
            Addr::bound(ips.into_iter().map(|ip| EndpointAddr::from(SocketAddr::new(ip, port))))
        }
        Found::Neg => Addr::Neg,
        Found::Failed(why) => Addr::Failed(why),
    }
}
