//! Our spans as the SDK's `SpanData`, made by hand: the ids are the wire's.
//!
//! What the exporter does not write travels as attributes under [`RESERVED`], which [`super::client`] puts in place.

use crate::observe::span::{Kind, Span};
use opentelemetry::trace::{Event, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use std::time::Duration;

/// Begins the keys of attributes that are no tags. Keys of tags are words in our code, and none begins so.
pub const RESERVED: &str = "muxgate:";
/// Our service name.
pub const SERVICE: &str = "muxgate:service";
/// The other side's service name.
pub const REMOTE_SERVICE: &str = "muxgate:remote.service";
/// The other side's address, `ip:port`.
pub const REMOTE: &str = "muxgate:remote";
/// Present when the id is the caller's.
pub const SHARED: &str = "muxgate:shared";
/// Present when the trace is a debug trace.
pub const DEBUG: &str = "muxgate:debug";
/// The trace id as it is to be written: 16 or 32 digits.
pub const TRACE: &str = "muxgate:trace";

/// One span.
pub fn span_data(span: &Span) -> SpanData {
    let trace = u128::from(span.trace_id_high.unwrap_or(0)) << 64 | u128::from(span.trace_id);
    let mut events = SpanEvents::default();
    events.events =
        span.notes.iter().map(|(at, text)| Event::new(text.clone(), *at, Vec::new(), 0)).collect();
    SpanData {
        span_context: SpanContext::new(
            TraceId::from(trace),
            SpanId::from(span.id),
            TraceFlags::SAMPLED,
            false,
            TraceState::default(),
        ),
        parent_span_id: span.parent.map_or(SpanId::INVALID, SpanId::from),
        parent_span_is_remote: false,
        span_kind: match span.kind {
            Kind::Server => SpanKind::Server,
            Kind::Client => SpanKind::Client,
        },
        name: span.name.clone().into(),
        start_time: span.start,
        end_time: span.start + span.duration.max(Duration::from_micros(1)),
        attributes: attributes(span),
        dropped_attributes_count: 0,
        events,
        links: SpanLinks::default(),
        status: span.error.as_ref().map_or(Status::Unset, |error| Status::error(error.clone())),
        instrumentation_scope: InstrumentationScope::default(),
    }
}

fn attributes(span: &Span) -> Vec<KeyValue> {
    let mut all: Vec<_> = span.tags.iter().map(|(key, value)| KeyValue::new(*key, value.clone())).collect();
    all.push(KeyValue::new(SERVICE, span.service.to_string()));
    all.push(KeyValue::new(TRACE, span.trace_hex()));
    all.extend(span.remote_service.iter().map(|name| KeyValue::new(REMOTE_SERVICE, name.clone())));
    all.extend(span.remote.iter().map(|address| KeyValue::new(REMOTE, address.to_string())));
    all.extend(span.shared.then(|| KeyValue::new(SHARED, true)));
    all.extend(span.debug.then(|| KeyValue::new(DEBUG, true)));
    all
}
