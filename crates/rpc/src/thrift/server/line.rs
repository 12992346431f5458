//! Calls that were sent without waiting for the ones before them: they run at once, and are answered in their order.

use super::asked::{Envelope, Reply};
use super::call;
use crate::{Request, Serve};
use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use std::collections::VecDeque;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

type Done = (Option<Reply>, Held);

/// The calls of one connection that run behind its first. They run in the connection's own task: dropping the line
/// cancels them all.
#[derive(Default)]
pub(super) struct Line {
    running: FuturesOrdered<Pin<Box<dyn Future<Output = Done> + Send>>>,
    /// Those at the front that are done.
    done: VecDeque<Done>,
    /// Bytes of calls that run, and of replies that wait for their turn.
    held: Arc<AtomicUsize>,
}

impl Line {
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn len(&self) -> usize {
        self.running.len() + self.done.len()
    }

    /// See [`Line`].
    pub(super) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Lets a call run. It is begun by the next [`Line::drive`].
    pub(super) fn start(&mut self, service: &Arc<impl Serve>, request: Request, envelope: Envelope) {
        let service = Arc::clone(service);
        let held = self.hold(request.body.bytes().len());
        self.push(async move { held.for_reply(call(&service, request, envelope).await) });
    }

    /// Puts an answer into its place behind the calls before it.
    pub(super) fn put(&mut self, reply: Reply) {
        let done = self.hold(0).for_reply(Some(reply));
        self.push(ready(done));
    }

    /// Takes over a oneway call that has begun.
    pub(super) fn adopt(&mut self, oneway: impl Future<Output = ()> + Send + 'static) {
        let held = self.hold(0);
        self.push(async move {
            oneway.await;
            (None, held)
        });
    }

    fn push(&mut self, call: impl Future<Output = Done> + Send + 'static) {
        self.running.push_back(Box::pin(call));
    }

    fn hold(&self, bytes: usize) -> Held {
        self.held.fetch_add(bytes, Ordering::Relaxed);
        Held { bytes, all: Arc::clone(&self.held) }
    }

    /// Lets all calls go on that can.
    pub(super) fn drive(&mut self, cx: &mut Context<'_>) {
        while let Poll::Ready(Some(done)) = self.running.poll_next_unpin(cx) {
            self.done.push_back(done);
        }
    }

    /// What came of the first call, if it is done: a reply, or none to a oneway call.
    pub(super) fn take(&mut self) -> Option<Option<Reply>> {
        self.done.pop_front().map(|(reply, _)| reply)
    }
}

/// Bytes that count until this is dropped.
struct Held {
    bytes: usize,
    all: Arc<AtomicUsize>,
}

impl Held {
    /// From now on it is the reply that counts.
    fn for_reply(mut self, reply: Option<Reply>) -> Done {
        let bytes = reply.as_ref().map_or(0, |reply| reply.body.len());
        self.all.fetch_add(bytes, Ordering::Relaxed);
        self.all.fetch_sub(std::mem::replace(&mut self.bytes, bytes), Ordering::Relaxed);
        (reply, self)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
