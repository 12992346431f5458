//! What stands round every call of a listener: its span, its numbers, and a net for panics.

use crate::observe::{ListenerStats, Tracer};
use futures_util::FutureExt;
use muxgate_rpc::{Failure, Request, Response, Serve, Status, Why};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use tokio::time::Instant;

/// The outermost layer: every later refusal is inside the span, counted like any answer.
pub struct Edge<S> {
    inner: S,
    tracer: Tracer,
    stats: Arc<ListenerStats>,
}

impl<S> Edge<S> {
    /// Watches over `inner`.
    pub fn new(tracer: Tracer, stats: Arc<ListenerStats>, inner: S) -> Self {
        Self { inner, tracer, stats }
    }
}

impl<S: Serve> Serve for Edge<S> {
    async fn call(&self, request: &mut Request) -> Result<Response, Failure> {
        let arrived = request.local.arrived;
        let counted = self.stats.begin(arrived);
        let mut span = self.tracer.server(&mut request.ctx, arrived, request.local.peer, &self.stats.label);
        let named = span.is_recording().then(|| Arc::new(OnceLock::new()));
        if named.is_some() {
            span.method(request.body.method_bytes());
            request.local.named.clone_from(&named);
        }
        let result = AssertUnwindSafe(self.inner.call(request)).catch_unwind().await.unwrap_or_else(|_| {
            tracing::error!(listener = &*self.stats.label, "a call panicked; this is a bug");
            Err(Failure::new(Why::Panic, "internal error in the gateway"))
        });
        if let Some(name) = named.as_deref().and_then(OnceLock::get) {
            span.tag(crate::observe::span::tags::ROUTE, name);
        }
        span.finish(&result);
        counted.end(&result, Instant::now());
        result
    }

    fn status(&self) -> Status {
        self.inner.status()
    }
}
