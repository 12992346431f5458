//! Spans: ids come from the wire, never from a library; sampling is decided once, at the edge.
//!
//! A server span joins the span that the caller sent (same id, `shared`) or begins a trace; a client span is its child,
//! and its ids go out to the endpoint. So every parent is a span that somebody reports (BC-18).

mod glance;
mod ids;
pub mod json;
mod open;
mod record;
#[cfg(test)]
mod tests;

pub use open::OpenSpan;
pub(crate) use record::bounded;
pub use record::{Kind, MAX_NOTES, MAX_TAGS, MAX_TEXT, Recorder, Span};

use super::stats::SpanStats;
use glance::Glance;
use muxgate_rpc::Context;
use muxgate_wire::mux::context::TraceContext;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::time::Instant;

/// The span of a call that came in.
pub type ServerSpan = OpenSpan;
/// The span of one attempt that goes out.
pub type ClientSpan = OpenSpan;

/// Keys of tags.
pub mod tags {
    /// The route's path.
    pub const ROUTE: &str = "muxgate.route";
    /// The bound id of the cluster.
    pub const CLUSTER: &str = "muxgate.cluster";
    /// The listener's name.
    pub const LISTENER: &str = "muxgate.listener";
    /// Zero for the first attempt.
    pub const ATTEMPT: &str = "attempt";
    /// The caller's address.
    pub const PEER: &str = "peer";
    /// The exception that a reply holds.
    pub const EXCEPTION: &str = "thrift.exception";
}

/// What is configured about tracing.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The gateway's name in traces.
    pub service: String,
    /// Share of undecided traces that is sampled, 0 to 1; none leaves them undecided. A decision that came in is law.
    pub sample_rate: Option<f64>,
}

impl Default for Settings {
    /// Decides nothing.
    fn default() -> Self {
        Self { service: "muxgate".to_owned(), sample_rate: None }
    }
}

/// Begins spans. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Tracer(Option<Arc<Inner>>);

pub(crate) struct Inner {
    service: Arc<str>,
    sample_rate: Option<f64>,
    /// Gets the spans of sampled traces.
    collector: Option<Arc<dyn Recorder>>,
    /// Gets those too, and a few of the undecided traces: for ourselves only, nobody else is told.
    ring: Option<Arc<dyn Recorder>>,
    glance: Glance,
    stats: Arc<SpanStats>,
}

impl Tracer {
    /// A tracer that records nothing: a trace that came in goes on unchanged, a call without one begins one, undecided.
    pub fn off() -> Self {
        Self(None)
    }

    /// A tracer: the collector gets what is sampled; the ring gets that and a few of the undecided traces. Without either
    /// it is [`Tracer::off`].
    pub fn new(
        settings: &Settings,
        collector: Option<Arc<dyn Recorder>>,
        ring: Option<Arc<dyn Recorder>>,
        stats: Arc<SpanStats>,
    ) -> Self {
        if collector.is_none() && ring.is_none() {
            return Self::off();
        }
        let service = Arc::from(bounded(&settings.service));
        let (sample_rate, glance) = (settings.sample_rate, Glance::default());
        Self(Some(Arc::new(Inner { service, sample_rate, collector, ring, glance, stats })))
    }

    /// Begins the span of a call that came in at `now`, and puts it into `ctx.trace`. Ids of zero are no ids: such a
    /// trace begins anew, under the flags that came.
    pub fn server(
        &self,
        ctx: &mut Context,
        now: Instant,
        peer: Option<SocketAddr>,
        listener: &str,
    ) -> ServerSpan {
        let Some(inner) = &self.0 else {
            ctx.trace.get_or_insert_with(|| ids::root(0));
            return OpenSpan::none();
        };
        let received = ctx.trace.filter(ids::is_named);
        let flags = ctx.trace.map_or(0, |trace| trace.flags);
        let trace = inner.decided(received.unwrap_or_else(|| ids::root(flags)));
        ctx.trace = Some(trace);
        let record = match ids::decision(trace.flags) {
            Some(sampled) => sampled,
            None => inner.ring.is_some() && inner.glance.at(now),
        };
        let mut span = inner.open(&trace, Kind::Server, received.is_some(), record, now);
        if span.is_recording() {
            span.tag(tags::LISTENER, listener);
            if let Some(peer) = peer {
                span.remote(peer);
                span.tag(tags::PEER, peer);
            }
            if let Some(client) = &ctx.client_id {
                span.remote_service(&String::from_utf8_lossy(client.get(..MAX_TEXT).unwrap_or(client)));
            }
        }
        span
    }

    /// Begins the span of one attempt, a child of the server span `parent`, and gives the ids to send. `record` says
    /// whether the server span is recorded.
    pub fn client(
        &self,
        parent: Option<TraceContext>,
        record: bool,
        now: Instant,
    ) -> (TraceContext, ClientSpan) {
        let Some(inner) = &self.0 else {
            return (parent.unwrap_or_else(|| ids::root(0)), OpenSpan::none());
        };
        let trace = inner.decided(match parent.filter(ids::is_named) {
            Some(parent) => ids::child(parent),
            None => ids::root(parent.map_or(0, |parent| parent.flags)),
        });
        (trace, inner.open(&trace, Kind::Client, false, record, now))
    }
}

impl Inner {
    fn decided(&self, trace: TraceContext) -> TraceContext {
        match (ids::decision(trace.flags), self.sample_rate) {
            (None, Some(rate)) => {
                let sample = ids::is_chosen(trace.trace_id, rate);
                TraceContext { flags: ids::decide(trace.flags, sample), ..trace }
            }
            _ => trace,
        }
    }

    fn open(
        self: &Arc<Self>,
        trace: &TraceContext,
        kind: Kind,
        shared: bool,
        record: bool,
        now: Instant,
    ) -> OpenSpan {
        if record { OpenSpan::begin(self, trace, kind, shared, now) } else { OpenSpan::none() }
    }

    fn record(&self, span: Span) {
        self.stats.recorded.add_one();
        let span = Arc::new(span);
        if span.sampled
            && let Some(collector) = &self.collector
        {
            collector.record(&span);
        }
        if let Some(ring) = &self.ring {
            ring.record(&span);
        }
    }
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tracer({}, {:?})", self.service, self.sample_rate)
    }
}
