//! `io.l5d.consul`.

use super::super::remote;
use super::{Fields, Kind, Shape};
use crate::names::namers::configured::Discovery;
use crate::names::namers::consul::{Consistency, PORT, Params, Status};

/// The agent of this host, if nothing is said.
const HOST: &str = "localhost";

/// Weights by tag.
const MAX_WEIGHTS: usize = 100;

pub(super) const KIND: Kind = Kind {
    word: "io.l5d.consul",
    shape: &Shape {
        what: "a namer",
        keys: &[
            "kind",
            "prefix",
            "transformers",
            "host",
            "port",
            "tls",
            "token",
            "includeTag",
            "useHealthCheck",
            "healthStatuses",
            "consistencyMode",
            "preferServiceAddress",
            "weights",
        ],
        strangers: &[
            ("setHost", "it is about HTTP's Host header, which calls here have not: leave it out"),
            ("failFast", "members that fail are left out by `failureAccrual` of `clients`: leave it out"),
            ("datacenter", "it stands in the name: /#/io.l5d.consul/DATACENTER/SERVICE, or .local"),
        ],
    },
    read,
};

const WEIGHT: Shape = Shape { what: "a weight by tag", keys: &["tag", "weight"], strangers: &[] };

const STATUSES: &[(&str, Status)] = &[
    ("passing", Status::Passing),
    ("warning", Status::Warning),
    ("critical", Status::Critical),
    ("maintenance", Status::Maintenance),
];

fn read(fields: &Fields<'_>) -> Option<Discovery> {
    let modes = [
        ("default", Consistency::Default),
        ("stale", Consistency::Stale),
        ("consistent", Consistency::Consistent),
    ];
    let consistency = match fields.get("consistencyMode") {
        None => Some(Consistency::Default),
        Some(_) => fields.choice("consistencyMode", &modes),
    };
    let flag = |key, otherwise| if fields.get(key).is_none() { Some(otherwise) } else { fields.flag(key) };
    let include_tag = flag("includeTag", false);
    let prefer_service_address = flag("preferServiceAddress", true);
    let (health, weights) = (health(fields, flag("useHealthCheck", false)), weights(fields));
    let mut agent = remote::of_host_and_port(fields, HOST, PORT)?;
    agent.credentials = remote::header(fields, "token", "x-consul-token")?;
    Some(Discovery::Consul(Params {
        agent,
        include_tag: include_tag?,
        health: health?,
        consistency: consistency?,
        prefer_service_address: prefer_service_address?,
        weights: weights?,
    }))
}

/// The inner none means that health does not matter.
fn health(fields: &Fields<'_>, is_used: Option<bool>) -> Option<Option<Vec<Status>>> {
    let is_used = is_used?;
    if fields.get("healthStatuses").is_none() {
        return Some(is_used.then(|| vec![Status::Passing]));
    }
    let all = STATUSES.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
    let help = format!("some of {all}: for example `healthStatuses: [passing, warning]`");
    if !is_used {
        fields.wrong(
            "healthStatuses",
            "`healthStatuses` needs `useHealthCheck`",
            "add `useHealthCheck: true`",
        );
        return None;
    }
    let words = fields.words("healthStatuses", &help)?;
    if words.is_empty() {
        fields.wrong("healthStatuses", "no instance could ever have one of no statuses", help);
        return None;
    }
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        match STATUSES.iter().find(|(known, _)| known == word) {
            Some((_, status)) => found.push(*status),
            None => fields.wrong_item("healthStatuses", at, format!("`{word}` is no status"), &help),
        }
    }
    (found.len() == words.len()).then_some(Some(found))
}

fn weights(fields: &Fields<'_>) -> Option<Vec<(String, f64)>> {
    if fields.get("weights").is_none() {
        return Some(Vec::new());
    }
    let example = "for example `weights: [{tag: primary, weight: 100}]`";
    let items = fields.list("weights", &WEIGHT)?;
    if items.len() > MAX_WEIGHTS {
        fields.wrong(
            "weights",
            format!("`weights` has {} of them", items.len()),
            format!("at most {MAX_WEIGHTS}"),
        );
        return None;
    }
    let read = |item: &Fields<'_>| {
        item.missing("tag", example);
        item.missing("weight", example);
        let weight = item.ratio("weight", 0.001..=1_000_000.0, example);
        Some((item.word("tag")?.to_lowercase(), weight?))
    };
    let found: Vec<_> = items.iter().filter_map(read).collect();
    (found.len() == items.len()).then_some(found)
}
