//! Whether the agent is there, asked once for all services that are watched: a blocking query alone is silent for half a
//! minute, and would be so for as long if the agent were dead.

use super::params::Consistency;
use crate::names::source::SourceError;
use crate::outside::http::Http;
use http::StatusCode;
use parking_lot::Mutex as PlainMutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// After this silence the agent is asked.
pub(super) const SILENCE: Duration = Duration::from_secs(2);

/// An answer of this age holds for others, too.
const FRESH: Duration = Duration::from_millis(1500);

/// Time for the answer.
const WITHIN: Duration = Duration::from_secs(2);

/// Data centres whose pulse is felt.
const MAX_DATACENTERS: usize = 1000;

type Felt = Arc<Mutex<Option<(Instant, Result<(), SourceError>)>>>;

/// What was felt last, by data centre.
#[derive(Default)]
pub(super) struct Pulse(PlainMutex<HashMap<Option<String>, Felt>>);

impl Pulse {
    /// Asks, unless somebody just has. Those that come meanwhile wait for the same answer.
    pub async fn feel(
        &self,
        agent: &Http,
        dc: &Option<String>,
        consistency: Consistency,
    ) -> Result<(), SourceError> {
        let felt = {
            let mut all = self.0.lock();
            if all.len() >= MAX_DATACENTERS && !all.contains_key(dc) {
                return Err(SourceError(format!(
                    "more than {MAX_DATACENTERS} data centres of Consul are in use"
                )));
            }
            Arc::clone(all.entry(dc.clone()).or_default())
        };
        let mut felt = felt.lock().await;
        if let Some((_, answer)) = felt.as_ref().filter(|(when, _)| when.elapsed() < FRESH) {
            return answer.clone();
        }
        let answer = ask(agent, dc, consistency).await;
        *felt = Some((Instant::now(), answer.clone()));
        answer
    }
}

/// The leader's address, which costs the agent little and needs no right.
async fn ask(agent: &Http, dc: &Option<String>, consistency: Consistency) -> Result<(), SourceError> {
    let path = match dc {
        None => "/v1/status/leader".to_owned(),
        Some(dc) => format!("/v1/status/leader?dc={dc}"),
    };
    match agent.json::<String>(&path, WITHIN).await {
        Ok((leader, _)) if leader.is_empty() && consistency != Consistency::Stale => {
            Err(SourceError(format!("{}: Consul has no leader", agent.base())))
        }
        Ok(_) => Ok(()),
        // It has no connection left for us, and yet it is there.
        Err(error) if error.status == Some(StatusCode::TOO_MANY_REQUESTS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
