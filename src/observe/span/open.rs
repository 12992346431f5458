//! A span that goes on.

use super::record::{Kind, MAX_NOTES, MAX_TAGS, MAX_TEXT, Span, bounded};
use super::{Inner, ids};
use muxgate_rpc::{Failure, Reply, Response};
use muxgate_wire::mux::context::TraceContext;
use std::fmt::{Display, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// A span that has begun. Not recorded, it is empty, and every method returns at once without formatting or allocating.
/// Dropped before [`OpenSpan::finish`], the span ends as cancelled.
#[derive(Debug, Default)]
#[must_use = "a span that is dropped at once ends as cancelled"]
pub struct OpenSpan(Option<Box<Live>>);

#[derive(Debug)]
struct Live {
    tracer: Arc<Inner>,
    begun: Instant,
    span: Span,
}

impl OpenSpan {
    /// A span that nobody will see.
    pub(super) fn none() -> Self {
        Self(None)
    }

    pub(super) fn begin(
        tracer: &Arc<Inner>,
        trace: &TraceContext,
        kind: Kind,
        shared: bool,
        begun: Instant,
    ) -> Self {
        let span = Span {
            trace_id_high: trace.trace_id_high,
            trace_id: trace.trace_id,
            id: trace.span_id,
            parent: ids::parent(trace),
            kind,
            shared,
            sampled: ids::decision(trace.flags) == Some(true),
            debug: ids::is_debug(trace.flags),
            name: String::new(),
            start: wall(begun),
            duration: Duration::ZERO,
            service: Arc::clone(&tracer.service),
            remote: None,
            remote_service: None,
            tags: Vec::new(),
            notes: Vec::new(),
            error: None,
        };
        Self(Some(Box::new(Live { tracer: Arc::clone(tracer), begun, span })))
    }

    /// Whether the span is recorded: ask before preparing what only a span needs.
    pub fn is_recording(&self) -> bool {
        self.0.is_some()
    }

    /// Names the span after the method. Outside input: what is not UTF-8 is replaced, what is too long is cut.
    pub fn method(&mut self, name: &[u8]) {
        if let Some(live) = &mut self.0 {
            let name = name.get(..MAX_TEXT).unwrap_or(name);
            live.span.name = bounded(&String::from_utf8_lossy(name)).to_owned();
        }
    }

    /// The other side's address.
    pub fn remote(&mut self, address: SocketAddr) {
        if let Some(live) = &mut self.0 {
            live.span.remote = Some(address);
        }
    }

    /// The other side's service name: the caller's client id, or the path or bound id that is called.
    pub fn remote_service(&mut self, name: &str) {
        if let Some(live) = &mut self.0 {
            live.span.remote_service = Some(bounded(name).to_owned());
        }
    }

    /// Adds a fact (see [`super::tags`] for keys); above [`MAX_TAGS`] nothing is added.
    pub fn tag(&mut self, key: &'static str, value: impl Display) {
        if let Some(live) = &mut self.0 {
            live.tag(key, &value);
        }
    }

    /// Adds a moment, now; above [`MAX_NOTES`] nothing is added.
    pub fn note(&mut self, text: &str) {
        if let Some(live) = &mut self.0
            && live.span.notes.len() < MAX_NOTES
        {
            let at = live.span.start + live.begun.elapsed();
            live.span.notes.push((at, bounded(text).to_owned()));
        }
    }

    /// Ends the span with what became of the call. A failure and every exception are errors (BC-06).
    pub fn finish(mut self, result: &Result<Response, Failure>) {
        if let Some(mut live) = self.0.take() {
            live.outcome(result);
            live.end();
        }
    }
}

impl Drop for OpenSpan {
    fn drop(&mut self) {
        if let Some(mut live) = self.0.take() {
            live.span.error = Some("cancelled".to_owned());
            live.end();
        }
    }
}

impl Live {
    fn outcome(&mut self, result: &Result<Response, Failure>) {
        match result {
            Err(failure) => {
                self.span.error = Some(text(&format_args!("{}: {failure}", failure.why().name())))
            }
            Ok(Response { reply: Reply::Declared(field), .. }) => {
                self.tag(super::tags::EXCEPTION, &format_args!("declared, field {field}"));
                self.span.error = Some(text(&format_args!("declared exception (field {field})")));
            }
            Ok(Response { reply: Reply::Application(kind), .. }) => {
                self.tag(super::tags::EXCEPTION, &format_args!("{kind:?}"));
                self.span.error = Some(text(&format_args!("application exception ({kind:?})")));
            }
            Ok(_) => {}
        }
    }

    fn tag(&mut self, key: &'static str, value: &dyn Display) {
        if self.span.tags.len() < MAX_TAGS {
            self.span.tags.push((key, text(value)));
        }
    }

    fn end(mut self: Box<Self>) {
        self.span.duration = self.begun.elapsed();
        let Live { tracer, span, .. } = *self;
        tracer.record(span);
    }
}

/// The wall clock's time at a moment of the steady clock: read once for each span, so that a clock that is set anew does
/// not bend durations.
fn wall(at: Instant) -> SystemTime {
    let now = SystemTime::now();
    now.checked_sub(at.elapsed()).unwrap_or(now)
}

/// Writes no more than [`MAX_TEXT`] bytes.
fn text(value: &dyn Display) -> String {
    struct Short(String);
    impl Write for Short {
        fn write_str(&mut self, part: &str) -> std::fmt::Result {
            let room = MAX_TEXT.saturating_sub(self.0.len());
            let fits = part.get(..part.floor_char_boundary(room)).unwrap_or_default();
            self.0.push_str(fits);
            if fits.len() < part.len() { Err(std::fmt::Error) } else { Ok(()) }
        }
    }
    let mut short = Short(String::new());
    // An error says that the text was cut.
    let _cut = write!(short, "{value}");
    short.0
}
