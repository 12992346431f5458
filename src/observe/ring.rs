//! The last traces, for the admin page.

use super::span::{Recorder, Span};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// Traces kept.
pub const TRACES: usize = 100;
/// Spans kept of each trace: the gateway makes two a call, and one more each attempt.
pub const SPANS: usize = 50;

/// The last traces, oldest first. Memory is bounded: traces x spans x the size of a span, mostly under 3 MB.
#[derive(Debug)]
pub struct Ring {
    traces: usize,
    spans: usize,
    kept: Mutex<VecDeque<Trace>>,
}

/// Spans of one trace, in the order in which they ended.
#[derive(Clone, Debug)]
pub struct Trace {
    key: (u64, u64),
    /// The spans.
    pub spans: Vec<Arc<Span>>,
    /// Spans for which there was no room.
    pub missing: u64,
}

impl Ring {
    /// A ring of so many traces with so many spans each.
    pub fn new(traces: usize, spans: usize) -> Arc<Self> {
        Arc::new(Self { traces: traces.max(1), spans: spans.max(1), kept: Mutex::default() })
    }

    /// What is kept, newest first.
    pub fn traces(&self) -> Vec<Trace> {
        self.kept.lock().iter().rev().cloned().collect()
    }
}

impl Recorder for Ring {
    fn record(&self, span: &Arc<Span>) {
        let key = (span.trace_id_high.unwrap_or(0), span.trace_id);
        let mut kept = self.kept.lock();
        match kept.iter_mut().rev().find(|trace| trace.key == key) {
            Some(trace) if trace.spans.len() < self.spans => trace.spans.push(Arc::clone(span)),
            Some(trace) => trace.missing += 1,
            None => {
                if kept.len() >= self.traces {
                    kept.pop_front();
                }
                kept.push_back(Trace { key, spans: vec![Arc::clone(span)], missing: 0 });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::span::{Settings, Tracer};
    use muxgate_rpc::{Context, Response};
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn the_last_traces_are_kept_within_bounds() {
        let ring = Ring::new(2, 3);
        let settings = Settings { sample_rate: Some(1.0), ..Settings::default() };
        let tracer =
            Tracer::new(&settings, None, Some(Arc::clone(&ring) as Arc<dyn Recorder>), Arc::default());
        for _ in 0..3 {
            let mut ctx = Context::default();
            let server = tracer.server(&mut ctx, Instant::now(), None, "in");
            for _ in 0..3 {
                tracer.client(ctx.trace, true, Instant::now()).1.finish(&Ok(Response::nothing()));
            }
            server.finish(&Ok(Response::nothing()));
        }
        let traces = ring.traces();
        assert_eq!(traces.len(), 2);
        assert!(traces.iter().all(|trace| trace.spans.len() == 3 && trace.missing == 1));
    }
}
