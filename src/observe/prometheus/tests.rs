//! The text is read by a strict parser of our own (BC-20).

use super::*;
use crate::observe::stats::{Limits, Outcome};
use muxgate_rpc::{Purse, Why};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;

type Sample = (String, Vec<(String, String)>);

/// Reads text format 0.0.4; panics at whatever is not right.
fn parse(text: &str) -> BTreeMap<Sample, f64> {
    let mut samples = BTreeMap::new();
    let (mut types, mut helps) = (BTreeSet::new(), BTreeSet::new());
    let mut family: Option<(String, String)> = None;
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, _) = help.split_once(' ').expect("a help text");
            assert!(helps.insert(name.to_owned()), "help twice: {name}");
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').expect("a type");
            assert!(types.insert(name.to_owned()), "type twice: {name}");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(kind != "counter" || name.ends_with("_total"), "{line}");
            family = Some((name.to_owned(), kind.to_owned()));
        } else {
            let (name, labels, value) = sample(line);
            let (of, kind) = family.as_ref().expect("a type before its samples");
            let suffix = name.strip_prefix(of.as_str()).expect("a sample of the last family");
            let suffixes: &[&str] = if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            assert!(suffixes.contains(&suffix), "{line}");
            assert!(samples.insert((name, labels), value).is_none(), "series twice: {line}");
        }
    }
    samples
}

fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn sample(line: &str) -> (String, Vec<(String, String)>, f64) {
    let end = line.find(['{', ' ']).expect("a name ends");
    let name = &line[..end];
    assert!(is_name(name), "{line}");
    let (labels, rest) = match line[end..].strip_prefix('{') {
        None => (Vec::new(), &line[end..]),
        Some(rest) => labels(rest),
    };
    let value = rest.strip_prefix(' ').expect("a space before the value");
    (name.to_owned(), labels, value.parse().expect("a number and nothing after it"))
}

fn labels(mut rest: &str) -> (Vec<(String, String)>, &str) {
    let mut labels: Vec<(String, String)> = Vec::new();
    loop {
        let (name, after) = rest.split_once("=\"").expect("a label");
        assert!(is_name(name) && labels.iter().all(|(known, _)| known != name), "{name}");
        let (mut value, mut chars) = (String::new(), after.char_indices());
        let end = loop {
            match chars.next().expect("a closing quote") {
                (at, '"') => break at,
                (_, '\\') => match chars.next().expect("an escaped character").1 {
                    'n' => value.push('\n'),
                    c @ ('\\' | '"') => value.push(c),
                    c => panic!("escape \\{c}"),
                },
                (_, c) => value.push(c),
            }
        };
        labels.push((name.to_owned(), value));
        match after[end + 1..].strip_prefix(',') {
            Some(next) => rest = next,
            None => return (labels, after[end + 1..].strip_prefix('}').expect("a closing brace")),
        }
    }
}

fn get(samples: &BTreeMap<Sample, f64>, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let labels = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    samples.get(&(name.to_owned(), labels)).copied()
}

const ODD: &str = "/svc/we\"ird\\\né\u{fffd}{},=";

#[tokio::test(start_paused = true)]
async fn odd_labels_survive_a_strict_parser() {
    let registry = Registry::new(Limits::default());
    let now = Instant::now();
    let listener = registry.listener("int/io.example.Label");
    let _connection = listener.connection();
    listener.decode_errors.add_one("frame");
    let route = registry.route(ODD);
    let purse = Arc::new(Purse::default());
    route.watch_purse(&purse);
    route.begin(now).end_as(Outcome::Success, now + Duration::from_millis(3));
    route.begin(now).end_as(Outcome::Failed(Why::Timeout), now + Duration::from_secs(100));
    route.begin(now).end_as(Outcome::Declared, now);
    let endpoint = registry.endpoint("/#/fs/users", "[::1]:9000".parse().expect("an address"));
    endpoint.removals.add_one();
    let _open = endpoint.begin(now);
    registry.unknown_route().begin(now).end_as(Outcome::Failed(Why::NoSuchName), now);

    let text = text(&registry).expect("text");
    let samples = parse(&text);
    let route = |name: &str| get(&samples, name, &[("route", ODD)]);
    assert_eq!(route("muxgate_route_requests_total"), Some(3.0));
    assert_eq!(route("muxgate_route_successes_total"), Some(1.0));
    assert_eq!(route("muxgate_route_budget_balance"), Some(100.0));
    assert_eq!(route("muxgate_route_latency_seconds_count"), Some(3.0));
    assert_eq!(route("muxgate_route_latency_seconds_sum"), Some(100.003));
    let bucket = |le| get(&samples, "muxgate_route_latency_seconds_bucket", &[("route", ODD), ("le", le)]);
    assert_eq!(["0.0001", "0.0025", "0.005", "60", "+Inf"].map(bucket), [1.0, 1.0, 2.0, 2.0, 3.0].map(Some));
    let failures =
        |route, cause| get(&samples, "muxgate_route_failures_total", &[("route", route), ("cause", cause)]);
    assert_eq!(failures(ODD, "timeout"), Some(1.0));
    assert_eq!(failures("unknown", "no_such_name"), Some(1.0));
    let at = [("cluster", "/#/fs/users"), ("endpoint", "[::1]:9000")];
    assert_eq!(get(&samples, "muxgate_endpoint_in_flight_requests", &at), Some(1.0));
    assert_eq!(get(&samples, "muxgate_endpoint_removals_total", &at), Some(1.0));
    let at = [("listener", "int/io.example.Label")];
    assert_eq!(get(&samples, "muxgate_listener_open_connections", &at), Some(1.0));
}

/// BC-19: unknown names add no series.
#[tokio::test(start_paused = true)]
async fn strangers_mint_no_series() {
    let registry = Registry::new(Limits { routes: 3, ..Limits::default() });
    let _kept = registry.route("/svc/probe");
    let lines = |registry| text(registry).expect("text").lines().count();
    registry.unknown_route().begin(Instant::now()).end_as(Outcome::Failed(Why::NoSuchName), Instant::now());
    let before = lines(&registry);
    for _ in 0..1000 {
        registry
            .unknown_route()
            .begin(Instant::now())
            .end_as(Outcome::Failed(Why::NoSuchName), Instant::now());
    }
    assert_eq!(lines(&registry), before);
}
