//! `io.l5d.fs`.

use super::{Fields, Kind, Shape};
use crate::names::namers::configured::Discovery;
use crate::names::namers::fs::Params;

pub(super) const KIND: Kind = Kind {
    word: "io.l5d.fs",
    shape: &Shape {
        what: "a namer",
        keys: &["kind", "prefix", "transformers", "rootDir"],
        strangers: &[("root", "did you mean `rootDir`?")],
    },
    read,
};

fn read(fields: &Fields<'_>) -> Option<Discovery> {
    fields.missing("rootDir", "the folder in which each file is a service: `rootDir: disco`");
    Some(Discovery::Fs(Params { root: fields.word("rootDir")?.into() }))
}
