//! `services`: settings by prefix of the name.

use super::{Fields, Shape};
use crate::config::plan::{Listener, Rule, ServicePart};
use muxgate_wire::name::Prefix;
use std::time::Duration;

/// Largest share of calls that may be retried: ten retries for each call.
const MAX_PERCENT: f64 = 10.0;

/// Most retries a second that are allowed whatever the traffic.
const MAX_PER_SEC: u64 = 1_000_000;

/// Longest window of a retry budget, in seconds. Finagle's own bound.
const MAX_TTL: u64 = 60;

const SERVICE: Shape = Shape {
    what: "an entry of `services`",
    keys: &["prefix", "totalTimeoutMs", "bindingTimeoutMs", "retries"],
    strangers: &[
        ("kind", "entries are matched by `prefix`: leave the kind out"),
        ("configs", "write the entries directly below `services`"),
        ("timeoutMs", "did you mean `totalTimeoutMs`?"),
        ("requestAttemptTimeoutMs", "it belongs into an entry of `clients`"),
        ("responseClassifier", "write `declaredExceptions: failure` in an entry of `clients`"),
    ],
};

const RETRIES: Shape = Shape {
    what: "`retries`",
    keys: &["budget"],
    strangers: &[(
        "backoff",
        "only calls that were never begun are tried again, at once and elsewhere: leave this out",
    )],
};

const BUDGET: Shape =
    Shape { what: "`budget`", keys: &["percentCanRetry", "minRetriesPerSec", "ttlSecs"], strangers: &[] };

/// The entries of `services`.
pub(super) fn services(root: &Fields<'_>, listeners: &Option<Vec<Listener>>) -> Vec<Rule<ServicePart>> {
    let entries = root.list("services", &SERVICE).unwrap_or_default();
    entries.iter().filter_map(|fields| entry(fields, listeners.as_deref().unwrap_or_default())).collect()
}

fn entry(fields: &Fields<'_>, listeners: &[Listener]) -> Option<Rule<ServicePart>> {
    let mut part = ServicePart {
        total: fields.millis_or_none("totalTimeoutMs"),
        binding: fields.millis("bindingTimeoutMs"),
        ..ServicePart::default()
    };
    if let Some(budget) =
        fields.section("retries", &RETRIES).and_then(|retries| retries.section("budget", &BUDGET))
    {
        let help = "it is a share: 0.2 lets one call in five be tried again";
        part.percent = budget.ratio("percentCanRetry", 0.0..=MAX_PERCENT, help);
        part.min_per_sec = budget.count("minRetriesPerSec", 0..=MAX_PER_SEC, "").map(|count| count as u32);
        part.ttl = budget
            .count("ttlSecs", 1..=MAX_TTL, "the budget needs a window to count in")
            .map(Duration::from_secs);
    }
    let prefix = prefix_or_all(fields)?;
    check_reach(fields, &prefix, listeners);
    Some(Rule { prefix, captures: None, part })
}

/// The `prefix` of an entry: every name by default.
pub(super) fn prefix_or_all(fields: &Fields<'_>) -> Option<Prefix> {
    match fields.get("prefix") {
        None => Prefix::parse("/").ok(),
        Some(_) => fields.prefix("prefix"),
    }
}

/// Whether two prefixes can match one path.
pub(super) fn overlap(a: &Prefix, b: &str) -> bool {
    let theirs = b.split('/').filter(|element| !element.is_empty());
    let mine = a.as_str().split('/').filter(|element| !element.is_empty());
    mine.zip(theirs).all(|(mine, theirs)| mine == theirs || mine == "*" || theirs == "*")
}

/// A prefix that no listener's names can have would never match, silently.
fn check_reach(fields: &Fields<'_>, prefix: &Prefix, listeners: &[Listener]) {
    let mut names = listeners.iter().map(|listener| listener.address.prefix.as_str());
    if listeners.is_empty() || names.clone().any(|name| overlap(prefix, name)) {
        return;
    }
    let message = format!("no name begins with {}", prefix.as_str());
    let help = match prefix.as_str() {
        id if id.starts_with("/#") || id.starts_with("/$") => {
            "settings by bound id belong into `clients`".to_string()
        }
        name => format!(
            "names of calls begin with the listener's `dstPrefix`: {}{name}",
            names.next().unwrap_or_default()
        ),
    };
    fields.wrong("prefix", message, help);
}
