//! The Consul namer `io.l5d.consul`: names are `<data centre>/<service>`, or with `includeTag`
//! `<data centre>/<tag>/<service>`; `.local` is the data centre of the agent.
//!
//! Each service that is wanted is watched by a blocking query, which the agent answers when something changes. Beside all of
//! them the agent is asked for the leader every two seconds, so that its death is noticed.
//!
//! ```text
//!   ask ──▶ told ──▶ ask from its index ──▶ changed ──▶ told ...
//!                        └── index went back: what Consul knew is lost, begin anew
//! ```
//!
//! An empty answer is believed only if we had a right to see more.

mod answer;
mod params;
mod place;
mod pulse;

#[cfg(test)]
mod tests;

pub use params::{Consistency, PORT, Params, Status};

use crate::names::source::{Meaning, Member, Says, Source, SourceError};
use crate::outside::http::{Credentials, Http, HttpError};
use answer::Instance;
use async_trait::async_trait;
use http::{HeaderMap, StatusCode};
use muxgate_wire::name::Path;
use place::Place;
use pulse::{Pulse, SILENCE};
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, sleep_until};

/// Services that one namer watches at the same time: each holds a connection to the agent. (The agent's own limit is lower,
/// unless it is raised: 200.)
pub const MAX_SERVICES: usize = 2000;

/// The agent answers after this time even if nothing has changed, or up to a sixteenth later.
const WAIT: Duration = Duration::from_secs(30);

/// Time for an answer on top of that.
const WITHIN: Duration = Duration::from_secs(5);

/// Between two questions about one service.
const EARLIEST: Duration = Duration::from_millis(100);

/// An agent as a source. Its subjects are services.
pub struct Consul {
    agent: Http,
    params: Params,
    pulse: Pulse,
    watches: Semaphore,
}

impl Consul {
    /// Must be called on a runtime.
    ///
    /// # Errors
    /// Files of `tls` that cannot be used.
    pub fn new(params: &Params) -> Result<Self, HttpError> {
        let (agent, watches) = (Http::open(&params.agent)?, Semaphore::new(MAX_SERVICES));
        Ok(Self { agent, params: params.clone(), pulse: Pulse::default(), watches })
    }

    fn place(&self, subject: &Path) -> Result<Place, SourceError> {
        let place = Place::read(subject, self.params.include_tag);
        place.ok_or_else(|| SourceError(format!("{subject} is no service of Consul")))
    }

    /// Reports a service for ever.
    async fn watch(&self, subject: &Path, says: &Says) -> Result<Infallible, SourceError> {
        let place = self.place(subject)?;
        let mut index = 0;
        loop {
            let asked = Instant::now();
            let (next, members) = tokio::select! {
                answer = self.ask(&place, index) => answer?,
                error = self.doubted(&place, says) => return Err(error),
            };
            if next == 0 || next < index {
                let what = format!("{}: {subject}", self.agent.base());
                return Err(SourceError(format!("{what}: the index went back from {index} to {next}")));
            }
            if next == index {
                says.alive();
            } else {
                says.all((!members.is_empty()).then_some((Path::empty(), members)));
            }
            index = next;
            sleep_until(asked + EARLIEST).await;
        }
    }

    /// The members of a service, and where they stand; from an index on, when that has changed or [`WAIT`] is over.
    async fn ask(&self, place: &Place, index: u64) -> Result<(u64, Vec<Member>), SourceError> {
        let mut query = place.query();
        query.push_str(match self.params.consistency {
            Consistency::Default => "",
            Consistency::Stale => "stale&",
            Consistency::Consistent => "consistent&",
        });
        let within = match index {
            0 => WITHIN,
            _ => {
                query.push_str(&format!("index={index}&wait={}s", WAIT.as_secs()));
                WAIT + WAIT / 16 + WITHIN
            }
        };
        let path = query.trim_end_matches(['&', '?']);
        let answer = self.agent.json::<Vec<Instance>>(path, within).await;
        let (instances, headers) = answer.map_err(explained)?;
        if instances.is_empty() {
            self.believe_empty(path, &headers)?;
        }
        let members = instances.into_iter().filter_map(|instance| instance.member(&self.params)).collect();
        let index = header(&headers, "x-consul-index").parse().unwrap_or(0);
        Ok((index, members))
    }

    /// Consul does not refuse those that lack a right: it shows them nothing.
    fn believe_empty(&self, path: &str, headers: &HeaderMap) -> Result<(), SourceError> {
        let nobody = self.params.agent.credentials == Credentials::None;
        let why = if header(headers, "x-consul-results-filtered-by-acls") == "true" {
            "the token has no right to see it"
        } else if nobody && header(headers, "x-consul-default-acl-policy") == "deny" {
            "without a `token` nothing can be seen"
        } else if header(headers, "x-consul-knownleader") == "false" {
            "the server that answered has lost its leader"
        } else {
            return Ok(());
        };
        Err(SourceError(format!(
            "{}{path}: empty, but {why}",
            self.agent.base().to_string().trim_end_matches('/')
        )))
    }

    /// Ends when the agent is not there.
    async fn doubted(&self, place: &Place, says: &Says) -> SourceError {
        loop {
            sleep(SILENCE).await;
            match self.pulse.feel(&self.agent, &place.dc, self.params.consistency).await {
                Ok(()) => says.alive(),
                Err(error) => return error,
            }
        }
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn explained(error: HttpError) -> SourceError {
    let full = error.status == Some(StatusCode::TOO_MANY_REQUESTS);
    let mut text = error.text;
    if full {
        text.push_str(
            "; each service takes a connection: raise `limits.http_max_conns_per_client` of the agent",
        );
    }
    SourceError(text)
}

#[async_trait]
impl Source for Consul {
    fn meanings(&self, rest: &Path) -> Result<Vec<Meaning>, String> {
        let subject = Place::read(rest, self.params.include_tag).and_then(|place| place.subject());
        let used = Place::used(self.params.include_tag);
        Ok(subject.map(|subject| Meaning { subject, name: Path::empty(), used }).into_iter().collect())
    }

    async fn follow(&self, subject: &Path, says: &Says) -> SourceError {
        let Ok(_watching) = self.watches.try_acquire() else {
            return SourceError(format!("more than {MAX_SERVICES} services of Consul are watched"));
        };
        match self.watch(subject, says).await {
            Ok(never) => match never {},
            Err(error) => error,
        }
    }

    async fn check(&self, subject: &Path) -> Result<(), SourceError> {
        let place = self.place(subject)?;
        self.pulse.feel(&self.agent, &place.dc, self.params.consistency).await
    }
}
