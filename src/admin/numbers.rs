//! All numbers as JSON: whole counts since the start, from which a reader makes rates and quantiles of its own window.

use crate::observe::stats::latency::Snapshot;
use crate::observe::stats::{Calls, DiscoveryStats, EndpointStats, ListenerStats, Registry, RouteStats};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Everything.
pub fn all(registry: &Registry) -> Value {
    let spans = registry.spans();
    json!({
        "listeners": registry.listeners().iter().map(|s| listener(s)).collect::<Vec<_>>(),
        "routes": registry.routes().iter().map(|s| route(s)).collect::<Vec<_>>(),
        "endpoints": registry.endpoints().iter().map(|s| endpoint(s)).collect::<Vec<_>>(),
        "discoveries": registry.discoveries().iter().map(|s| discovery(s)).collect::<Vec<_>>(),
        "spans": {
            "recorded": spans.recorded.get(),
            "dropped": spans.dropped.get(),
            "exported": spans.exported.get(),
            "failed": spans.failed.get(),
        },
    })
}

fn listener(stats: &ListenerStats) -> Value {
    json!({
        "listener": &*stats.label,
        "connections": {
            "open": stats.open.get(),
            "total": stats.accepted.get(),
            "refused": stats.refused.get(),
        },
        "decode_errors": counts(stats.decode_errors.get().into_iter()),
        "limited": counts(stats.limited.get().into_iter()),
        "calls": calls(&stats.calls, false),
    })
}

fn discovery(stats: &DiscoveryStats) -> Value {
    json!({
        "namer": &*stats.label,
        "subjects": stats.subjects.get(),
        "outages": stats.outages.get(),
        "oldest_answer_ms": stats.oldest().map(|age| age.as_millis() as u64),
        "failures": stats.failures.get(),
        "resyncs": stats.resyncs.get(),
        "checks": stats.checks.get(),
        "doubts": stats.doubts.get(),
        "restored": stats.restored.get(),
    })
}

fn route(stats: &RouteStats) -> Value {
    json!({
        "route": &*stats.label,
        "calls": calls(&stats.calls, true),
        "retries": stats.retries.get(),
        "budget_exhausted": stats.budget_exhausted.get(),
        "budget_balance": stats.budget_balance(),
    })
}

fn endpoint(stats: &EndpointStats) -> Value {
    json!({
        "cluster": &*stats.cluster,
        "endpoint": stats.address,
        "calls": calls(&stats.calls, false),
        "connects": stats.connects.get(),
        "idle_connections": stats.idle.get(),
        "accrual": {
            "dead": stats.address.is_some() && stats.removals.get() > stats.revivals.get(),
            "removals": stats.removals.get(),
            "revivals": stats.revivals.get(),
            "probes": stats.probes.get(),
        },
        "discarded": stats.discarded.get(),
        "abandoned": stats.abandoned.get(),
    })
}

fn calls(calls: &Calls, with_buckets: bool) -> Value {
    let totals = calls.totals();
    json!({
        "requests": totals.requests,
        "success": totals.success,
        "failures": totals.failures_total(),
        "failures_by_cause": counts(totals.failures()),
        "exceptions": {
            "declared": totals.declared + totals.declared_failed,
            "application": totals.application + totals.ignored,
        },
        "in_flight": totals.in_flight(),
        "latency": latency(&calls.latency(), with_buckets),
    })
}

/// Times in us; buckets as pairs (upper edge, calls), the last edge null.
fn latency(latency: &Snapshot, with_buckets: bool) -> Value {
    let us = |time: Duration| time.as_nanos() as f64 / 1e3;
    let quantile = |q| latency.quantile(q).map(us);
    let mut out = json!({
        "count": latency.count(),
        "sum_us": us(latency.sum()),
        "p50_us": quantile(0.5),
        "p90_us": quantile(0.9),
        "p99_us": quantile(0.99),
        "p999_us": quantile(0.999),
    });
    if let (true, Some(out)) = (with_buckets, out.as_object_mut()) {
        out.insert(
            "buckets".to_owned(),
            latency.filled().map(|(edge, count)| json!([edge, count])).collect(),
        );
    }
    out
}

fn counts(rows: impl Iterator<Item = (&'static str, u64)>) -> Map<String, Value> {
    rows.filter(|(_, count)| *count > 0).map(|(word, count)| (word.to_owned(), count.into())).collect()
}
