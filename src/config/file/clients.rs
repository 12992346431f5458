//! `clients`: settings by prefix of the bound id.

use super::listeners::{COMPRESSION, MAX_FRAME};
use super::services::{overlap, prefix_or_all};
use super::{Fields, Shape, overlay, tls};
use crate::config::plan::{ClientPart, Namer, Rule};
use crate::flow::choose::Balancer;
use crate::flow::dispatch::{Accrual, Upstream};
use crate::names::namers::pattern::Pattern;
use muxgate_wire::mux::handshake::{CompressionLevel, TlsLevel};
use muxgate_wire::name::Prefix;
use muxgate_wire::thrift::Protocol;
use std::collections::HashSet;
use std::time::Duration;

/// linkerd's `decayTimeMs`.
const DECAY: Duration = Duration::from_secs(10);

/// Most failures in a row, connections and waiting calls that can be set.
const MAX_COUNT: u64 = 1_000_000;

/// Smallest limit on replies.
const MIN_FRAME: u64 = 1024;

const CLIENT: Shape = Shape {
    what: "an entry of `clients`",
    keys: &[
        "prefix",
        "protocol",
        "thriftProtocol",
        "stripServiceName",
        "loadBalancer",
        "failureAccrual",
        "requestAttemptTimeoutMs",
        "connectTimeoutMs",
        "hostConnectionPool",
        "declaredExceptions",
        "maxFrameBytes",
        "tls",
        "compression",
    ],
    strangers: &[
        ("kind", "entries are matched by `prefix`: leave the kind out"),
        ("configs", "write the entries directly below `clients`"),
        ("thriftFramed", "write `protocol: framed` or `protocol: buffered`"),
        ("attemptTTwitterUpgrade", "write `protocol: ttwitter`"),
        ("requeueBudget", "one budget pays for everything: `retries.budget` in an entry of `services`"),
        ("failFast", "endpoints that refuse connections are left out by `failureAccrual`"),
        ("timeoutMs", "did you mean `requestAttemptTimeoutMs`?"),
        ("totalTimeoutMs", "it belongs into an entry of `services`"),
        ("responseClassifier", "it belongs into an entry of `services`"),
        ("clientSession", "write `idleTimeMs` and `lifeTimeMs` in `hostConnectionPool`"),
    ],
};

pub(super) const TRANSPORTS: [(&str, Upstream); 5] = [
    ("thriftmux", Upstream::ThriftMux),
    ("framed", Upstream::Framed),
    ("ttwitter", Upstream::TTwitter),
    ("buffered", Upstream::Buffered),
    ("header", Upstream::Header),
];

const PROTOCOLS: [(&str, Option<Protocol>); 3] =
    [("same", None), ("binary", Some(Protocol::Binary)), ("compact", Some(Protocol::Compact))];

const BALANCER: Shape = Shape {
    what: "`loadBalancer`",
    keys: &["kind", "decayTimeMs"],
    strangers: &[
        ("maxEffort", "leave this out: endpoints are picked by their state"),
        ("enableProbation", "leave this out"),
    ],
};

const ACCRUAL: Shape = Shape {
    what: "`failureAccrual`",
    keys: &["kind", "failures", "backoff"],
    strangers: &[(
        "successRate",
        "accrual counts failures in a row: `kind: io.l5d.consecutiveFailures` with `failures`",
    )],
};

pub(super) const BACKOFF: Shape =
    Shape { what: "`backoff`", keys: &["kind", "ms", "minMs", "maxMs"], strangers: &[] };

const POOL: Shape = Shape {
    what: "`hostConnectionPool`",
    keys: &["maxSize", "maxWaiters", "idleTimeMs", "lifeTimeMs"],
    strangers: &[("minSize", "connections are made when they are needed: leave this out")],
};

/// The entries of `clients`.
pub(super) fn clients(root: &Fields<'_>, namers: Option<&[Namer]>) -> Vec<Rule<ClientPart>> {
    let entries = root.list("clients", &CLIENT).unwrap_or_default();
    let (places, rules): (Vec<_>, Vec<_>) =
        entries.iter().filter_map(|fields| Some((fields, entry(fields, namers)?))).unzip();
    overlay::check(&places, &rules);
    rules
}

fn entry(fields: &Fields<'_>, namers: Option<&[Namer]>) -> Option<Rule<ClientPart>> {
    let mut part = ClientPart {
        upstream: fields.choice("protocol", &TRANSPORTS),
        protocol: fields.choice("thriftProtocol", &PROTOCOLS),
        strip_service: fields.flag("stripServiceName"),
        balancer: fields
            .section_of_kind("loadBalancer", &BALANCER, &["p2c", "ewma"])
            .and_then(|section| balancer(&section)),
        accrual: fields
            .section_of_kind("failureAccrual", &ACCRUAL, &["io.l5d.consecutiveFailures", "none"])
            .and_then(|section| accrual(&section)),
        attempt: fields.millis_or_none("requestAttemptTimeoutMs"),
        connect: fields.millis("connectTimeoutMs"),
        declared_fails: fields.choice("declaredExceptions", &[("success", false), ("failure", true)]),
        max_frame: fields
            .count("maxFrameBytes", MIN_FRAME..=MAX_FRAME, "no reply could come in")
            .map(|n| n as usize),
        compression: fields.choice("compression", &COMPRESSION),
        ..ClientPart::default()
    };
    if let Some(pool) = fields.section("hostConnectionPool", &POOL) {
        let none = "calls need a connection; leave the key out for the default";
        part.max_size = pool.count("maxSize", 1..=MAX_COUNT, none).map(|n| n as usize);
        part.max_waiters = pool.count("maxWaiters", 0..=MAX_COUNT, "").map(|n| n as usize);
        part.idle = pool.keep("idleTimeMs");
        part.life = pool.keep_or_none("lifeTimeMs");
        let pooled = ["maxSize", "maxWaiters", "idleTimeMs"].iter().any(|key| pool.get(key).is_some());
        if part.upstream == Some(Upstream::ThriftMux) && pooled {
            let help = "leave all but `lifeTimeMs` out, or set `protocol: framed`";
            fields.wrong("hostConnectionPool", "a thriftmux endpoint has one connection and no pool", help);
        }
    }
    if part.compression.unwrap_or_default() != CompressionLevel::Off
        && part.upstream.is_some_and(|upstream| upstream != Upstream::ThriftMux)
    {
        let help = "leave it out, or set `protocol: thriftmux`";
        fields.wrong("compression", "compression is agreed upon in Mux's handshake", help);
    }
    let (prefix, captures) = match captured(fields) {
        Some(captured) => captured.map(|(prefix, pattern)| (prefix, Some(pattern)))?,
        None => (prefix_or_all(fields)?, None),
    };
    if let Some(namers) = namers {
        check_reach(fields, &prefix, namers);
    }
    part.tls = tls::client(fields, captures.as_ref());
    let upstream = part.upstream.unwrap_or_default();
    if let Some(Some(tls)) = &part.tls
        && tls.opportunistic != TlsLevel::Off
        && upstream != Upstream::ThriftMux
    {
        let help = "leave `opportunistic` out: connections are encrypted from their first byte";
        let message = "only thriftmux can begin in clear and go on encrypted";
        fields.wrong_in("tls", "opportunistic", message, help);
    }
    Some(Rule { prefix, captures, part })
}

/// A prefix in which `{x}` matches one element, or a part of one, and keeps it; none if there is no such thing in it.
fn captured(fields: &Fields<'_>) -> Option<Option<(Prefix, Pattern)>> {
    fields.get("prefix")?;
    let text = fields.text("prefix").filter(|text| text.contains(['{', '}']))?;
    let starred: Vec<_> =
        text.split('/').map(|part| if part.contains(['{', '}']) { "*" } else { part }).collect();
    let example = "for example /#/io.l5d.fs/{service}, to use `{service}` in `commonName` of `tls`";
    let read = Pattern::parse(text).map_err(|why| (why, example)).and_then(|pattern| {
        if let Some(name) = twice(&pattern) {
            let help = "give each part a name of its own; `*` matches an element without keeping it";
            return Err((format!("{{{name}}} stands in it twice"), help));
        }
        let prefix = Prefix::parse(starred.join("/")).map_err(|error| (error.what.to_string(), example))?;
        Ok((prefix, pattern))
    });
    Some(match read {
        Ok(read) => Some(read),
        Err((why, help)) => {
            fields.wrong("prefix", format!("`prefix` is no pattern: {why}"), help);
            None
        }
    })
}

/// A name that two captures have: only one of them could be kept.
fn twice(pattern: &Pattern) -> Option<&str> {
    let mut seen = HashSet::new();
    pattern.names().find(|name| !seen.insert(*name))
}

fn balancer(fields: &Fields<'_>) -> Option<Balancer> {
    fields.missing("kind", "there are p2c and ewma");
    let ewma = fields.choice("kind", &[("p2c", false), ("ewma", true)])?;
    if ewma {
        return Some(Balancer::PeakEwma { decay: fields.millis("decayTimeMs").unwrap_or(DECAY) });
    }
    if fields.get("decayTimeMs").is_some() {
        let help = "p2c compares calls in flight, which do not decay: write `kind: ewma` or leave this out";
        fields.wrong("decayTimeMs", "`decayTimeMs` is a setting of ewma", help);
    }
    Some(Balancer::LeastLoaded)
}

fn accrual(fields: &Fields<'_>) -> Option<Option<Accrual>> {
    fields.missing("kind", "there are io.l5d.consecutiveFailures and none");
    let on = fields.choice("kind", &[("io.l5d.consecutiveFailures", true), ("none", false)])?;
    if !on {
        fields.stray(&["failures", "backoff"], "none");
        return Some(None);
    }
    let mut accrual = Accrual::default();
    let zero = "it takes one failure at least; `kind: none` switches accrual off";
    if let Some(failures) = fields.count("failures", 1..=MAX_COUNT, zero) {
        accrual.failures = failures as u32;
    }
    if let Some(section) = fields.section("backoff", &BACKOFF) {
        backoff(&section, &mut accrual)?;
    }
    Some(Some(accrual))
}

fn backoff(fields: &Fields<'_>, accrual: &mut Accrual) -> Option<()> {
    fields.missing("kind", "there are jittered and constant");
    if fields.choice("kind", &[("jittered", false), ("constant", true)])? {
        fields.stray(&["minMs", "maxMs"], "constant");
        fields.missing("ms", "for example `ms: 5000`");
        accrual.min_backoff = fields.millis("ms")?;
        accrual.max_backoff = accrual.min_backoff;
        return Some(());
    }
    fields.stray(&["ms"], "jittered");
    accrual.min_backoff = fields.millis("minMs").unwrap_or(accrual.min_backoff);
    accrual.max_backoff = fields.millis("maxMs").unwrap_or(accrual.max_backoff);
    if accrual.min_backoff > accrual.max_backoff {
        let (min, max) = (accrual.min_backoff.as_millis(), accrual.max_backoff.as_millis());
        let key = if fields.get("minMs").is_some() { "minMs" } else { "maxMs" };
        fields.wrong(
            key,
            format!("minMs ({min}) is above maxMs ({max})"),
            "the first backoff cannot be the longest",
        );
    }
    Some(())
}

/// A prefix that no bound id can have would never match, silently.
fn check_reach(fields: &Fields<'_>, prefix: &Prefix, namers: &[Namer]) {
    let first = prefix.as_str().split('/').nth(1).unwrap_or_default();
    match first {
        // `%`: what a transformer has changed.
        "" | "*" | "$" | "%" => {}
        "#" => {
            let mut known = namers.iter().map(|namer| format!("/#{}", namer.prefix.as_str()));
            if !known.clone().any(|id| overlap(prefix, &id)) {
                let list = known.by_ref().collect::<Vec<_>>().join(", ");
                let help = if list.is_empty() {
                    "there are no namers".into()
                } else {
                    format!("the namers are {list}")
                };
                fields.wrong("prefix", format!("no namer gives ids below {}", prefix.as_str()), help);
            }
        }
        _ => {
            let help = "bound ids begin with /# or /$, such as /#/io.l5d.fs/users; settings by name belong into `services`";
            fields.wrong("prefix", format!("no bound id begins with {}", prefix.as_str()), help);
        }
    }
}
