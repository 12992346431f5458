//! The replica set of one file: its addresses, host names in it followed by DNS.

use super::file::Line;
use crate::names::addr::{Addr, EndpointAddr, publish};
use crate::names::namers::dns::Hosts;
use futures_util::future::{pending, select_all};
use parking_lot::Mutex;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// The addresses that a file stands for; who holds them goes on holding them whatever happens to the file.
pub(super) struct Set {
    to: watch::Sender<Addr>,
    task: Mutex<Option<AbortHandle>>,
}

impl Set {
    pub(super) fn new() -> Self {
        Self { to: watch::channel(Addr::Pending).0, task: Mutex::new(None) }
    }

    pub(super) fn addr(&self) -> watch::Receiver<Addr> {
        self.to.subscribe()
    }

    /// Whether somebody holds the addresses.
    pub(super) fn is_held(&self) -> bool {
        self.to.receiver_count() > 0
    }

    /// The file has this content now.
    pub(super) fn update(&self, lines: &[Line], hosts: &Arc<Hosts>) {
        self.stop();
        let literal = |line: &Line| line.host.parse::<IpAddr>().ok().map(|ip| endpoint(ip, line));
        match lines.iter().map(literal).collect::<Option<Vec<_>>>() {
            Some(endpoints) => {
                publish(&self.to, Addr::bound(endpoints));
            }
            None => {
                let parts =
                    lines.iter().map(|line| (hosts.follow(&line.host, line.port, false), line.weight));
                let task = hosts.runtime().spawn(merge(parts.collect(), self.to.clone()));
                *self.task.lock() = Some(task.abort_handle());
            }
        }
    }

    /// The file cannot be read or is wrong: the last good content goes on.
    pub(super) fn fail(&self, why: String) {
        publish(&self.to, Addr::Failed(why));
    }

    /// The file is gone.
    pub(super) fn gone(&self) {
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

fn endpoint(ip: IpAddr, line: &Line) -> EndpointAddr {
    EndpointAddr { addr: SocketAddr::new(ip, line.port), weight: line.weight }
}

/// Publishes the addresses of all hosts together, until nobody holds them or the content changes.
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
