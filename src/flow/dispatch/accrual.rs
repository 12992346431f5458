//! Failure accrual: an endpoint that fails several times in a row is marked dead for a while, then proved by one call.
//!
//! ```text
//!                    success: count = 0
//!                      +------+
//!                      v      |   N failures in a row: wait in [min, 2 min]
//!                  +--------------+ --------------------------------------> +---------------+
//!         +------> |    Alive     |   connect failure: wait in [1 s, 2 s]   |     Dead      | <--+
//!         |        +--------------+ --------------------------------------> |  until T      |    |
//!         |               ^                                                 +---------------+    |
//!         |               |      success of a call sent in panic                |  |             |
//!         |               +-----------------------------------------------------+  | T passes    |
//!         |                                                                        v             |
//!         | success        +--------------+      the first call is the probe +---------------+   |
//!         +--------------- |   Probing    | <------------------------------- |   ProbeOpen   |   |
//!                          +--------------+ -------------------------------> +---------------+   |
//!                                  |       probe dropped, or says nothing                        |
//!                                  +-------------------------------------------------------------+
//!                                          probe fails: the wait doubles, up to max
//! ```
//!
//! Status: Alive and ProbeOpen are open, Dead and Probing are doubtful. **Status steers, the call is never refused**: the
//! balancer sends to a doubtful endpoint only in panic, and a refusal would turn that into an outage. So when two calls
//! race for the probe, one becomes it and the other goes through as a call in panic: its success revives the endpoint as
//! well, its failure changes nothing.
//!
//! A connect failure marks the endpoint dead at once, for a short first time (Finagle's fail fast: 1 s, then growing):
//! nothing listens there, and counting to N would only spend the callers' retries. A lone endpoint is still tried, as
//! the balancer then has nobody else.
//!
//! A call counts for the life in which it was begun: a failure that arrives late does not kill an endpoint that was
//! revived meanwhile, nor does an old success revive a dead one.

use super::params;
use muxgate_rpc::{Class, Failure, Flags, Request, Response, Serve, Status, Why};
use parking_lot::Mutex;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::time::Instant;

/// First time out of choice after a connect failure, unless `min_backoff` is shorter (Finagle's fail fast).
pub const CONNECT_BACKOFF: Duration = Duration::from_secs(1);

/// What an answer says of the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It works.
    Success,
    /// It does not.
    Failure,
    /// Nobody listens.
    Unreachable,
    /// Nothing.
    Nothing,
}

impl Verdict {
    /// Judges an answer. Timeouts, lost connections, unreadable and error replies, and refusals (nack) count.
    ///
    /// Not evidence: replies classed ignorable; failures flagged [`Flags::IGNORABLE`] (cancelled by the caller; a nack that
    /// only says that the session drains must carry it); what was the caller's fault or our own.
    pub fn of(answer: &Result<Response, Failure>) -> Self {
        match answer {
            Ok(response) => match response.class {
                Class::Success => Self::Success,
                Class::Failure | Class::RetryableFailure => Self::Failure,
                Class::Ignorable => Self::Nothing,
            },
            Err(failure) if failure.flags().has(Flags::IGNORABLE) => Self::Nothing,
            Err(failure) => match failure.why() {
                Why::Connect => Self::Unreachable,
                Why::Timeout | Why::ConnectionLost | Why::Nack | Why::Upstream | Why::BadReply => {
                    Self::Failure
                }
                Why::BadRequest
                | Why::NoSuchName
                | Why::NameUnavailable
                | Why::NoEndpoint
                | Why::Expired
                | Why::Overload
                | Why::Draining
                | Why::Cancelled
                | Why::Panic => Self::Nothing,
            },
        }
    }
}

/// What happens to an endpoint, for counters.
pub trait Events: Send + Sync + 'static {
    /// Marked dead, for so long.
    fn removed(&self, _wait: Duration) {}
    /// Its time is over: one call proves it.
    fn probed(&self) {}
    /// Alive again.
    fn revived(&self) {}
}

/// Nobody counts.
impl Events for () {}

/// Puts [`Accrual`] on an endpoint. Each endpoint gets a record and a jitter of its own.
#[derive(Clone)]
pub struct AccrualLayer {
    params: params::Accrual,
    events: Arc<dyn Events>,
    seed: Option<u64>,
}

impl AccrualLayer {
    /// A layer with these settings.
    pub fn new(params: params::Accrual, events: Arc<dyn Events>) -> Self {
        Self { params, events, seed: None }
    }

    /// The same, with a jitter that can be repeated.
    #[must_use]
    pub fn seeded(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }
}

impl<S> tower::Layer<S> for AccrualLayer {
    type Service = Accrual<S>;

    fn layer(&self, inner: S) -> Accrual<S> {
        let machine = Machine::new(&self.params, self.seed.unwrap_or_else(rand::random));
        Accrual {
            inner,
            calm: AtomicU64::new(machine.calm()),
            machine: Mutex::new(machine),
            events: Arc::clone(&self.events),
        }
    }
}

/// An endpoint with its record of failures.
pub struct Accrual<S> {
    inner: S,
    /// The machine's [`Machine::calm`], readable without its lock: all that is needed while nothing fails.
    calm: AtomicU64,
    machine: Mutex<Machine>,
    events: Arc<dyn Events>,
}

impl<S: Serve> Serve for Accrual<S> {
    async fn call(&self, request: &mut Request) -> Result<Response, Failure> {
        let attempt = Attempt::begin(self);
        let answer = self.inner.call(request).await;
        attempt.end(Verdict::of(&answer));
        answer
    }

    fn status(&self) -> Status {
        let inner = self.inner.status();
        if inner >= Status::Doubtful || is_calm(self.calm.load(Relaxed)) {
            return inner;
        }
        if self.machine.lock().is_open(Instant::now()) { inner } else { Status::Doubtful }
    }
}

impl<S> Accrual<S> {
    /// Changes the machine, publishes its calm, and tells of a change for counters.
    fn change<T>(&self, change: impl FnOnce(&mut Machine, Instant) -> (T, Option<Event>)) -> T {
        let (value, event) = {
            let mut machine = self.machine.lock();
            let out = change(&mut machine, Instant::now());
            self.calm.store(machine.calm(), Relaxed);
            out
        };
        match event {
            Some(Event::Removed(wait)) => self.events.removed(wait),
            Some(Event::Probed) => self.events.probed(),
            Some(Event::Revived) => self.events.revived(),
            None => {}
        }
        value
    }
}

/// One call. Dropped without an end, it says nothing and gives its probe back.
struct Attempt<'a, S> {
    accrual: &'a Accrual<S>,
    ticket: Ticket,
}

impl<'a, S> Attempt<'a, S> {
    fn begin(accrual: &'a Accrual<S>) -> Self {
        let calm = accrual.calm.load(Relaxed);
        let ticket = if is_calm(calm) {
            Ticket { life: calm >> 1, probe: false }
        } else {
            accrual.change(Machine::begin)
        };
        Self { accrual, ticket }
    }

    fn end(mut self, verdict: Verdict) {
        let ticket = std::mem::take(&mut self.ticket);
        let nothing_new = match verdict {
            Verdict::Success => is_calm(self.accrual.calm.load(Relaxed)),
            Verdict::Nothing => !ticket.probe,
            Verdict::Failure | Verdict::Unreachable => false,
        };
        if !nothing_new {
            self.accrual.change(|machine, now| ((), machine.end(ticket, verdict, now)));
        }
    }
}

impl<S> Drop for Attempt<'_, S> {
    fn drop(&mut self) {
        if self.ticket.probe {
            let ticket = self.ticket;
            self.accrual.change(|machine, now| ((), machine.end(ticket, Verdict::Nothing, now)));
        }
    }
}

/// What a call must remember.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ticket {
    /// The life or death in which the call was begun.
    life: u64,
    /// This call decides.
    probe: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// So many failures in a row.
    Alive(u32),
    /// Until then; from then on the probe is open.
    Dead(Instant),
    /// The probe is out.
    Probing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Removed(Duration),
    Probed,
    Revived,
}

/// The state machine, without clock or lock.
#[derive(Debug)]
struct Machine {
    params: params::Accrual,
    state: State,
    /// Counts deaths and revivals.
    life: u64,
    /// The shortest wait of the next death by a failed probe.
    wait: Duration,
    jitter: SmallRng,
}

/// Alive without a failure to remember: life << 1 | 1.
fn is_calm(word: u64) -> bool {
    word & 1 == 1
}

impl Machine {
    fn new(params: &params::Accrual, seed: u64) -> Self {
        let mut params = params.clone();
        params.failures = params.failures.max(1);
        params.max_backoff = params.max_backoff.max(params.min_backoff);
        let (state, jitter) = (State::Alive(0), SmallRng::seed_from_u64(seed));
        Self { wait: params.min_backoff, params, state, life: 0, jitter }
    }

    fn calm(&self) -> u64 {
        self.life << 1 | u64::from(self.state == State::Alive(0))
    }

    fn is_open(&self, now: Instant) -> bool {
        match self.state {
            State::Alive(_) => true,
            State::Dead(until) => until <= now,
            State::Probing => false,
        }
    }

    fn begin(&mut self, now: Instant) -> (Ticket, Option<Event>) {
        let probe = matches!(self.state, State::Dead(until) if until <= now);
        if probe {
            self.state = State::Probing;
        }
        (Ticket { life: self.life, probe }, probe.then_some(Event::Probed))
    }

    fn end(&mut self, ticket: Ticket, verdict: Verdict, now: Instant) -> Option<Event> {
        if ticket.life != self.life {
            return None;
        }
        match (self.state, verdict) {
            (State::Alive(_), Verdict::Success) => {
                self.state = State::Alive(0);
                None
            }
            (State::Alive(count), Verdict::Failure) if count + 1 < self.params.failures => {
                self.state = State::Alive(count + 1);
                None
            }
            (State::Alive(_), Verdict::Failure) => Some(self.die(self.params.min_backoff, now)),
            (State::Alive(_), Verdict::Unreachable) => {
                Some(self.die(CONNECT_BACKOFF.min(self.params.min_backoff), now))
            }
            (State::Dead(_) | State::Probing, Verdict::Success) => {
                self.state = State::Alive(0);
                self.life += 1;
                Some(Event::Revived)
            }
            (State::Probing, Verdict::Failure | Verdict::Unreachable) if ticket.probe => {
                let wait = self.wait;
                Some(self.out(wait, now))
            }
            (State::Probing, Verdict::Nothing) if ticket.probe => {
                self.state = State::Dead(now);
                None
            }
            (State::Alive(_) | State::Dead(_) | State::Probing, _) => None,
        }
    }

    fn die(&mut self, wait: Duration, now: Instant) -> Event {
        self.life += 1;
        self.out(wait, now)
    }

    /// Out of choice for `wait` and as much again by lot (equal jitter), at most the largest; the next wait is doubled.
    fn out(&mut self, wait: Duration, now: Instant) -> Event {
        let most = self.params.max_backoff;
        let lot = self.jitter.random_range(0.0..=1.0);
        let drawn = wait.saturating_add(wait.mul_f64(lot)).min(most);
        self.state = State::Dead(now + drawn);
        self.wait = wait.saturating_mul(2).min(most);
        Event::Removed(drawn)
    }
}

#[cfg(test)]
mod tests;
