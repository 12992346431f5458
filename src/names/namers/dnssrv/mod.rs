//! `io.l5d.dnssrv`: `/#/io.l5d.dnssrv/<name>` is a name with SRV records (RFC 2782), such as `_mux._tcp.users.example`; what
//! follows it is residual. No such name, no records, or the one target `.`: negative.
//!
//! Of the priorities the lowest is used of which a target exists. Weights are those of the records; their targets are
//! followed as hosts, each with its own TTL.

mod records;
#[cfg(test)]
mod tests;

use super::dns::{Client, EARLIEST, Found, Resolve, Srv};
use crate::names::source::{Meaning, Member, Says, Source, SourceError};
use async_trait::async_trait;
use futures_util::future::join_all;
use muxgate_wire::name::Path;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Most records of a name that are looked at.
pub const MAX_RECORDS: usize = 1000;

/// Settings of the namer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// A name is asked for again after this time, or earlier if its records hold no longer.
    pub refresh: Duration,
    /// The DNS servers that it asks, also for the hosts that its records name; none: those that the gateway asks.
    pub servers: Vec<SocketAddr>,
}

impl Default for Params {
    fn default() -> Self {
        Self { refresh: Duration::from_secs(5), servers: Vec::new() }
    }
}

/// As in "names below /#/x are ...".
impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SRV records, asked for again after {:?} at the latest", self.refresh)?;
        match self.servers.as_slice() {
            [] => Ok(()),
            servers => {
                write!(f, ", of the DNS servers")?;
                servers.iter().try_for_each(|server| write!(f, " {server}"))
            }
        }
    }
}

/// What is asked for records.
#[async_trait]
pub trait Records: Send + Sync + 'static {
    /// The records of a name, and until when they hold.
    ///
    /// # Errors
    /// Why it could not be asked.
    async fn srv(&self, name: &str) -> Result<(Vec<Srv>, Instant), String>;

    /// Whether a target certainly does not exist.
    async fn is_gone(&self, host: &str) -> bool;
}

#[async_trait]
impl Records for Client {
    async fn srv(&self, name: &str) -> Result<(Vec<Srv>, Instant), String> {
        self.srv(name).await
    }

    async fn is_gone(&self, host: &str) -> bool {
        self.resolve(host).await == Found::Neg
    }
}

/// The source.
pub struct DnsSrv<R = Client> {
    records: Arc<R>,
    refresh: Duration,
}

impl<R: Records> DnsSrv<R> {
    /// Asks `records` every `refresh` at the latest.
    pub fn new(records: Arc<R>, refresh: Duration) -> Self {
        Self { records, refresh }
    }

    async fn ask(&self, subject: &Path) -> Result<(Vec<Srv>, Instant), SourceError> {
        let name = subject.raw_elements().next().map(|raw| String::from_utf8_lossy(&raw).into_owned());
        self.records.srv(&name.unwrap_or_default()).await.map_err(SourceError)
    }

    /// The members of the lowest priority that leads anywhere. If none does, those of the lowest: their hosts are followed.
    async fn members(&self, mut records: Vec<Srv>) -> Vec<Member> {
        records.truncate(MAX_RECORDS);
        let mut groups = records::by_priority(records);
        let first = groups.first().map(|group| records::members(group)).unwrap_or_default();
        if groups.len() < 2 {
            return first;
        }
        for group in groups.drain(..) {
            let gone = join_all(group.iter().map(|record| self.records.is_gone(&record.target))).await;
            if !gone.into_iter().all(|gone| gone) {
                return records::members(&group);
            }
        }
        first
    }
}

#[async_trait]
impl<R: Records> Source for DnsSrv<R> {
    fn meanings(&self, rest: &Path) -> Result<Vec<Meaning>, String> {
        let subject = rest.take(1);
        let one = |subject| Meaning { subject, name: Path::empty(), used: 1 };
        Ok((!subject.is_empty()).then(|| one(subject)).into_iter().collect())
    }

    async fn follow(&self, subject: &Path, says: &Says) -> SourceError {
        loop {
            let asked = Instant::now();
            let (records, until) = match self.ask(subject).await {
                Ok(found) => found,
                Err(error) => return error,
            };
            let members = self.members(records).await;
            says.all((!members.is_empty()).then_some((Path::empty(), members)));
            let latest = asked + self.refresh;
            sleep_until(until.min(latest).max(asked + EARLIEST)).await;
        }
    }

    async fn check(&self, subject: &Path) -> Result<(), SourceError> {
        self.ask(subject).await.map(|_| ())
    }
}
