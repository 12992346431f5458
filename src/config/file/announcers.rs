//! `announcers`, and what listeners announce through them.

use super::{Fields, Shape, zk};
use crate::config::plan::{Announce, Announcer};
use crate::names::announce::{PATH_PREFIX, Params};
use crate::outside::zk::node;
use muxgate_wire::name::Path;

/// The only kind.
const KIND: &str = "io.l5d.serversets";

const ANNOUNCER: Shape = Shape {
    what: "an announcer",
    keys: &["kind", "prefix", "zkAddrs", "pathPrefix", "sessionTimeoutMs", "authInfo"],
    strangers: &[("hosts", "write `zkAddrs`, a list of `host` and `port`")],
};

/// The announcers; nothing if one of them has a mistake.
pub(super) fn announcers(root: &Fields<'_>) -> Option<Vec<Announcer>> {
    if root.get("announcers").is_none() {
        return Some(Vec::new());
    }
    let all = root.list("announcers", &ANNOUNCER)?;
    let mut found: Vec<Announcer> = Vec::new();
    for fields in &all {
        let Some(announcer) = announcer(fields) else { continue };
        if found.iter().any(|other| other.prefix == announcer.prefix) {
            let key = if fields.get("prefix").is_some() { "prefix" } else { "kind" };
            let message = format!("two announcers have the prefix {}", announcer.prefix.as_str());
            fields.wrong(key, message, "give each a `prefix` of its own, for example `prefix: /other`");
        }
        found.push(announcer);
    }
    (found.len() == all.len()).then_some(found)
}

fn announcer(fields: &Fields<'_>) -> Option<Announcer> {
    fields.missing("kind", "there is only `kind: io.l5d.serversets`");
    let kind = fields.choice("kind", &[(KIND, ())]);
    let prefix = match fields.get("prefix") {
        None => Path::parse(format!("/{KIND}")).ok(),
        Some(_) => fields.path("prefix"),
    };
    let below = match fields.get("pathPrefix") {
        None => Some(PATH_PREFIX.to_owned()),
        Some(_) => fields.path("pathPrefix").and_then(|path| {
            let found = node("/", &path);
            if found.is_none() {
                fields.wrong("pathPrefix", "`pathPrefix` is no node of ZooKeeper", "for example /discovery");
            }
            found
        }),
    };
    let zk = zk::ensemble(fields);
    kind?;
    Some(Announcer { prefix: prefix?, params: Params { zk: zk?, path_prefix: below? } })
}

/// `announce` of a listener: names below `/#` and the prefix of an announcer.
pub(super) fn announce(fields: &Fields<'_>, announcers: Option<&[Announcer]>) -> Vec<Announce> {
    let help = "for example `announce: [/#/io.l5d.serversets/web]`";
    let names = fields.words("announce", help).unwrap_or_default();
    let Some(announcers) = announcers else { return Vec::new() };
    let mut found = Vec::new();
    for (at, name) in names.into_iter().enumerate() {
        match one(name, announcers) {
            Ok(announce) => found.push(announce),
            Err((message, help)) => fields.wrong_item("announce", at, message, help),
        }
    }
    found
}

fn one(name: &str, announcers: &[Announcer]) -> Result<Announce, (String, String)> {
    let example = || "for example /#/io.l5d.serversets/web".to_owned();
    let path =
        Path::parse(name).map_err(|error| (format!("{name} is no path: {}", error.what), example()))?;
    let rest = path.skip(1);
    let fits =
        |announcer: &&Announcer| path.elements().next() == Some("#") && rest.starts_with(&announcer.prefix);
    let Some(announcer) = announcers.iter().rev().find(fits) else {
        let list: Vec<_> = announcers.iter().map(|a| format!("/#{}", a.prefix.as_str())).collect();
        let help = match list.is_empty() {
            true => {
                "there are no announcers; add one: `announcers: [{kind: io.l5d.serversets, zkAddrs: ...}]`"
                    .into()
            }
            false => format!("the announcers of this file are {}", list.join(", ")),
        };
        return Err((format!("no announcer has {name}"), help));
    };
    let below = rest.skip(announcer.prefix.len());
    match node(&announcer.params.path_prefix, &below).filter(|_| !below.is_empty()) {
        Some(node) => Ok(Announce { params: announcer.params.clone(), node }),
        None => Err((format!("{name} is no node of ZooKeeper"), example())),
    }
}
