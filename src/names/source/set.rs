//! The addresses of one replica set: host names among its members are followed by DNS.

use super::Member;
use crate::names::addr::{Addr, EndpointAddr, publish};
use crate::names::namers::dns::Hosts;
use futures_util::future::{pending, select_all};
use parking_lot::Mutex;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// The addresses of a set; who holds them goes on holding them whatever happens to the source.
pub(in crate::names) struct Set {
    to: watch::Sender<Addr>,
    task: Mutex<Option<AbortHandle>>,
}

impl Set {
    pub(in crate::names) fn new() -> Self {
        Self { to: watch::channel(Addr::Pending).0, task: Mutex::new(None) }
    }

    pub(in crate::names) fn addr(&self) -> watch::Receiver<Addr> {
        self.to.subscribe()
    }

    /// Whether somebody holds the addresses.
    pub(in crate::names) fn is_held(&self) -> bool {
        self.to.receiver_count() > 0
    }

    /// These are the members now.
    pub(in crate::names) fn update(&self, members: &[Member], hosts: &Arc<Hosts>) {
        self.stop();
        let literal = |member: &Member| member.host.parse::<IpAddr>().ok().map(|ip| endpoint(ip, member));
        match members.iter().map(literal).collect::<Option<Vec<_>>>() {
            Some(endpoints) => {
                publish(&self.to, Addr::bound(endpoints));
            }
            None => {
                let follow = |member: &Member| hosts.follow(&member.host, member.port, false);
                let parts = members.iter().map(|member| (follow(member), member.weight));
                let task = hosts.runtime().spawn(merge(parts.collect(), self.to.clone()));
                *self.task.lock() = Some(task.abort_handle());
            }
        }
    }

    /// The members cannot be known: the last good ones go on.
    pub(in crate::names) fn fail(&self, why: String) {
        publish(&self.to, Addr::Failed(why));
    }

    /// There is no such set any more.
    pub(in crate::names) fn gone(&self) {
        self.stop();
        publish(&self.to, Addr::Neg);
    }

    fn stop(&self) {
        if let Some(task) = self.task.lock().take() {
            task.abort();
        }
    }
}

impl Drop for Set {
    fn drop(&mut self) {
        self.stop();
    }
}

fn endpoint(ip: IpAddr, member: &Member) -> EndpointAddr {
    EndpointAddr { addr: SocketAddr::new(ip, member.port), weight: member.weight }
}

/// Publishes the addresses of all hosts together, until nobody holds them or the members change.
async fn merge(mut parts: Vec<(watch::Receiver<Addr>, f64)>, to: watch::Sender<Addr>) {
    loop {
        publish(&to, merged(&mut parts));
        let changes = parts.iter_mut().map(|(part, _)| {
            Box::pin(async {
                if part.changed().await.is_err() {
                    pending::<()>().await;
                }
            })
        });
        select_all(changes).await;
    }
}

/// Hosts that do not exist add nothing; while none is known, the first error or pending stands for all.
fn merged(parts: &mut [(watch::Receiver<Addr>, f64)]) -> Addr {
    let (mut all, mut known, mut unknown) = (Vec::new(), false, None);
    for (part, weight) in parts {
        match &*part.borrow_and_update() {
            Addr::Bound(endpoints) => {
                known = true;
                all.extend(endpoints.iter().map(|e| EndpointAddr { addr: e.addr, weight: *weight }));
            }
            Addr::Neg => {}
            other => unknown = unknown.or(Some(other.clone())),
        }
    }
    match unknown {
        Some(other) if !known => other,
        _ => Addr::bound(all),
    }
}
