//! `dtabOverrides` of a listener.

use super::{Fields, Shape};
use crate::flow::accept::Trust;
use crate::flow::accept::overrides::{Glob, Overrides, Rule};
use muxgate_wire::name::Prefix;

const RULE: Shape = Shape {
    what: "a rule of `dtabOverrides`",
    keys: &["identity", "clientId", "prefixes", "system"],
    strangers: &[("prefix", "write `prefixes`, a list")],
};

const PREFIXES: &str = "for example `prefixes: [/svc/users]`; `[/]` for all but what lies below /$ and /#";

/// The rules; none where every caller may override everything.
pub(super) fn overrides(listener: &Fields<'_>, trust: Trust) -> Option<Overrides> {
    listener.get("dtabOverrides")?;
    if trust == Trust::Outside {
        let help = "leave the key out: with `trust: outside` no call's dtab is read";
        listener.wrong("dtabOverrides", "no dtab comes in here", help);
    }
    if listener.is_none("dtabOverrides") {
        return Some(Vec::new());
    }
    let rules = listener.list("dtabOverrides", &RULE).unwrap_or_default();
    Some(rules.iter().map(rule).collect())
}

fn rule(fields: &Fields<'_>) -> Rule {
    fields.missing("prefixes", PREFIXES);
    let glob = |key: &str| fields.word(key).map(|text| Glob(text.to_owned()));
    let mut prefixes = Vec::new();
    for (index, text) in fields.words("prefixes", PREFIXES).unwrap_or_default().iter().enumerate() {
        match Prefix::parse(text) {
            Ok(prefix) => prefixes.push(prefix),
            Err(error) => fields.wrong_item("prefixes", index, format!("`{text}`: {}", error.what), PREFIXES),
        }
    }
    Rule {
        identity: glob("identity"),
        client_id: glob("clientId"),
        prefixes,
        system: fields.flag("system").unwrap_or(false),
    }
}
