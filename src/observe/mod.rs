//! What can be seen of the gateway: numbers ([`stats`], [`prometheus`]) and traces ([`span`], [`ring`], [`zipkin`]).
//!
//! Comes in: what the rooms of the flow report, as plain values. Goes out: text and spans. Knows no other room.

pub mod prometheus;
pub mod ring;
pub mod span;
pub mod stats;
pub mod zipkin;

pub use ring::Ring;
pub use span::{ClientSpan, Recorder, ServerSpan, Tracer};
pub use stats::{Call, EndpointStats, ListenerStats, Registry, RouteStats, SpanStats};
pub use zipkin::Zipkin;
