//! How much of what a listener takes at once is taken: calls are counted here, and sessions hear when it is too much.
//!
//! The policy behind our leases (mux spec, section 12): a call that is refused for the limit makes every session of the
//! listener tell its caller to stay away (a lease of 0). A session looks again after [`HOLD`] and takes it back (a lease
//! without end) once at most three quarters of the limit are in progress. So a session says at most two things each [`HOLD`],
//! however the load swings.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::Context;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

/// How long a caller is told to stay away, at least.
pub const HOLD: Duration = Duration::from_secs(1);

/// Share of a limit, in percent, at which callers are welcome again.
const CALM: usize = 75;

/// Whether so much of a limit is little enough for callers to come back.
pub(crate) fn is_calm(taken: usize, limit: usize) -> bool {
    taken <= limit.saturating_mul(CALM) / 100
}

/// Counts the calls in progress at a listener. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Pressure(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    limit: usize,
    in_progress: AtomicUsize,
    /// Counts the refusals that began a time of overload.
    overloads: AtomicU64,
    told: Arc<Notify>,
}

/// A call in progress.
#[derive(Debug)]
pub struct Permit<'a>(Option<&'a AtomicUsize>);

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if let Some(in_progress) = self.0 {
            in_progress.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Pressure {
    /// At most `limit` calls at once; without a limit nothing is counted.
    pub fn new(limit: Option<usize>) -> Self {
        Self(limit.map(|limit| {
            let told = Arc::new(Notify::new());
            Arc::new(Inner { limit, in_progress: AtomicUsize::new(0), overloads: AtomicU64::new(0), told })
        }))
    }

    /// Counts a call until the permit is dropped.
    ///
    /// # Errors
    /// The limit, when as many are in progress. All sessions hear of it.
    pub fn take(&self) -> Result<Permit<'_>, usize> {
        let Some(inner) = &self.0 else { return Ok(Permit(None)) };
        if inner.in_progress.fetch_add(1, Ordering::Relaxed) >= inner.limit {
            inner.in_progress.fetch_sub(1, Ordering::Relaxed);
            inner.overloads.fetch_add(1, Ordering::Release);
            inner.told.notify_waiters();
            return Err(inner.limit);
        }
        Ok(Permit(Some(&inner.in_progress)))
    }

    /// Whether callers are welcome.
    pub fn is_calm(&self) -> bool {
        self.0.as_ref().is_none_or(|inner| is_calm(inner.in_progress.load(Ordering::Relaxed), inner.limit))
    }

    /// Listens, for one task.
    pub fn watch(&self) -> PressureWatch {
        let seen = self.0.as_ref().map_or(0, |inner| inner.overloads.load(Ordering::Acquire));
        PressureWatch { watched: self.0.clone(), seen, told: None }
    }
}

/// Listens for refusals, always in the same task: a look when nothing has happened is one atomic read.
#[derive(Debug)]
pub struct PressureWatch {
    watched: Option<Arc<Inner>>,
    seen: u64,
    told: Option<Pin<Box<OwnedNotified>>>,
}

impl PressureWatch {
    /// Whether a call was refused since the last look. If not, the task is woken when one is.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(inner) = &self.watched else { return false };
        let overloads = inner.overloads.load(Ordering::Acquire);
        if overloads == self.seen && self.told.is_some() {
            return false;
        }
        let mut told = Box::pin(Arc::clone(&inner.told).notified_owned());
        // Leaves the waker behind; what happened until then shows in the number.
        let _ = told.as_mut().poll(cx);
        self.told = Some(told);
        let overloads = inner.overloads.load(Ordering::Acquire);
        let happened = overloads != self.seen;
        self.seen = overloads;
        happened
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::task::Poll;

    #[test]
    fn calls_are_counted_up_to_the_limit() {
        let pressure = Pressure::new(Some(4));
        let mut permits: Vec<_> = (0..4).map(|_| pressure.take().unwrap()).collect();
        assert_eq!(pressure.take().unwrap_err(), 4);
        assert!(!pressure.is_calm());
        permits.pop();
        assert!(pressure.is_calm(), "three of four");
        let endless = Pressure::new(None);
        assert!(endless.take().is_ok() && endless.is_calm());
    }

    #[tokio::test]
    async fn a_refusal_is_heard_once() {
        let pressure = Pressure::new(Some(0));
        let mut watch = pressure.watch();
        let heard = tokio::spawn(async move {
            for _ in 0..2 {
                poll_fn(|cx| if watch.poll(cx) { Poll::Ready(()) } else { Poll::Pending }).await;
                assert!(!poll_fn(|cx| Poll::Ready(watch.poll(cx))).await);
            }
        });
        for _ in 0..2 {
            tokio::task::yield_now().await;
            assert!(pressure.take().is_err());
            tokio::task::yield_now().await;
        }
        heard.await.unwrap();
        let mut late = pressure.watch();
        assert!(!poll_fn(|cx| Poll::Ready(late.poll(cx))).await, "it was before");
    }
}
