//! `services`: settings by prefix of the name.

use super::clients::BACKOFF;
use super::{Fields, Shape};
use crate::config::plan::{Listener, Rule, ServicePart};
use crate::flow::bind::{Backoff, Classifier};
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
    keys: &["prefix", "totalTimeoutMs", "bindingTimeoutMs", "responseClassifier", "retries"],
    strangers: &[
        ("kind", "entries are matched by `prefix`: leave the kind out"),
        ("configs", "write the entries directly below `services`"),
        ("timeoutMs", "did you mean `totalTimeoutMs`?"),
        ("requestAttemptTimeoutMs", "it belongs into an entry of `clients`"),
        ("declaredExceptions", "it belongs into an entry of `clients`"),
    ],
};

const RETRIES: Shape = Shape {
    what: "`retries`",
    keys: &["budget", "backoff"],
    strangers: &[("maxRetries", "the budget and the call's time limit end retries: leave this out")],
};

const CLASSIFIER: Shape = Shape {
    what: "`responseClassifier`",
    keys: &["kind"],
    strangers: &[(
        "configs",
        "one kind holds for a service; write another entry of `services` for other names",
    )],
};

/// Kinds of classifiers.
const CLASSIFIERS: [(&str, Classifier); 2] = [
    ("io.l5d.thrift.nonRetryableFailures", Classifier::NonRetryableFailures),
    ("io.l5d.thrift.retryableFailures", Classifier::RetryableFailures),
];

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
        classifier: classifier(fields),
        ..ServicePart::default()
    };
    let retries = fields.section("retries", &RETRIES);
    if let Some(section) = retries.as_ref().and_then(|retries| retries.section("backoff", &BACKOFF)) {
        part.backoff = backoff(&section);
    }
    if let Some(budget) = retries.as_ref().and_then(|retries| retries.section("budget", &BUDGET)) {
        let help = "it is a share: 0.2 lets one call in five be tried again";
        part.percent = budget.ratio("percentCanRetry", 0.0..=MAX_PERCENT, help);
        part.min_per_sec = budget.count("minRetriesPerSec", 0..=MAX_PER_SEC, "").map(|count| count as u32);
        part.ttl = budget
            .count("ttlSecs", 1..=MAX_TTL, "the budget needs a window to count in")
            .map(Duration::from_secs);
    }
    if let Some(text) = fields.get("prefix").and_then(|_| fields.text("prefix"))
        && let Some(brace) = text.find(['{', '}'])
    {
        let help = "captures are for `clients`; here `*` stands for any one element, as in /svc/*";
        fields.in_text("prefix", text, brace, "a name's `prefix` has no captures", help);
        return None;
    }
    let prefix = prefix_or_all(fields)?;
    check_reach(fields, &prefix, listeners);
    Some(Rule { prefix, captures: None, part })
}

fn classifier(fields: &Fields<'_>) -> Option<Classifier> {
    let kinds = CLASSIFIERS.map(|(kind, _)| kind);
    let section = fields.section_of_kind("responseClassifier", &CLASSIFIER, &kinds)?;
    section.missing("kind", "for example `kind: io.l5d.thrift.retryableFailures`");
    section.choice("kind", &CLASSIFIERS)
}

/// Pauses between attempts; unlike those of accrual they may be 0.
fn backoff(fields: &Fields<'_>) -> Option<Backoff> {
    fields.missing("kind", "there are jittered and constant");
    if fields.choice("kind", &[("jittered", false), ("constant", true)])? {
        fields.stray(&["minMs", "maxMs"], "constant");
        fields.missing("ms", "for example `ms: 50`");
        return fields.millis_or_zero("ms").map(Backoff::Constant);
    }
    fields.stray(&["ms"], "jittered");
    fields.missing("minMs", "for example `minMs: 10`");
    fields.missing("maxMs", "for example `maxMs: 1000`");
    let (min, max) = (fields.millis("minMs")?, fields.millis("maxMs")?);
    if min > max {
        let message = format!("minMs ({}) is above maxMs ({})", min.as_millis(), max.as_millis());
        fields.wrong("minMs", message, "the least pause cannot be the longest");
    }
    Some(Backoff::Jittered { min, max })
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
