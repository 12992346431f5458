//! Spans to a Zipkin collector, through the OpenTelemetry pipeline.
//!
//! A bounded queue and one task: whatever the collector does, no call waits and memory stays bounded. What does not fit is
//! dropped and counted; what cannot be sent is tried again with back-off, then counted as failed.

mod client;
mod convert;
mod export;
#[cfg(test)]
mod tests;
mod worker;

use super::span::{Recorder, Span};
use super::stats::SpanStats;
use export::Exporter;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

/// Spans that wait to be sent: some 5 MB.
pub const QUEUE: usize = 10_000;

/// Why a collector's address cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{url:?} is no address of a Zipkin collector: {reason}")]
pub struct BadUrl {
    url: String,
    reason: String,
}

/// The way to one collector.
#[derive(Debug)]
pub struct Zipkin {
    queue: mpsc::Sender<Arc<Span>>,
    stop: watch::Sender<Option<Instant>>,
    task: Mutex<Option<JoinHandle<()>>>,
    stats: Arc<SpanStats>,
}

impl Zipkin {
    /// Starts the task that sends to `http://host:9411`, with or without `/api/v2/spans`. Call it inside a runtime.
    ///
    /// # Errors
    /// When `url` is not of that form.
    pub fn start(url: &str, stats: Arc<SpanStats>) -> Result<Arc<Self>, BadUrl> {
        let exporter = Exporter::new(url).map_err(|reason| BadUrl { url: url.to_owned(), reason })?;
        Ok(Self::with(exporter, stats, QUEUE))
    }

    fn with(sink: impl worker::Sink, stats: Arc<SpanStats>, room: usize) -> Arc<Self> {
        let (queue, spans) = mpsc::channel(room);
        let (stop, stopped) = watch::channel(None);
        let task = tokio::spawn(worker::run(spans, sink, Arc::clone(&stats), stopped));
        Arc::new(Self { queue, stop, task: Mutex::new(Some(task)), stats })
    }

    /// Sends what is queued, until the deadline; the rest is counted as dropped. Spans that end later are dropped too.
    pub async fn shutdown(&self, deadline: Instant) {
        self.stop.send_replace(Some(deadline));
        let task = self.task.lock().take();
        if let Some(mut task) = task
            && timeout_at(deadline + worker::LAST, &mut task).await.is_err()
        {
            task.abort();
        }
    }
}

impl Recorder for Zipkin {
    fn record(&self, span: &Arc<Span>) {
        if self.queue.try_send(Arc::clone(span)).is_err() {
            self.stats.dropped.add_one();
        }
    }
}
