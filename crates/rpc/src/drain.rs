//! The word that a listener leaves: heard by all its connections, and nearly free to look at.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

/// Says that no more calls are wanted. Clones are the same word.
#[derive(Clone, Debug, Default)]
pub struct Drain(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    begun: AtomicBool,
    told: Arc<Notify>,
}

impl Drain {
    /// Says it.
    pub fn begin(&self) {
        self.0.begun.store(true, Ordering::SeqCst);
        self.0.told.notify_waiters();
    }

    /// Whether it was said.
    pub fn is_begun(&self) -> bool {
        self.0.begun.load(Ordering::SeqCst)
    }

    /// Waits until it is said.
    pub async fn begun(&self) {
        let mut watch = self.watch();
        poll_fn(|cx| watch.poll(cx)).await;
    }

    /// Listens, for one task.
    pub fn watch(&self) -> DrainWatch {
        DrainWatch {
            drain: self.clone(),
            told: Box::pin(Arc::clone(&self.0.told).notified_owned()),
            waits: false,
        }
    }
}

/// Listens for a [`Drain`], always in the same task: its waker is left behind once, and after that a look is one atomic
/// read.
#[derive(Debug)]
pub struct DrainWatch {
    drain: Drain,
    told: Pin<Box<OwnedNotified>>,
    waits: bool,
}

impl DrainWatch {
    /// Ready once the drain has begun.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.waits {
            self.waits = self.told.as_mut().poll(cx).is_pending();
        }
        if self.drain.is_begun() { Poll::Ready(()) } else { Poll::Pending }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn is_heard_before_and_after_the_first_look() {
        let drain = Drain::default();
        let mut late = drain.watch();
        let mut waiting = drain.watch();
        let heard = tokio::spawn(async move { poll_fn(|cx| waiting.poll(cx)).await });
        tokio::task::yield_now().await;
        drain.begin();
        heard.await.unwrap();
        poll_fn(|cx| late.poll(cx)).await;
        poll_fn(|cx| drain.watch().poll(cx)).await;
        assert!(drain.is_begun());
    }
}
