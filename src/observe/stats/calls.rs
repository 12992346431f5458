//! What became of calls: the counters that listeners, routes and endpoints have in common.

use super::exceptions::{Counts, Exceptions};
use super::latency::{Latency, Snapshot};
use muxgate_rpc::{Class, Failure, Reply, Response, Why};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::time::Instant;

/// What one call ended as. Each call is counted in exactly one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A result.
    Success,
    /// A declared exception that is no failure of the call: neither success nor failure.
    Declared,
    /// A declared exception that counts as a failure.
    DeclaredFailed,
    /// A TApplicationException.
    Application,
    /// A TApplicationException that is the caller's fault, or another reply that says nothing about the endpoint.
    Ignored,
    /// No reply.
    Failed(Why),
}

impl Outcome {
    /// Reads the judgement that dispatch made; nobody judges twice.
    pub fn of(result: &Result<Response, Failure>) -> Self {
        match result {
            Err(failure) => Self::Failed(failure.why()),
            Ok(Response { class, reply, .. }) => match (class, reply) {
                (Class::Success, Reply::Declared(_)) => Self::Declared,
                (Class::Success, _) => Self::Success,
                (Class::Ignorable, _) => Self::Ignored,
                (_, Reply::Declared(_)) => Self::DeclaredFailed,
                (_, _) => Self::Application,
            },
        }
    }
}

/// Counters of calls. One call costs four relaxed additions and a search among 240 edges; nothing waits or allocates.
#[derive(Debug, Default)]
pub struct Calls {
    begun: AtomicU64,
    success: AtomicU64,
    declared: AtomicU64,
    declared_failed: AtomicU64,
    application: AtomicU64,
    ignored: AtomicU64,
    exceptions: Exceptions,
    failed: [AtomicU64; Why::ALL.len()],
    latency: Latency,
}

impl Calls {
    /// Counts a call that begins.
    pub fn begin(&self, now: Instant) -> Call<'_> {
        self.begun.fetch_add(1, Relaxed);
        Call { calls: self, begun: now, open: true }
    }

    /// The numbers as they are now.
    pub fn totals(&self) -> Totals {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        let mut totals = Totals {
            success: read(&self.success),
            declared: read(&self.declared),
            declared_failed: read(&self.declared_failed),
            application: read(&self.application),
            ignored: read(&self.ignored),
            exceptions: self.exceptions.get(),
            failed: std::array::from_fn(|at| self.failed.get(at).map_or(0, read)),
            ..Totals::default()
        };
        // Read last: calls begun are never fewer than calls ended.
        totals.requests = read(&self.begun);
        totals
    }

    /// The latency of calls that ended, those given up by their caller left out.
    pub fn latency(&self) -> Snapshot {
        self.latency.snapshot()
    }

    fn count(&self, outcome: Outcome) {
        let counter = match outcome {
            Outcome::Success => &self.success,
            Outcome::Declared => &self.declared,
            Outcome::DeclaredFailed => &self.declared_failed,
            Outcome::Application => &self.application,
            Outcome::Ignored => &self.ignored,
            Outcome::Failed(why) => match self.failed.get(why.index()) {
                Some(counter) => counter,
                None => return,
            },
        };
        counter.fetch_add(1, Relaxed);
    }
}

/// A call that has begun. Dropped before its end, it counts as given up by the caller.
#[derive(Debug)]
#[must_use = "a call that is dropped at once counts as cancelled"]
pub struct Call<'a> {
    calls: &'a Calls,
    begun: Instant,
    open: bool,
}

impl Call<'_> {
    /// Counts the end. `now` is the caller's, who needs the time anyway.
    pub fn end(self, result: &Result<Response, Failure>, now: Instant) {
        self.calls.exceptions.count(result);
        self.end_as(Outcome::of(result), now);
    }

    /// Counts an end that is no result at hand.
    pub fn end_as(mut self, outcome: Outcome, now: Instant) {
        self.open = false;
        self.calls.count(outcome);
        if outcome != Outcome::Failed(Why::Cancelled) {
            self.calls.latency.record(now.saturating_duration_since(self.begun));
        }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if self.open {
            self.calls.count(Outcome::Failed(Why::Cancelled));
        }
    }
}

/// Numbers of one series, read together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Calls begun.
    pub requests: u64,
    /// Calls with a result.
    pub success: u64,
    /// Calls with a declared exception that is no failure.
    pub declared: u64,
    /// Calls with a declared exception that is a failure.
    pub declared_failed: u64,
    /// Calls with a TApplicationException that is a failure.
    pub application: u64,
    /// Calls that say nothing about the endpoint.
    pub ignored: u64,
    /// TApplicationExceptions by type, failures or not.
    pub exceptions: Counts,
    /// Calls without a reply, by cause, in the order of [`Why::ALL`].
    pub failed: [u64; Why::ALL.len()],
}

/// Cause of a failure that is a TApplicationException.
pub const APPLICATION: &str = "application_exception";
/// Cause of a failure that is a declared exception.
pub const DECLARED: &str = "declared_exception";

impl Totals {
    /// Failures by cause, zeros too.
    pub fn failures(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let replies = [(APPLICATION, self.application), (DECLARED, self.declared_failed)];
        Why::ALL.iter().zip(&self.failed).map(|(why, count)| (why.name(), *count)).chain(replies)
    }

    /// All failures together, calls given up by their caller left out: the other side of the success rate.
    pub fn failures_total(&self) -> u64 {
        let cancelled = self.failed.get(Why::Cancelled.index()).copied().unwrap_or(0);
        self.failures().map(|(_, count)| count).sum::<u64>() - cancelled
    }

    /// Calls begun and not ended.
    pub fn in_flight(&self) -> u64 {
        let ended =
            self.success + self.declared + self.ignored + self.failures().map(|(_, n)| n).sum::<u64>();
        self.requests.saturating_sub(ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use muxgate_wire::thrift::ApplicationExceptionType;
    use std::time::Duration;

    fn reply(reply: Reply, class: Class) -> Result<Response, Failure> {
        Ok(Response { contexts: Vec::new(), body: Bytes::new(), reply, class })
    }

    /// BC-06: a reply that is an exception is no success.
    #[tokio::test(start_paused = true)]
    async fn exceptions_are_never_counted_as_success() {
        let calls = Calls::default();
        let now = Instant::now();
        calls.begin(now).end(&reply(Reply::Result, Class::Success), now);
        calls.begin(now).end(&reply(Reply::Declared(1), Class::Success), now);
        calls.begin(now).end(&reply(Reply::Declared(1), Class::Failure), now);
        let kind = ApplicationExceptionType::from;
        calls.begin(now).end(&reply(Reply::Application(kind(6)), Class::Failure), now);
        calls.begin(now).end(&reply(Reply::Application(kind(1)), Class::Ignorable), now);
        let totals = calls.totals();
        assert_eq!((totals.requests, totals.success, totals.declared, totals.ignored), (5, 1, 1, 1));
        assert_eq!(totals.failures_total(), 2);
        assert_eq!(totals.exceptions, [0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0]);
        assert_eq!(totals.in_flight(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_call_is_cancelled_and_no_failure() {
        let calls = Calls::default();
        let now = Instant::now();
        let open = calls.begin(now);
        assert_eq!(calls.totals().in_flight(), 1);
        drop(open);
        calls.begin(now).end(&Err(Failure::new(Why::Timeout, "late")), now + Duration::from_millis(3));
        let totals = calls.totals();
        assert_eq!(totals.in_flight(), 0);
        assert_eq!(totals.failures_total(), 1);
        assert_eq!(totals.failed[Why::Cancelled.index()], 1);
        assert_eq!(calls.latency().count(), 1);
        assert_eq!(calls.latency().sum(), Duration::from_millis(3));
    }
}
