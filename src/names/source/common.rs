//! What all subjects of one namer share.

use super::Member;
use super::params::{MAX_CHECKS, MAX_LINGERING, MAX_MEMBERS, Params};
use crate::names::namers::configured::Env;
use crate::names::namers::dns::Hosts;
use crate::observe::stats::DiscoveryStats;
use crate::outside::kept::Kept;
use bytes::Bytes;
use muxgate_wire::name::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;
use tokio::sync::Semaphore;

pub(super) struct Common {
    pub prefix: Path,
    pub params: Params,
    pub hosts: Arc<Hosts>,
    pub stats: Arc<DiscoveryStats>,
    pub checks: Semaphore,
    kept: Arc<Kept>,
    shelf: String,
    lingering: AtomicUsize,
}

impl Common {
    pub fn new(prefix: Path, env: &Env) -> Self {
        let shelf = format!("{prefix} {}", env.asks);
        Self {
            params: env.belief.clone(),
            hosts: Arc::clone(&env.hosts),
            stats: env.registry.discovery(prefix.as_str()),
            checks: Semaphore::new(MAX_CHECKS),
            kept: Arc::clone(&env.kept),
            lingering: AtomicUsize::new(0),
            shelf,
            prefix,
        }
    }

    /// Keeps the members of a name; without any it is forgotten.
    pub fn keep(&self, subject: &Path, name: &Path, members: &[Member]) {
        let value = (!members.is_empty()).then(|| encode(members));
        self.kept.put(&self.shelf, &key(subject, name), value);
    }

    /// What was kept of a name, and when. What makes no sense was never kept.
    pub fn kept(&self, subject: &Path, name: &Path) -> Option<(Vec<Member>, SystemTime)> {
        let (value, when) = self.kept.get(&self.shelf, &key(subject, name))?;
        Some((decode(&value).filter(|members| !members.is_empty())?, when))
    }

    /// A place among the subjects that nobody holds; none, if there are too many of them.
    pub fn linger(&self) -> Option<Lingering<'_>> {
        let place = Lingering(&self.lingering);
        (self.lingering.fetch_add(1, Ordering::Relaxed) < MAX_LINGERING).then_some(place)
    }
}

/// Given back when it is dropped.
pub(super) struct Lingering<'a>(&'a AtomicUsize);

impl Drop for Lingering<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// No path contains a blank.
fn key(subject: &Path, name: &Path) -> Vec<u8> {
    format!("{subject} {name}").into_bytes()
}

/// Host, port and weight of each.
fn encode(members: &[Member]) -> Bytes {
    let rows: Vec<_> = members.iter().map(|m| (&*m.host, m.port, m.weight)).collect();
    serde_json::to_vec(&rows).unwrap_or_default().into()
}

fn decode(value: &[u8]) -> Option<Vec<Member>> {
    let rows: Vec<(String, u16, f64)> = serde_json::from_slice(value).ok()?;
    let member = |(host, port, weight): (String, u16, f64)| Member { host: host.into(), port, weight };
    Some(rows.into_iter().take(MAX_MEMBERS).map(member).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_kept_as_they_are() {
        let members = [Member::new("127.0.0.1", 80), Member { weight: 0.1, ..Member::new("a.example", 1) }];
        assert_eq!(decode(&encode(&members)).as_deref(), Some(&members[..]));
        assert_eq!(decode(b"[[\"a\",70000,1]]"), None);
        assert_eq!(decode(b"nonsense"), None);
    }
}
