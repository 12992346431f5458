//! `namers`: the list, and a file for each kind.

mod consul;
mod dnssrv;
mod etcd;
mod fs;
mod k8s;
mod rewrite;
mod serversets;

use super::{Fields, Shape, transformers};
use crate::config::plan::Namer;
use crate::names::namers::configured::Discovery;
use muxgate_wire::name::Path;

/// One kind of namer. Its word, behind a slash, is its prefix if none is given.
struct Kind {
    word: &'static str,
    /// `kind` and `prefix`, and what else it has.
    shape: &'static Shape,
    read: fn(&Fields<'_>) -> Option<Discovery>,
}

const KINDS: &[&Kind] = &[
    &fs::KIND,
    &dnssrv::KIND,
    &etcd::KIND,
    &rewrite::KIND,
    &k8s::KIND,
    &k8s::KIND_NS,
    &serversets::KIND,
    &consul::KIND,
];

/// Items whose kind is not known: only that is said of them.
const UNKNOWN: Shape = Shape { what: "a namer", keys: &["kind"], strangers: &[] };

/// The namers; nothing if one of them has a mistake, so that nobody complains about names that it would have had.
pub(super) fn namers(root: &Fields<'_>) -> Option<Vec<Namer>> {
    if root.get("namers").is_none() {
        return Some(Vec::new());
    }
    let shape_of = |word: &str| KINDS.iter().find(|kind| kind.word == word).map(|kind| kind.shape);
    let all = root.list_by_kind("namers", &UNKNOWN, shape_of)?;
    let mut found: Vec<Namer> = Vec::new();
    for fields in &all {
        found.extend(namer(fields, &found));
    }
    (found.len() == all.len()).then_some(found)
}

fn namer(fields: &Fields<'_>, found: &[Namer]) -> Option<Namer> {
    fields.missing("kind", "for example `kind: io.l5d.fs`");
    let words: Vec<_> = KINDS.iter().map(|kind| (kind.word, *kind)).collect();
    let kind = fields.choice("kind", &words)?;
    let discovery = (kind.read)(fields);
    let prefix = match fields.get("prefix") {
        None => Path::parse(format!("/{}", kind.word)).ok(),
        Some(_) => fields.path("prefix"),
    }?;
    check_prefix(fields, &prefix, found);
    let transformers = transformers::transformers(fields);
    Some(Namer { prefix, discovery: discovery?, transformers: transformers? })
}

fn check_prefix(fields: &Fields<'_>, prefix: &Path, found: &[Namer]) {
    if prefix.elements().next() == Some("#") {
        let without = prefix.skip(1);
        let help = format!("leave `/#` out here: `prefix: {}`", without.as_str());
        fields.wrong("prefix", "the prefix of a namer stands behind `/#`", help);
    } else if found.iter().any(|other| other.prefix == *prefix) {
        let key = if fields.get("prefix").is_some() { "prefix" } else { "kind" };
        let help =
            "give each namer a `prefix` of its own, for example `prefix: /other`, and use it as /#/other";
        fields.wrong(key, format!("two namers have the prefix {}", prefix.as_str()), help);
    }
}
