//! `io.l5d.etcd`.

use super::super::remote;
use super::{Fields, Kind, Shape};
use crate::names::namers::configured::Discovery;
use crate::names::namers::etcd::{PATH_PREFIX, PORT, Params};
use muxgate_wire::name::Path;

/// Where etcd is, if nothing is said.
const HOST: &str = "localhost";

pub(super) const KIND: Kind = Kind {
    word: "io.l5d.etcd",
    shape: &Shape {
        what: "a namer",
        keys: &["kind", "prefix", "transformers", "host", "port", "addresses", "tls", "pathPrefix"],
        strangers: &[
            ("hosts", "write `addresses`, a list such as [\"etcd1:2379\", \"etcd2:2379\"]"),
            ("endpoints", "write `addresses`, a list such as [\"etcd1:2379\", \"etcd2:2379\"]"),
        ],
    },
    read,
};

fn read(fields: &Fields<'_>) -> Option<Discovery> {
    let path_prefix = match fields.get("pathPrefix") {
        None => Path::parse(PATH_PREFIX).ok(),
        Some(_) => fields.path("pathPrefix"),
    };
    let nodes = remote::of_addresses(fields, HOST, PORT)?;
    Some(Discovery::Etcd(Params { nodes, path_prefix: path_prefix? }))
}
