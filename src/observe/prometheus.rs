//! The registry as Prometheus text (version 0.0.4). Library: `prometheus-client`, which names, escapes and orders.

use super::stats::exceptions::TYPES;
use super::stats::latency::{BOUNDS, Snapshot};
use super::stats::{
    Calls, CertificateStats, Counter, DiscoveryStats, EndpointStats, ListenerStats, Registry, RouteStats,
    TableStats, Totals,
};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, prometheus_text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use std::fmt::Error;
use std::sync::Arc;

#[cfg(test)]
mod tests;

pub use prometheus_text::CONTENT_TYPE;

/// Writes all series that live now.
///
/// # Errors
/// Never, as far as is known: the writer is a string.
pub fn text(registry: &Arc<Registry>) -> Result<String, Error> {
    let mut families = prometheus_client::registry::Registry::default();
    families.register_collector(Box::new(Series(Arc::clone(registry))));
    let mut out = String::new();
    prometheus_text::encode(&mut out, &families)?;
    Ok(out)
}

#[derive(Debug)]
struct Series(Arc<Registry>);

impl Collector for Series {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let mut out = Out(encoder);
        listeners(&mut out, &self.0.listeners())?;
        routes(&mut out, &self.0.routes())?;
        endpoints(&mut out, &self.0.endpoints())?;
        discoveries(&mut out, &self.0.discoveries())?;
        let spans = [self.0.spans()];
        let none = |_: &_| Vec::new();
        out.counter("muxgate_spans_recorded", "Sampled spans that ended", &spans, none, |s| {
            s.recorded.get()
        })?;
        out.counter("muxgate_spans_dropped", "Spans lost to a full queue", &spans, none, |s| {
            s.dropped.get()
        })?;
        out.counter("muxgate_spans_exported", "Spans the collector took", &spans, none, |s| {
            s.exported.get()
        })?;
        let help = "Attempts to send spans that failed";
        out.counter("muxgate_spans_failed_attempts", help, &spans, none, |s| s.retries.get())?;
        out.counter("muxgate_spans_failed", "Spans the collector did not take", &spans, none, |s| {
            s.failed.get()
        })?;
        base(&mut out, self.0.base())?;
        certificates(&mut out, self.0.certificates())
    }
}

fn base(out: &mut Out<'_>, stats: Option<&Arc<TableStats>>) -> Result<(), Error> {
    let (all, none) = (stats.into_iter().collect::<Vec<_>>(), |_: &_| Vec::new());
    let ms = |time: std::time::Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    let help = "Milliseconds since a store of the table was heard of";
    out.gauge("muxgate_table_age_ms", help, &all, none, |s| s.age().map(ms))?;
    let help = "Milliseconds in which no store of the table could be followed; 0 while one is";
    out.gauge("muxgate_table_outage_ms", help, &all, none, |s| Some(ms(s.outage())))?;
    let help = "Times that another table was taken into use";
    out.counter("muxgate_table_changes", help, &all, none, |s| s.changes.get())
}

fn certificates(out: &mut Out<'_>, stats: &Arc<CertificateStats>) -> Result<(), Error> {
    let (all, none) = ([stats], |_: &_| Vec::new());
    let help = "Times that changed certificates were taken into use";
    out.counter("muxgate_certificates_reloaded", help, &all, none, |s| s.reloaded.get())?;
    let help = "Times that changed certificates made no sense and the old ones stayed";
    out.counter("muxgate_certificates_refused", help, &all, none, |s| s.refused.get())
}

fn discoveries(out: &mut Out<'_>, all: &[Arc<DiscoveryStats>]) -> Result<(), Error> {
    let labels = |s: &Arc<DiscoveryStats>| vec![("namer", s.label.to_string())];
    let help = "What is watched in discovery";
    out.gauge("muxgate_discovery_subjects", help, all, labels, |s| Some(s.subjects.get()))?;
    let help = "What is watched and cannot be asked now";
    out.gauge("muxgate_discovery_outages", help, all, labels, |s| Some(s.outages.get()))?;
    let help = "Milliseconds since the source of the oldest answer in use was heard of";
    let age =
        |s: &Arc<DiscoveryStats>| s.oldest().map(|age| i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
    out.gauge("muxgate_discovery_oldest_answer_ms", help, all, labels, age)?;
    type Read = fn(&DiscoveryStats) -> &Counter;
    let counters: [(&str, &str, Read); 5] = [
        ("failures", "Times that a source could not go on", |s| &s.failures),
        ("resyncs", "Times that all was asked for anew without need", |s| &s.resyncs),
        ("checks", "Times that a silent source was asked whether it is there", |s| &s.checks),
        ("doubts", "Names that lost their members over an outage, which was doubted", |s| &s.doubts),
        ("restored", "Answers taken from disk", |s| &s.restored),
    ];
    counters.into_iter().try_for_each(|(name, help, read)| {
        out.counter(&format!("muxgate_discovery_{name}"), help, all, labels, |s| read(s).get())
    })
}

fn listeners(out: &mut Out<'_>, all: &[Arc<ListenerStats>]) -> Result<(), Error> {
    let labels = |s: &Arc<ListenerStats>| vec![("listener", s.label.to_string())];
    out.gauge("muxgate_listener_open_connections", "Connections that are open", all, labels, |s| {
        Some(s.open.get())
    })?;
    out.counter("muxgate_listener_connections", "Connections taken", all, labels, |s| s.accepted.get())?;
    let help = "Connections closed at once: too many were open";
    out.counter("muxgate_listener_refused_connections", help, all, labels, |s| s.refused.get())?;
    let causes = |s: &Arc<ListenerStats>| s.decode_errors.get();
    out.by("muxgate_listener_decode_errors", "Bytes that could not be read", "cause", all, labels, causes)?;
    let causes = |s: &Arc<ListenerStats>| s.limited.get();
    let help = "Peers refused or cut off for a limit";
    out.by("muxgate_listener_limited", help, "cause", all, labels, causes)?;
    let causes = |s: &Arc<ListenerStats>| s.tls_failures.get();
    out.by("muxgate_listener_tls_failures", TLS_FAILURES, "cause", all, labels, causes)?;
    let results = |s: &Arc<ListenerStats>| s.announcements.get();
    let help = "Times that an announcement was made, failed, was lost, or ended";
    out.by("muxgate_listener_announcements", help, "result", all, labels, results)?;
    calls(out, ["muxgate_listener", "Calls that came in"], all, labels, |s| &s.calls)
}

fn routes(out: &mut Out<'_>, all: &[Arc<RouteStats>]) -> Result<(), Error> {
    let labels = |s: &Arc<RouteStats>| vec![("route", s.label.to_string())];
    calls(out, ["muxgate_route", "Calls as their callers see them"], all, labels, |s| &s.calls)?;
    let help = "Attempts beyond the first of a call, paid by the retry budget";
    out.counter("muxgate_route_retries", help, all, labels, |s| s.retries.get())?;
    let help = "Attempts that the retry budget did not pay for";
    out.counter("muxgate_route_budget_exhausted", help, all, labels, |s| s.budget_exhausted.get())?;
    let balance =
        |s: &Arc<RouteStats>| s.budget_balance().map(|left| i64::try_from(left).unwrap_or(i64::MAX));
    out.gauge(
        "muxgate_route_budget_balance",
        "Attempts that the retry budget would pay for",
        all,
        labels,
        balance,
    )
}

const TLS_FAILURES: &str = "TLS handshakes that failed";

fn endpoints(out: &mut Out<'_>, all: &[Arc<EndpointStats>]) -> Result<(), Error> {
    let labels = |s: &Arc<EndpointStats>| {
        let address = s.address.map_or_else(|| super::stats::OTHER.to_owned(), |address| address.to_string());
        vec![("cluster", s.cluster.to_string()), ("endpoint", address)]
    };
    calls(out, ["muxgate_endpoint", "Attempts"], all, labels, |s| &s.calls)?;
    out.counter("muxgate_endpoint_connects", "Connections made", all, labels, |s| s.connects.get())?;
    let help = "Connections that wait for a call";
    out.gauge("muxgate_endpoint_idle_connections", help, all, labels, |s| Some(s.idle.get()))?;
    out.counter("muxgate_endpoint_removals", "Times marked dead", all, labels, |s| s.removals.get())?;
    out.counter("muxgate_endpoint_revivals", "Times back to life", all, labels, |s| s.revivals.get())?;
    out.counter("muxgate_endpoint_probes", "Calls that try a dead endpoint", all, labels, |s| {
        s.probes.get()
    })?;
    out.counter("muxgate_endpoint_discarded", "Calls the peer was told to forget", all, labels, |s| {
        s.discarded.get()
    })?;
    let help = "Calls whose reply will be thrown away";
    out.counter("muxgate_endpoint_abandoned", help, all, labels, |s| s.abandoned.get())?;
    let causes = |s: &Arc<EndpointStats>| s.tls_failures.get();
    out.by("muxgate_endpoint_tls_failures", TLS_FAILURES, "cause", all, labels, causes)
}

/// The families that all calls have.
fn calls<S>(
    out: &mut Out<'_>,
    [prefix, what]: [&str; 2],
    all: &[S],
    labels: impl Fn(&S) -> Labels,
    calls: impl Fn(&S) -> &Calls,
) -> Result<(), Error> {
    let read: Vec<(Labels, Totals, Snapshot)> =
        all.iter().map(|s| (labels(s), calls(s).totals(), calls(s).latency())).collect();
    let labels = |(labels, ..): &(Labels, Totals, Snapshot)| labels.clone();
    let named = |name: &str| format!("{prefix}_{name}");
    out.counter(&named("requests"), what, &read, labels, |(_, t, _)| t.requests)?;
    out.counter(&named("successes"), "Answered with a result", &read, labels, |(_, t, _)| t.success)?;
    let causes = |(_, t, _): &(_, Totals, _)| t.failures().filter(|(_, count)| *count > 0).collect();
    out.by(&named("failures"), "Failed", "cause", &read, labels, causes)?;
    let kinds = |(_, t, _): &(_, Totals, _)| {
        vec![("declared", t.declared + t.declared_failed), ("application", t.application + t.ignored)]
    };
    out.by(&named("exceptions"), "Answered with an exception", "kind", &read, labels, kinds)?;
    let types = |(_, t, _): &(_, Totals, _)| {
        TYPES.into_iter().zip(t.exceptions).filter(|(_, count)| *count > 0).collect()
    };
    let help = "Answered with a TApplicationException, by its type";
    out.by(&named("application_exceptions"), help, "type", &read, labels, types)?;
    let in_flight = |(_, t, _): &(_, Totals, _)| i64::try_from(t.in_flight()).ok();
    out.gauge(&named("in_flight_requests"), "Begun and not ended", &read, labels, in_flight)?;
    out.histogram(&named("latency"), "Time from begin to end", &read, labels, |(_, _, latency)| latency)
}

type Labels = Vec<(&'static str, String)>;

/// Writes families; one without series is left out.
struct Out<'a>(DescriptorEncoder<'a>);

impl Out<'_> {
    fn counter<S>(
        &mut self,
        name: &str,
        help: &str,
        all: &[S],
        labels: impl Fn(&S) -> Labels,
        value: impl Fn(&S) -> u64,
    ) -> Result<(), Error> {
        self.counters(name, help, all.iter().map(|series| (labels(series), value(series))))
    }

    /// A counter with one label more than its series.
    fn by<S>(
        &mut self,
        name: &str,
        help: &str,
        label: &'static str,
        all: &[S],
        labels: impl Fn(&S) -> Labels,
        values: impl Fn(&S) -> Vec<(&'static str, u64)>,
    ) -> Result<(), Error> {
        let rows = all.iter().flat_map(|series| {
            let base = labels(series);
            values(series).into_iter().map(move |(word, value)| {
                let mut labels = base.clone();
                labels.push((label, word.to_owned()));
                (labels, value)
            })
        });
        self.counters(name, help, rows)
    }

    fn counters(
        &mut self,
        name: &str,
        help: &str,
        rows: impl Iterator<Item = (Labels, u64)>,
    ) -> Result<(), Error> {
        let mut rows = rows.peekable();
        if rows.peek().is_none() {
            return Ok(());
        }
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in rows {
            family.encode_family(&labels)?.encode_counter::<Labels, u64, u64>(&value, None)?;
        }
        Ok(())
    }

    fn gauge<S>(
        &mut self,
        name: &str,
        help: &str,
        all: &[S],
        labels: impl Fn(&S) -> Labels,
        value: impl Fn(&S) -> Option<i64>,
    ) -> Result<(), Error> {
        let mut rows = all.iter().filter_map(|series| Some((labels(series), value(series)?))).peekable();
        if rows.peek().is_none() {
            return Ok(());
        }
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in rows {
            family.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    fn histogram<S>(
        &mut self,
        name: &str,
        help: &str,
        all: &[S],
        labels: impl Fn(&S) -> Labels,
        latency: impl Fn(&S) -> &Snapshot,
    ) -> Result<(), Error> {
        if all.is_empty() {
            return Ok(());
        }
        let mut family = self.0.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Histogram)?;
        for series in all {
            let latency = latency(series);
            let bounds = BOUNDS.iter().map(|ns| *ns as f64 / 1e9).chain([f64::INFINITY]);
            let buckets: Vec<(f64, u64)> = bounds.zip(latency.per_bound()).collect();
            let sum = latency.sum().as_secs_f64();
            let labels = labels(series);
            family.encode_family(&labels)?.encode_histogram::<Labels>(
                sum,
                latency.count(),
                &buckets,
                None,
            )?;
        }
        Ok(())
    }
}
