//! What asks DNS servers: those of the system, or others that are set. Nothing is cached here, so that whoever asks again is
//! told what is true now; when to ask again is for the asker, who is told how long the answer holds.

use super::files::{Files, Settings};
use super::{Found, LATEST, Resolve};
use async_trait::async_trait;
use hickory_resolver::TokioResolver;
use hickory_resolver::lookup::Lookup;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// Whose word is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// The servers that are asked, about names as they stand; none: those of the system's configuration, with its search
    /// domains.
    pub servers: Vec<SocketAddr>,
    /// How long one question may take, the second try included.
    pub timeout: Duration,
}

impl Default for Params {
    fn default() -> Self {
        Self { servers: Vec::new(), timeout: Duration::from_secs(4) }
    }
}

/// One SRV record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Srv {
    /// The lowest is used.
    pub priority: u16,
    /// Its share among those of its priority.
    pub weight: u16,
    /// Where the service listens there.
    pub port: u16,
    /// The host, without the dot at its end; empty: there is decidedly no such service.
    pub target: String,
}

/// Asks DNS servers, and looks into the hosts file first.
pub struct Client {
    files: Files,
    timeout: Duration,
}

impl Client {
    /// Nothing is asked before somebody wants to know something. A configuration of the system that cannot be read makes
    /// every answer a failed one that says why.
    pub fn new(params: &Params) -> Self {
        Self::with_hosts_file(params, Path::new("/etc/hosts"))
    }

    pub(super) fn with_hosts_file(params: &Params, hosts: &Path) -> Self {
        Self { files: Files::new(params, hosts), timeout: params.timeout }
    }

    /// The SRV records of a name, and until when they hold; none if there is no such name.
    ///
    /// # Errors
    /// The servers could not be asked, or could not answer.
    pub async fn srv(&self, name: &str) -> Result<(Vec<Srv>, Instant), String> {
        let settings = self.files.now()?;
        let none = || (Vec::new(), Instant::now());
        let Ok(asked) = Name::from_utf8(name) else { return Ok(none()) };
        let candidates = settings.candidates(&asked);
        let found = first(candidates.iter().map(|name| self.ask(&settings.resolver, name, RecordType::SRV)));
        let Some(found) = found.await? else { return Ok(none()) };
        let record = |data: &RData| match data {
            RData::SRV(srv) => Some(Srv {
                priority: srv.priority,
                weight: srv.weight,
                port: srv.port,
                target: srv.target.to_ascii().trim_end_matches('.').to_owned(),
            }),
            _ => None,
        };
        let records = found.answers().iter().filter_map(|answer| record(&answer.data)).collect();
        Ok((records, Instant::from_std(found.valid_until())))
    }

    async fn ips(&self, host: &str) -> Result<Found, String> {
        let settings = self.files.now()?;
        let Ok(asked) = Name::from_utf8(host) else { return Ok(Found::Neg) };
        let written = settings.hosts(&asked);
        if !written.is_empty() {
            return Ok(Found::Ips(written, Instant::now() + LATEST));
        }
        let candidates = settings.candidates(&asked);
        let found = first(candidates.iter().map(|name| self.both(&settings, name))).await?;
        Ok(found.map_or(Found::Neg, |(ips, until)| Found::Ips(ips, until)))
    }

    /// The addresses of both families. One that cannot be asked for does not matter if the other is there: many servers do
    /// not know what to do with a question for AAAA.
    async fn both(
        &self,
        settings: &Settings,
        name: &Name,
    ) -> Result<Option<(Vec<std::net::IpAddr>, Instant)>, String> {
        let kinds = [RecordType::A, RecordType::AAAA];
        let [four, six] = kinds.map(|kind| self.ask(&settings.resolver, name, kind));
        let (four, six) = tokio::join!(four, six);
        let (mut ips, mut until, mut failed) = (Vec::new(), None::<Instant>, None);
        for answer in [four, six] {
            match answer {
                Ok(None) => {}
                Err(why) => failed = failed.or(Some(why)),
                Ok(Some(lookup)) => {
                    let end = Instant::from_std(lookup.valid_until());
                    until = Some(until.map_or(end, |until| until.min(end)));
                    ips.extend(lookup.answers().iter().filter_map(|answer| answer.data.ip_addr()));
                }
            }
        }
        match (until, failed) {
            (Some(until), _) if !ips.is_empty() => Ok(Some((ips, until))),
            (_, Some(why)) => Err(why),
            _ => Ok(None),
        }
    }

    async fn ask(
        &self,
        resolver: &Arc<TokioResolver>,
        name: &Name,
        kind: RecordType,
    ) -> Result<Option<Lookup>, String> {
        let cannot =
            |why: &dyn std::fmt::Display| Err(format!("DNS cannot be asked for {kind} of {name}: {why}"));
        match timeout(self.timeout, resolver.lookup(name.clone(), kind)).await {
            Ok(Ok(found)) => Ok(Some(found)),
            Ok(Err(error)) if error.is_no_records_found() => Ok(None),
            Ok(Err(error)) => cannot(&error),
            Err(_) => cannot(&format_args!("no answer within {:?}", self.timeout)),
        }
    }
}

/// The first name that exists. If there is none, but one of them could not be asked for, then nobody knows.
async fn first<T, F: Future<Output = Result<Option<T>, String>>>(
    asked: impl Iterator<Item = F>,
) -> Result<Option<T>, String> {
    let mut failed = None;
    for question in asked {
        match question.await {
            Ok(Some(found)) => return Ok(Some(found)),
            Ok(None) => {}
            Err(why) => failed = failed.or(Some(why)),
        }
    }
    failed.map_or(Ok(None), Err)
}

#[async_trait]
impl Resolve for Client {
    async fn resolve(&self, host: &str) -> Found {
        self.ips(host).await.unwrap_or_else(Found::Failed)
    }
}
