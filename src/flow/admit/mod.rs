//! Refuse early and cheaply: calls whose deadline has passed, calls beyond the limit.

mod params;

pub use params::Params;

use muxgate_rpc::{Failure, Pressure, Purse, Request, Response, Serve, Status, Why};
use std::time::Duration;
use tokio::time::Instant;

/// Share of calls that may be refused as expired: if callers' clocks are wrong, most of their calls must still work.
const MOST_EXPIRED: f64 = 0.2;
/// Refusals a second that are allowed in any case, so that a few callers with old calls are always told.
const EXPIRED_PER_SEC: u32 = 100;
/// Window over which the share is counted.
const EXPIRED_WINDOW: Duration = Duration::from_secs(10);

/// Lets calls in, or refuses them before anything is spent on them.
pub struct Admit<S> {
    inner: S,
    pressure: Pressure,
    refusals: Purse,
}

impl<S> Admit<S> {
    /// Guards `inner`; calls are counted, and refused, by `pressure`.
    pub fn new(pressure: Pressure, inner: S) -> Self {
        Self { inner, pressure, refusals: Purse::new(MOST_EXPIRED, EXPIRED_PER_SEC, EXPIRED_WINDOW) }
    }

    fn check_deadline(&self, request: &mut Request) -> Result<(), Failure> {
        let Some(deadline) = request.ctx.deadline else { return Ok(()) };
        let now = Instant::now();
        self.refusals.deposit(now);
        if !deadline.is_past(now) {
            return Ok(());
        }
        if self.refusals.withdraw() {
            return Err(Failure::new(Why::Expired, "the call's deadline had passed when it arrived"));
        }
        // Too many seem to be expired to be true: serve the call as if it had no deadline, but pass it on.
        request.local.deadline_doubted = true;
        Ok(())
    }
}

impl<S: Serve> Serve for Admit<S> {
    async fn call(&self, request: &mut Request) -> Result<Response, Failure> {
        self.check_deadline(request)?;
        let _permit = self
            .pressure
            .take()
            .map_err(|limit| Failure::new(Why::Overload, format!("more than {limit} calls in progress")))?;
        self.inner.call(request).await
    }

    fn status(&self) -> Status {
        self.inner.status()
    }
}

#[cfg(test)]
mod tests;
