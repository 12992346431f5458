//! Batches, attempts, back-off, flush.

use crate::observe::span::Span;
use crate::observe::stats::SpanStats;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// Most spans in one message: some 250 KB of JSON before gzip.
const BATCH: usize = 500;
/// How long a batch waits for more spans.
const LINGER: Duration = Duration::from_secs(1);
/// First wait after a failed attempt; doubles, half of it at random.
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// Longest wait between attempts.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Attempts for one batch, over some four minutes: then newer spans are worth more.
const ATTEMPTS: u32 = 15;
/// Time for the task to notice that its deadline is over.
pub(super) const LAST: Duration = Duration::from_millis(100);

/// What the collector said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// It has the spans.
    Taken,
    /// It will never take them.
    Refused,
    /// No answer, or one that may be better another time.
    Failed,
}

/// Sends one batch, within a time limit of its own.
pub(super) trait Sink: Send + Sync + 'static {
    fn send(&self, batch: &[Arc<Span>]) -> impl Future<Output = Sent> + Send;
}

/// Sends until told to stop, then until the deadline.
pub(super) async fn run(
    mut spans: mpsc::Receiver<Arc<Span>>,
    sink: impl Sink,
    stats: Arc<SpanStats>,
    mut stop: watch::Receiver<Option<Instant>>,
) {
    let mut batch = Vec::with_capacity(BATCH);
    let mut away = false;
    let deadline = loop {
        tokio::select! {
            filled = fill(&mut spans, &mut batch) => if !filled { return },
            deadline = stopped(&mut stop) => break deadline,
        }
        tokio::select! {
            () = send(&sink, &batch, &stats, &mut away) => batch.clear(),
            deadline = stopped(&mut stop) => break deadline,
        }
    };
    spans.close();
    if timeout_at(deadline, flush(&mut spans, &mut batch, &sink, &stats, &mut away)).await.is_err() {
        let lost = batch.len() + spans.len();
        tracing::warn!(spans = lost, "spans lost: the collector did not take them before the end");
        stats.dropped.add(lost as u64);
    }
}

async fn stopped(stop: &mut watch::Receiver<Option<Instant>>) -> Instant {
    match stop.wait_for(Option::is_some).await {
        Ok(deadline) => deadline.unwrap_or_else(Instant::now),
        Err(_) => Instant::now(),
    }
}

/// Waits for a first span, then a little for more; false when no more will come. Loses nothing when it is dropped.
async fn fill(spans: &mut mpsc::Receiver<Arc<Span>>, batch: &mut Vec<Arc<Span>>) -> bool {
    if spans.recv_many(batch, BATCH).await == 0 {
        return false;
    }
    let more =
        async { while batch.len() < BATCH && spans.recv_many(batch, BATCH - batch.len()).await > 0 {} };
    // Time over only means that the batch goes as it is.
    let _full = timeout(LINGER, more).await;
    true
}

/// Sends until the batch is taken or given up. `away` says whether the collector failed last: only changes are logged.
async fn send(sink: &impl Sink, batch: &[Arc<Span>], stats: &SpanStats, away: &mut bool) {
    let mut wait = FIRST_WAIT;
    for _ in 0..ATTEMPTS {
        match sink.send(batch).await {
            Sent::Taken => {
                if std::mem::take(away) {
                    tracing::info!("the collector takes spans again");
                }
                return stats.exported.add(batch.len() as u64);
            }
            Sent::Refused => break,
            Sent::Failed => {
                stats.retries.add_one();
                if !std::mem::replace(away, true) {
                    tracing::warn!(
                        "the collector does not take spans; they wait, and are dropped when too many do"
                    );
                }
            }
        }
        sleep(wait.mul_f64(rand::random_range(0.5..1.0))).await;
        wait = (wait * 2).min(LONGEST_WAIT);
    }
    tracing::warn!(spans = batch.len(), "spans given up: the collector did not take them");
    stats.failed.add(batch.len() as u64);
}

async fn flush(
    spans: &mut mpsc::Receiver<Arc<Span>>,
    batch: &mut Vec<Arc<Span>>,
    sink: &impl Sink,
    stats: &SpanStats,
    away: &mut bool,
) {
    while !batch.is_empty() || spans.recv_many(batch, BATCH).await > 0 {
        send(sink, batch, stats, away).await;
        batch.clear();
    }
}
