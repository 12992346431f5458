//! Spans: ids come from the wire, never from a library; sampling is decided once, at the edge.
//!
//! A server span joins the span that the caller sent (same id, `shared`) or begins a trace; a client span is its child,
//! and its ids go out to the endpoint. So every parent is a span that somebody reports (BC-18).

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
    /// Share of undecided traces that is sampled, 0 to 1. A decision that came in is law.
    pub sample_rate: f64,
}

impl Default for Settings {
    /// Finagle's `initialSampleRate` of 0.001.
    fn default() -> Self {
        Self { service: "muxgate".to_owned(), sample_rate: 0.001 }
    }
}

/// Begins spans. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Tracer(Option<Arc<Inner>>);

pub(crate) struct Inner {
    service: Arc<str>,
    sample_rate: f64,
    recorders: Vec<Arc<dyn Recorder>>,
    stats: Arc<SpanStats>,
}

impl Tracer {
    /// A tracer that records nothing: a trace that came in goes on unchanged, a call without one begins one, undecided.
    pub fn off() -> Self {
        Self(None)
    }

    /// A tracer for these recorders; without any it is [`Tracer::off`].
    pub fn new(settings: &Settings, recorders: Vec<Arc<dyn Recorder>>, stats: Arc<SpanStats>) -> Self {
        if recorders.is_empty() {
            return Self::off();
        }
        let service = Arc::from(bounded(&settings.service));
        Self(Some(Arc::new(Inner { service, sample_rate: settings.sample_rate, recorders, stats })))
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
        let mut span = inner.open(&trace, Kind::Server, received.is_some(), now);
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

    /// Begins the span of one attempt, a child of the server span `parent`, and gives the ids to send.
    pub fn client(&self, parent: Option<TraceContext>, now: Instant) -> (TraceContext, ClientSpan) {
        let Some(inner) = &self.0 else {
            return (parent.unwrap_or_else(|| ids::root(0)), OpenSpan::none());
        };
        let trace = inner.decided(match parent.filter(ids::is_named) {
            Some(parent) => ids::child(parent),
            None => ids::root(parent.map_or(0, |parent| parent.flags)),
        });
        (trace, inner.open(&trace, Kind::Client, false, now))
    }
}

impl Inner {
    fn decided(&self, trace: TraceContext) -> TraceContext {
        match ids::decision(trace.flags) {
            Some(_) => trace,
            None => {
                let sample = ids::is_chosen(trace.trace_id, self.sample_rate);
                TraceContext { flags: ids::decide(trace.flags, sample), ..trace }
            }
        }
    }

    fn open(self: &Arc<Self>, trace: &TraceContext, kind: Kind, shared: bool, now: Instant) -> OpenSpan {
        match ids::decision(trace.flags) {
            Some(true) => OpenSpan::begin(self, trace, kind, shared, now),
            _ => OpenSpan::none(),
        }
    }

    fn record(&self, span: Span) {
        self.stats.recorded.add_one();
        let span = Arc::new(span);
        for recorder in &self.recorders {
            recorder.record(&span);
        }
    }
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tracer({}, {}, {} recorders)", self.service, self.sample_rate, self.recorders.len())
    }
}
