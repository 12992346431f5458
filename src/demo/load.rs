//! A steady load. Calls leave on time whether or not earlier ones came back, and latency counts from the time a call
//! should have left, so a slow gateway looks slow and not idle.

use super::callers::{Multiplexed, Plain};
use super::calls::{Call, Outcome};
use super::rates::{Rates, Said, Tally};
use super::services::Service;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::lookup_host;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// Calls under way at once; more are not sent, and counted as failed.
const MAX_UNDER_WAY: usize = 2000;

/// How long a caller waits.
const PATIENCE: Duration = Duration::from_secs(5);

/// A load.
#[derive(Clone, Debug)]
pub struct Load {
    /// `HOST:PORT` of the gateway for users, orders and payments.
    pub gates: Vec<String>,
    /// Calls a second, over all services.
    pub rate: u32,
    /// How long; without it until it is ended.
    pub lasts: Option<Duration>,
}

struct Callers {
    plain: Vec<Plain>,
    multiplexed: Option<Multiplexed>,
}

impl Load {
    /// Sends calls until the time is over, `ended` is cancelled or nobody reads the rates any more, which are shown each
    /// second.
    pub(super) async fn run(self, ended: &CancellationToken) -> Tally {
        let multiplexed = match self.gates.first() {
            Some(gate) => {
                lookup_host(gate).await.ok().and_then(|mut found| found.next()).map(Multiplexed::new)
            }
            None => None,
        };
        let callers =
            Arc::new(Callers { plain: self.gates.into_iter().map(Plain::new).collect(), multiplexed });
        let rates = Arc::new(Rates::new());
        let (began, period) = (Instant::now(), Duration::from_secs(1) / self.rate.max(1));
        let mut shown = interval(Duration::from_secs(1));
        let mut under_way = JoinSet::new();
        let mut number: u32 = 0;
        shown.tick().await;
        loop {
            let due = began + period * number;
            if self.lasts.is_some_and(|lasts| due >= began + lasts) {
                break;
            }
            tokio::select! {
                () = ended.cancelled() => break,
                _ = shown.tick() => {
                    if !rates.show(began.elapsed()) {
                        break;
                    }
                }
                Some(_) = under_way.join_next() => {}
                () = sleep_until(due) => {
                    let (callers, rates) = (Arc::clone(&callers), Arc::clone(&rates));
                    let service = Service::ALL[number as usize % Service::ALL.len()];
                    match under_way.len() < MAX_UNDER_WAY {
                        true => drop(under_way.spawn(one(callers, rates, service, number, due))),
                        false => rates.add(service, Said::Failed("not sent: too many calls under way".into()), due),
                    }
                    number = number.wrapping_add(1);
                }
            }
        }
        while under_way.join_next().await.is_some() {}
        rates.show_rest(began.elapsed());
        rates.total()
    }
}

async fn one(callers: Arc<Callers>, rates: Arc<Rates>, service: Service, number: u32, due: Instant) {
    let said = timeout(PATIENCE, ask(&callers, service, number)).await;
    let said = said.unwrap_or_else(|_| Ok(Said::Failed(format!("no reply within {} s", PATIENCE.as_secs()))));
    rates.add(service, said.unwrap_or_else(Said::Failed), due);
}

/// One call, and whether its reply is the right one.
async fn ask(callers: &Callers, service: Service, number: u32) -> Result<Said, String> {
    let call = Call { method: service.method().into(), seqid: number as i32, id: number.into() };
    let body = call.write().map_err(|error| error.to_string())?;
    let place = Service::ALL.iter().position(|other| *other == service).unwrap_or_default();
    // Three services take turns, so every other round of three goes by each way.
    let by_mux = callers.multiplexed.as_ref().filter(|_| (number / 3).is_multiple_of(2));
    let reply = match (by_mux, callers.plain.get(place)) {
        (Some(mux), _) => mux.call(service, body).await?,
        (None, Some(plain)) => plain.call(body).await?,
        (None, None) => return Err(format!("no gateway for {}", service.name())),
    };
    let (seqid, outcome) =
        Outcome::read(&reply).map_err(|error| format!("the reply is not readable: {error}"))?;
    Ok(match outcome {
        _ if seqid != call.seqid => Said::Wrong(format!("reply {seqid} to call {}", call.seqid)),
        Outcome::Result(_) if outcome == service.answer(call.id) => Said::Result,
        Outcome::Exception(_) if outcome == service.answer(call.id) => Said::Exception,
        // Not the service's words: the gateway says why it has no answer.
        Outcome::Exception(why) => Said::Failed(why),
        Outcome::Result(text) => Said::Wrong(format!("`{text}` to call {}", call.id)),
    })
}
