//! `dtab`.

use super::Fields;
use crate::config::plan::Namer;
use muxgate_wire::name::{Dtab, NameError, What};

/// The table of the file; if one is followed in a store, it may be left out.
pub(super) fn dtab(root: &Fields<'_>, namers: Option<&[Namer]>, followed: bool) -> Option<Dtab> {
    if root.get("dtab").is_none() && followed {
        return Some(Dtab::empty());
    }
    root.missing(
        "dtab",
        "without it no name leads anywhere; for example `dtab: /svc => /#/io.l5d.fs`, or follow a `store`",
    );
    let text = root.text("dtab")?;
    let dtab = match Dtab::parse(text) {
        Ok(dtab) => dtab,
        Err(error) => {
            root.in_text("dtab", text, error.at, format!("dtab: {}", error.what), advice(text, &error));
            return None;
        }
    };
    if let Some(namers) = namers {
        check_leaves(root, text, &dtab, namers);
    }
    Some(dtab)
}

/// What to do about a table that cannot be read.
fn advice(text: &str, error: &NameError) -> &'static str {
    let rest = text.get(error.at..).unwrap_or_default();
    let before = text.get(..error.at).unwrap_or_default().trim_end();
    match rest.chars().next() {
        Some(',') => "entries are separated by `;`",
        Some('-' | '=') if rest.starts_with("->") || rest.starts_with("= >") => {
            "prefix and destination are joined by `=>`"
        }
        Some('=') if before.contains("=>") && !before.ends_with("=>") => {
            "an entry ends with `;`: is one missing before this?"
        }
        Some('/') if before.contains("=>") => "an entry ends with `;`: is one missing before this?",
        Some('*') if error.what != What::Wildcard => {
            "`*` stands for one element, and only on the left of `=>`"
        }
        _ => "an entry is `/prefix => /destination ;`, with `|` for fallback and `&` for weighted shares",
    }
}

/// A name below `/#` that no namer has is negative for ever: refused, unless the table rewrites it.
fn check_leaves(root: &Fields<'_>, text: &str, dtab: &Dtab, namers: &[Namer]) {
    let mut from = 0;
    for dentry in dtab.entries() {
        for leaf in dentry.dst.leaves() {
            let mut elements = leaf.elements();
            let first = (elements.next(), elements.next());
            let (Some("#"), Some(_)) = first else { continue };
            let rest = leaf.skip(1);
            let known = namers.iter().map(|namer| &namer.prefix);
            let fits = known.clone().any(|prefix| rest.starts_with(prefix) || prefix.starts_with(&rest));
            let rewritten = dtab.entries().iter().any(|entry| entry.prefix.matches(leaf));
            if fits || rewritten {
                continue;
            }
            let at =
                text.get(from..).and_then(|tail| tail.find(leaf.as_str())).map_or(0, |found| from + found);
            from = at;
            let list = known.map(|prefix| format!("/#{}", prefix.as_str())).collect::<Vec<_>>().join(", ");
            let help = match list.is_empty() {
                true => {
                    "there are no namers; add one: `namers: [{kind: io.l5d.fs, rootDir: disco}]`".to_string()
                }
                false => format!("the namers of this file are {list}"),
            };
            root.in_text("dtab", text, at, format!("dtab: no namer has {}", leaf.as_str()), help);
        }
    }
}
