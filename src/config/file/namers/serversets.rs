//! `io.l5d.serversets`.

use super::super::zk;
use super::{Fields, Kind, Shape};
use crate::names::namers::configured::Discovery;
use crate::names::namers::serversets::Params;

pub(super) const KIND: Kind = Kind {
    word: "io.l5d.serversets",
    shape: &Shape {
        what: "a namer",
        keys: &["kind", "prefix", "transformers", "zkAddrs", "sessionTimeoutMs", "authInfo"],
        strangers: &[
            ("zkAddr", "did you mean `zkAddrs`, a list?"),
            ("hosts", "write `zkAddrs`, a list of `host` and `port`"),
            ("pathPrefix", "put it into the dtab: `/svc => /#/io.l5d.serversets/discovery`"),
        ],
    },
    read,
};

fn read(fields: &Fields<'_>) -> Option<Discovery> {
    Some(Discovery::Serversets(Params { zk: zk::ensemble(fields)? }))
}
