//! `io.l5d.rewrite`.

use super::{Fields, Kind, Shape};
use crate::names::namers::configured::Discovery;
use crate::names::namers::pattern::{Pattern, Rewrite};

pub(super) const KIND: Kind = Kind {
    word: "io.l5d.rewrite",
    shape: &Shape {
        what: "a namer",
        keys: &["kind", "prefix", "transformers", "pattern", "name"],
        strangers: &[("template", "did you mean `name`?")],
    },
    read,
};

fn read(fields: &Fields<'_>) -> Option<Discovery> {
    fields.missing("pattern", "which names it answers: `pattern: \"/{svc}/api\"`");
    fields.missing("name", "the name that it answers: `name: \"/host/{svc}\"`");
    let (pattern, name) = (parse(fields, "pattern"), parse(fields, "name"));
    let rewrite = Rewrite { pattern: pattern?, name: name? };
    if let Some(unknown) = rewrite.unknown() {
        fields.wrong(
            "name",
            format!("the pattern does not capture {{{unknown}}}"),
            "what `pattern` keeps, it keeps as `{x}`",
        );
        return None;
    }
    Some(Discovery::Rewrite(rewrite))
}

fn parse(fields: &Fields<'_>, key: &str) -> Option<Pattern> {
    match Pattern::parse(fields.word(key)?) {
        Ok(pattern) => Some(pattern),
        Err(why) => {
            fields.wrong(key, why, "elements are text, `*` or `{x}`: `/{svc}/*/api`");
            None
        }
    }
}
