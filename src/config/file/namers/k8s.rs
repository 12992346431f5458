//! `io.l5d.k8s` and `io.l5d.k8s.ns`.

use super::super::remote;
use super::{Fields, Kind, Shape};
use crate::names::namers::configured::Discovery;
use crate::names::namers::k8s::{Params, is_label};

/// Where `kubectl proxy` listens.
const HOST: &str = "localhost";

/// The same.
const PORT: u16 = 8001;

const STRANGERS: &[(&str, &str)] = &[
    ("token", "write `tokenFile`, the path of the file that holds the token"),
    ("apiServer", "write `host` and `port`, and `tls` for https"),
];

pub(super) const KIND: Kind = Kind {
    word: "io.l5d.k8s",
    shape: &Shape {
        what: "a namer",
        keys: &["kind", "prefix", "transformers", "host", "port", "tls", "tokenFile", "labelSelector"],
        strangers: STRANGERS,
    },
    read: |fields| read(fields, None),
};

pub(super) const KIND_NS: Kind = Kind {
    word: "io.l5d.k8s.ns",
    shape: &Shape {
        what: "a namer",
        keys: &[
            "kind",
            "prefix",
            "transformers",
            "host",
            "port",
            "tls",
            "tokenFile",
            "labelSelector",
            "namespace",
        ],
        strangers: STRANGERS,
    },
    read: |fields| {
        fields.missing("namespace", "the one with the services: `namespace: default`");
        let namespace = fields.word("namespace")?;
        if !is_label(namespace) {
            let help = "it holds lower-case letters, digits and `-`, 63 at most";
            fields.wrong("namespace", format!("`{namespace}` cannot be a namespace"), help);
            return None;
        }
        read(fields, Some(namespace))
    },
};

fn read(fields: &Fields<'_>, namespace: Option<&str>) -> Option<Discovery> {
    let mut api = remote::of_host_and_port(fields, HOST, PORT)?;
    api.credentials = remote::token_file(fields)?;
    let label =
        if fields.get("labelSelector").is_some() { Some(fields.word("labelSelector")?) } else { None };
    let (namespace, label) = (namespace.map(str::to_owned), label.map(str::to_owned));
    Some(Discovery::K8s(Params { api, namespace, label }))
}
