//! A span that has ended, and who wants to know of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Longest text kept in a span: its name, a tag's value, a service's name. Bytes.
pub const MAX_TEXT: usize = 256;
/// Most tags on a span.
pub const MAX_TAGS: usize = 16;
/// Most annotations on a span.
pub const MAX_NOTES: usize = 16;

/// The side of a call that a span is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// We were called.
    Server,
    /// We call.
    Client,
}

/// A span that has ended. Its size is bounded: by [`MAX_TEXT`], [`MAX_TAGS`] and [`MAX_NOTES`] some 10 KB, mostly 500 bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// High half of the trace id, if it is a long one.
    pub trace_id_high: Option<u64>,
    /// Low half of the trace id.
    pub trace_id: u64,
    /// The span's id.
    pub id: u64,
    /// The span above, if this is no root.
    pub parent: Option<u64>,
    /// The side.
    pub kind: Kind,
    /// Whether the id came from the caller, whose client span has it too.
    pub shared: bool,
    /// Whether the trace is sampled; if not, the span is for our own pages only.
    pub sampled: bool,
    /// Whether the caller asked for a debug trace.
    pub debug: bool,
    /// The method; may be empty.
    pub name: String,
    /// When it began, by the wall clock.
    pub start: SystemTime,
    /// How long it took, by the steady clock.
    pub duration: Duration,
    /// The gateway's own service name.
    pub service: Arc<str>,
    /// The other side's address.
    pub remote: Option<SocketAddr>,
    /// The other side's service name.
    pub remote_service: Option<String>,
    /// Facts, by key.
    pub tags: Vec<(&'static str, String)>,
    /// Moments.
    pub notes: Vec<(SystemTime, String)>,
    /// Why the call failed.
    pub error: Option<String>,
}

impl Span {
    /// The trace id as Zipkin writes it: 16 or 32 lower-case digits, high half first.
    pub fn trace_hex(&self) -> String {
        match self.trace_id_high {
            Some(high) => format!("{high:016x}{:016x}", self.trace_id),
            None => format!("{:016x}", self.trace_id),
        }
    }

    /// Microseconds since 1970 at the start.
    pub fn start_us(&self) -> u64 {
        since_epoch_us(self.start)
    }

    /// Microseconds it took; at least one, as zero means unknown to collectors.
    pub fn duration_us(&self) -> u64 {
        u64::try_from(self.duration.as_micros()).unwrap_or(u64::MAX).max(1)
    }
}

/// Microseconds since 1970.
pub(crate) fn since_epoch_us(at: SystemTime) -> u64 {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// At most [`MAX_TEXT`] bytes of a text, cut between characters.
pub(crate) fn bounded(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_TEXT)).unwrap_or_default()
}

/// Takes spans that have ended. Called on the way of a request: must neither wait nor grow without bound.
pub trait Recorder: Send + Sync + 'static {
    /// Takes a span.
    fn record(&self, span: &Arc<Span>);
}
