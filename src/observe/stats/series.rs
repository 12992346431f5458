//! The series themselves: one struct for each kind of thing that is counted.

use super::calls::{Call, Calls};
use muxgate_rpc::Purse;
use muxgate_rpc::purse::Ledger;
use muxgate_rpc::tls::Reloading;
use parking_lot::Mutex;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use tokio::time::Instant;

/// A number that only rises.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Counts one more.
    pub fn add_one(&self) {
        self.add(1);
    }

    /// Counts `n` more.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }

    /// The number now.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A number that rises and falls.
#[derive(Debug, Default)]
pub struct Gauge(AtomicI64);

impl Gauge {
    /// Adds, or takes away.
    pub fn add(&self, n: i64) {
        self.0.fetch_add(n, Relaxed);
    }

    /// The number now.
    pub fn get(&self) -> i64 {
        self.0.load(Relaxed)
    }
}

/// Kinds of decode errors kept apart for one listener: causes are words in our code, so this is never reached.
const MAX_CAUSES: usize = 32;

/// Counters by cause: a fixed word of our code such as `frame` or `slow_reader`.
#[derive(Debug, Default)]
pub struct Causes(Mutex<Vec<(&'static str, u64)>>);

impl Causes {
    /// Counts one.
    pub fn add_one(&self, cause: &'static str) {
        let mut causes = self.0.lock();
        if let Some((_, count)) = causes.iter_mut().find(|(known, _)| *known == cause) {
            *count += 1;
        } else if causes.len() < MAX_CAUSES {
            causes.push((cause, 1));
        }
    }

    /// The counts.
    pub fn get(&self) -> Vec<(&'static str, u64)> {
        self.0.lock().clone()
    }
}

/// Numbers of one listener.
#[derive(Debug)]
pub struct ListenerStats {
    /// The listener's name.
    pub label: Arc<str>,
    /// Every call that came in, also those refused at once.
    pub calls: Calls,
    /// Connections that are open.
    pub open: Gauge,
    /// Connections taken since the start.
    pub accepted: Counter,
    /// Connections closed at once because too many were open.
    pub refused: Counter,
    /// Bytes that could not be read.
    pub decode_errors: Causes,
    /// Peers that were refused or cut off for a limit.
    pub limited: Causes,
    /// TLS handshakes that failed, and connections in clear that had to begin with one.
    pub tls_failures: Causes,
    /// What became of its announcements: `joined`, `failed`, `lost`, `left`.
    pub announcements: Causes,
}

impl ListenerStats {
    pub(super) fn new(label: Arc<str>) -> Self {
        Self {
            label,
            calls: Calls::default(),
            open: Gauge::default(),
            accepted: Counter::default(),
            refused: Counter::default(),
            decode_errors: Causes::default(),
            limited: Causes::default(),
            tls_failures: Causes::default(),
            announcements: Causes::default(),
        }
    }

    /// Counts a connection as open for as long as the guard lives.
    pub fn connection(self: &Arc<Self>) -> OpenConnection {
        self.accepted.add_one();
        self.open.add(1);
        OpenConnection(Arc::clone(self))
    }

    /// Counts a call that begins.
    pub fn begin(&self, now: Instant) -> Call<'_> {
        self.calls.begin(now)
    }
}

/// A connection of a listener, open until this is dropped.
#[derive(Debug)]
pub struct OpenConnection(Arc<ListenerStats>);

impl Deref for OpenConnection {
    type Target = ListenerStats;

    fn deref(&self) -> &ListenerStats {
        &self.0
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.open.add(-1);
    }
}

/// Numbers of one route: the caller's truth, after all retries.
#[derive(Debug)]
pub struct RouteStats {
    /// The name's path, such as `/svc/users`.
    pub label: Arc<str>,
    /// The calls.
    pub calls: Calls,
    /// Attempts beyond the first of a call, paid by the purse.
    pub retries: Counter,
    /// Attempts that the purse did not pay for.
    pub budget_exhausted: Counter,
    purse: Mutex<Weak<Purse>>,
}

impl Ledger for RouteStats {
    fn paid(&self) {
        self.retries.add_one();
    }

    fn refused(&self) {
        self.budget_exhausted.add_one();
    }
}

impl RouteStats {
    pub(super) fn new(label: Arc<str>) -> Self {
        Self {
            label,
            calls: Calls::default(),
            retries: Counter::default(),
            budget_exhausted: Counter::default(),
            purse: Mutex::new(Weak::new()),
        }
    }

    /// Shows this purse's balance from now on. Of several routes that share the series, the newest is shown.
    pub fn watch_purse(&self, purse: &Arc<Purse>) {
        *self.purse.lock() = Arc::downgrade(purse);
    }

    /// Whole retries left in the purse, while there is one.
    pub fn budget_balance(&self) -> Option<u64> {
        let purse = self.purse.lock().upgrade();
        purse.map(|purse| purse.balance())
    }

    /// Counts a call that begins.
    pub fn begin(&self, now: Instant) -> Call<'_> {
        self.calls.begin(now)
    }
}

/// Numbers of one endpoint of one cluster; its calls are single attempts.
#[derive(Debug)]
pub struct EndpointStats {
    /// The bound id of the cluster.
    pub cluster: Arc<str>,
    /// The address; none in the series that all without room share.
    pub address: Option<SocketAddr>,
    /// The attempts.
    pub calls: Calls,
    /// Connections made.
    pub connects: Counter,
    /// Connections that wait for a call.
    pub idle: Gauge,
    /// Times that accrual marked the endpoint dead.
    pub removals: Counter,
    /// Times that it came back.
    pub revivals: Counter,
    /// Calls let through to see whether it is back.
    pub probes: Counter,
    /// Calls that the peer was told to forget (Tdiscarded).
    pub discarded: Counter,
    /// Calls whose reply is awaited only to be thrown away.
    pub abandoned: Counter,
    /// TLS handshakes that failed.
    pub tls_failures: Causes,
}

impl EndpointStats {
    pub(super) fn new(cluster: Arc<str>, address: Option<SocketAddr>) -> Self {
        Self {
            cluster,
            address,
            calls: Calls::default(),
            connects: Counter::default(),
            idle: Gauge::default(),
            removals: Counter::default(),
            revivals: Counter::default(),
            probes: Counter::default(),
            discarded: Counter::default(),
            abandoned: Counter::default(),
            tls_failures: Causes::default(),
        }
    }

    /// Counts an attempt that begins.
    pub fn begin(&self, now: Instant) -> Call<'_> {
        self.calls.begin(now)
    }
}

/// What became of certificates that changed on disk.
#[derive(Debug, Default)]
pub struct CertificateStats {
    /// Times that new ones were taken into use.
    pub reloaded: Counter,
    /// Times that new ones made no sense.
    pub refused: Counter,
}

impl Reloading for CertificateStats {
    fn reloaded(&self) {
        self.reloaded.add_one();
    }

    fn refused(&self) {
        self.refused.add_one();
    }
}

/// What became of spans.
#[derive(Debug, Default)]
pub struct SpanStats {
    /// Spans that ended and were sampled.
    pub recorded: Counter,
    /// Spans thrown away because the queue was full or the time to flush was over.
    pub dropped: Counter,
    /// Spans that the collector took.
    pub exported: Counter,
    /// Attempts to send that failed; each is made again.
    pub retries: Counter,
    /// Spans that the collector refused, or that could not be sent in all their attempts.
    pub failed: Counter,
}
