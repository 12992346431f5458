//! The last traces as HTML: one fold for each trace, one bar for each span.

use super::html::{Esc, micros};
use crate::observe::ring::Trace;
use crate::observe::span::{Kind, Span, json};
use std::fmt::Write;
use std::sync::Arc;
use std::time::SystemTime;

/// Deepest indentation.
const DEEPEST: usize = 12;

/// The body of the page; None when no traces are kept.
pub fn body(traces: Option<&[Trace]>, now: SystemTime) -> String {
    let mut out = String::from("<h1>Traces</h1>\n");
    match traces {
        None => out.push_str("<p class=\"dim\">Traces are not kept: tracing is off.</p>\n"),
        Some([]) => out.push_str("<p class=\"dim\">No call has been recorded yet.</p>\n"),
        Some(traces) => {
            out.push_str("<p class=\"dim\">Sampled calls, and a few a second of the others, newest first. ");
            out.push_str("<a href=\"/traces.json\">As Zipkin JSON</a>. ");
            out.push_str("<i class=\"key server\"></i>called <i class=\"key client\"></i>calling <i class=\"key failed\"></i>failed</p>\n");
            for (at, one) in traces.iter().enumerate() {
                trace(&mut out, one, at == 0, now);
            }
        }
    }
    out
}

fn trace(out: &mut String, trace: &Trace, open: bool, now: SystemTime) {
    let rows = tree(&trace.spans);
    let (Some(first), Some(begin)) = (rows.first(), trace.spans.iter().map(|span| span.start_us()).min())
    else {
        return;
    };
    let ends = trace.spans.iter().map(|span| span.start_us().saturating_add(span.duration_us()));
    let total = ends.max().unwrap_or(begin).saturating_sub(begin).max(1);
    let ago = now.duration_since(first.1.start).unwrap_or_default();
    let failures = trace.spans.iter().filter(|span| span.error.is_some()).count();
    let verdict = match failures {
        0 => String::new(),
        _ if first.1.error.is_some() => "<span class=\"bad\">failed</span>".to_owned(),
        attempts => format!("<span>recovered from {attempts}</span>"),
    };
    // Writing to a string cannot fail, here and below.
    let _ok = writeln!(
        out,
        "<details class=\"trace\"{}><summary><b>{}</b><span class=\"num\">{}</span><span class=\"dim\">{} span{}</span>{}\
         <span class=\"dim\">{} ago</span><code>{}</code></summary>",
        if open { " open" } else { "" },
        Esc(name(first.1)),
        micros(total),
        trace.spans.len() as u64 + trace.missing,
        if trace.spans.len() == 1 { "" } else { "s" },
        verdict,
        micros(u64::try_from(ago.as_micros()).unwrap_or(u64::MAX)),
        first.1.trace_hex(),
    );
    rows.iter().for_each(|(depth, span)| row(out, *depth, span, begin, total));
    if trace.missing > 0 {
        let _ok = writeln!(out, "<p class=\"dim\">{} more spans were not kept.</p>", trace.missing);
    }
    out.push_str("</details>\n");
}

fn row(out: &mut String, depth: usize, span: &Span, begin: u64, total: u64) {
    let percent = |us: u64| us as f64 * 100.0 / total as f64;
    let left = percent(span.start_us().saturating_sub(begin)).min(99.5);
    let width = percent(span.duration_us()).clamp(0.5, 100.0 - left);
    let kind = json::kind(span.kind).to_ascii_lowercase();
    let failed = if span.error.is_some() { " failed" } else { "" };
    let to = match (&span.remote_service, span.remote) {
        (Some(name), _) => name.clone(),
        (None, Some(address)) => address.to_string(),
        (None, None) => String::new(),
    };
    let arrow = if span.kind == Kind::Server { "from" } else { "to" };
    let _ok = writeln!(
        out,
        "<details class=\"span\"><summary><span class=\"who\" style=\"padding-left:{}em\">{}<small>{arrow} {}</small></span>\
         <span class=\"lane\"><i class=\"bar {kind}{failed}\" style=\"left:{left:.2}%;width:{width:.2}%\"></i></span>\
         <span class=\"num\">{}</span></summary><dl>",
        depth.min(DEEPEST),
        Esc(name(span)),
        Esc(to),
        micros(span.duration_us()),
    );
    let mut fact = |key: &str, value: &str| {
        let _ok = write!(out, "<dt>{}</dt><dd>{}</dd>", Esc(key), Esc(value));
    };
    span.error.iter().for_each(|error| fact("error", error));
    fact("span", &format!("{:016x}{}", span.id, if span.shared { " (shared with the caller)" } else { "" }));
    span.parent.iter().for_each(|parent| fact("parent", &format!("{parent:016x}")));
    span.remote.iter().for_each(|address| fact("remote", &address.to_string()));
    span.tags.iter().for_each(|(key, value)| fact(key, value));
    for (at, text) in &span.notes {
        let after = at.duration_since(span.start).unwrap_or_default();
        fact(&format!("after {}", micros(u64::try_from(after.as_micros()).unwrap_or(u64::MAX))), text);
    }
    out.push_str("</dl></details>\n");
}

fn name(span: &Span) -> &str {
    if span.name.is_empty() { "(no method)" } else { &span.name }
}

/// Spans with their depth, parents before children. Ids are outside input: circles end, and every span comes once.
fn tree(spans: &[Arc<Span>]) -> Vec<(usize, &Span)> {
    let mut open: Vec<&Span> = spans.iter().map(AsRef::as_ref).collect();
    open.sort_by_key(|span| (span.start_us(), span.kind == Kind::Server));
    let mut rows = Vec::with_capacity(open.len());
    while !open.is_empty() {
        let root = open.iter().position(|span| !open.iter().any(|other| is_above(other, span))).unwrap_or(0);
        descend(&mut rows, &mut open, root, 0);
    }
    rows
}

fn descend<'a>(rows: &mut Vec<(usize, &'a Span)>, open: &mut Vec<&'a Span>, at: usize, depth: usize) {
    let span = open.remove(at);
    rows.push((depth, span));
    while let Some(child) = open.iter().position(|other| is_above(span, other)) {
        descend(rows, open, child, depth + 1);
    }
}

/// Whether `span` hangs below `above`: a shared server span below the client span with its id, any other below its parent.
fn is_above(above: &Span, span: &Span) -> bool {
    if std::ptr::eq(above, span) {
        return false;
    }
    let client_of =
        above.kind == Kind::Client && span.kind == Kind::Server && span.shared && above.id == span.id;
    let parent_of = above.kind == Kind::Server && span.kind == Kind::Client && span.parent == Some(above.id);
    client_of || parent_of
}
