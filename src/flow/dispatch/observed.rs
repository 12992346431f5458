//! The span and the numbers of one attempt.

use crate::observe::span::tags;
use crate::observe::{EndpointStats, Tracer};
use muxgate_rpc::{Failure, Request, Response, Serve, Status};
use muxgate_wire::name::Path;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::time::Instant;

/// One client span per attempt, with the real address and the attempt's number.
pub struct Observed<S> {
    inner: S,
    tracer: Tracer,
    stats: Arc<EndpointStats>,
    cluster: Path,
    address: SocketAddr,
}

impl<S> Observed<S> {
    /// Watches attempts on `address`, a member of `cluster`.
    pub fn new(
        tracer: Tracer,
        stats: Arc<EndpointStats>,
        cluster: Path,
        address: SocketAddr,
        inner: S,
    ) -> Self {
        Self { inner, tracer, stats, cluster, address }
    }
}

impl<S: Serve> Serve for Observed<S> {
    async fn call(&self, request: &mut Request) -> Result<Response, Failure> {
        let begun = Instant::now();
        let counted = self.stats.begin(begun);
        let parent = request.ctx.trace;
        let (trace, mut span) = self.tracer.client(parent, request.local.named.is_some(), begun);
        request.ctx.trace = Some(trace);
        if span.is_recording() {
            span.method(request.body.method_bytes());
            span.remote(self.address);
            span.remote_service(self.cluster.as_str());
            span.tag(tags::CLUSTER, &self.cluster);
            span.tag(tags::ATTEMPT, request.local.attempt);
        }
        let result = self.inner.call(request).await;
        request.ctx.trace = parent;
        span.finish(&result);
        counted.end(&result, Instant::now());
        result
    }

    fn status(&self) -> Status {
        self.inner.status()
    }
}
