//! `transformers` of a namer.

use super::{Fields, Shape};
use crate::names::namers::k8s;
use crate::names::transform::{DEFAULT_BITS, Subnet, Transformer};
use crate::outside::http::{Credentials, Params};
use muxgate_wire::name::Path;
use std::net::IpAddr;

/// One kind of transformer.
struct Kind {
    word: &'static str,
    shape: &'static Shape,
    read: fn(&Fields<'_>) -> Option<Transformer>,
}

macro_rules! shape {
    ($($key:literal),*) => { &Shape { what: "a transformer", keys: &["kind", $($key),*], strangers: NETWORK } };
}

const NETWORK: &[(&str, &str)] =
    &[("hostNetwork", "pods on their node's own network share its address: write `kind: io.l5d.localhost`")];

const KINDS: &[Kind] = &[
    Kind { word: "io.l5d.port", shape: shape!("port"), read: port },
    Kind { word: "io.l5d.localhost", shape: shape!(), read: |_| Some(Transformer::Localhost) },
    Kind { word: "io.l5d.specificHost", shape: shape!("host"), read: specific_host },
    Kind { word: "io.l5d.k8s.localnode", shape: shape!("ip", "netmaskBits"), read: local_node },
    Kind {
        word: "io.l5d.k8s.daemonset",
        shape: shape!("k8sHost", "k8sPort", "namespace", "port", "service", "netmaskBits"),
        read: daemon_set,
    },
    Kind { word: "io.l5d.replace", shape: shape!("path"), read: |f| path(f).map(Transformer::Replace) },
    Kind { word: "io.l5d.const", shape: shape!("path"), read: |f| path(f).map(Transformer::Const) },
];

/// Items whose kind is not known: only that is said of them.
const UNKNOWN: Shape = Shape { what: "a transformer", keys: &["kind"], strangers: &[] };

/// The transformers, in the order in which they are applied; none if one has a mistake.
pub(super) fn transformers(namer: &Fields<'_>) -> Option<Vec<Transformer>> {
    if namer.get("transformers").is_none() {
        return Some(Vec::new());
    }
    let shape_of = |word: &str| KINDS.iter().find(|kind| kind.word == word).map(|kind| kind.shape);
    let all = namer.list_by_kind("transformers", &UNKNOWN, shape_of)?;
    let read = |fields: &Fields<'_>| {
        fields.missing("kind", "for example `kind: io.l5d.port`");
        let words: Vec<_> = KINDS.iter().map(|kind| (kind.word, kind)).collect();
        (fields.choice("kind", &words)?.read)(fields)
    };
    let found: Vec<_> = all.iter().filter_map(read).collect();
    (found.len() == all.len()).then_some(found)
}

fn port(fields: &Fields<'_>) -> Option<Transformer> {
    fields.missing("port", "for example `port: 4140`");
    number(fields, "port").map(Transformer::Port)
}

fn number(fields: &Fields<'_>, key: &str) -> Option<u16> {
    fields.count(key, 1..=u64::from(u16::MAX), "ports begin at 1").map(|port| port as u16)
}

fn specific_host(fields: &Fields<'_>) -> Option<Transformer> {
    fields.missing("host", "for example `host: 10.0.0.1`");
    address(fields, "host", fields.word("host")?).map(Transformer::SpecificHost)
}

fn address(fields: &Fields<'_>, key: &str, text: &str) -> Option<IpAddr> {
    let ip = text.parse();
    if ip.is_err() {
        fields.wrong(key, format!("`{text}` is no IP address"), "names are not looked up here");
    }
    ip.ok()
}

fn bits(fields: &Fields<'_>) -> u8 {
    let zero = "every address would be in the same subnet";
    fields.count("netmaskBits", 1..=128, zero).map_or(DEFAULT_BITS, |bits| bits as u8)
}

/// Kubernetes tells a pod its address by the variable that its manifest names so.
fn local_node(fields: &Fields<'_>) -> Option<Transformer> {
    let ip = match (fields.get("ip"), std::env::var("POD_IP")) {
        (Some(_), _) => address(fields, "ip", fields.word("ip")?)?,
        (None, Ok(own)) => address(fields, "kind", &own)?,
        (None, Err(_)) => {
            let help =
                "set the variable POD_IP in the pod's manifest (`status.podIP`), or write `ip: 10.0.0.1`";
            fields.wrong("kind", "the subnet of which node?", help);
            return None;
        }
    };
    Some(Transformer::LocalNode(Subnet { ip, bits: bits(fields) }))
}

fn daemon_set(fields: &Fields<'_>) -> Option<Transformer> {
    let help = "the gateways' service: `{namespace: l5d, port: incoming, service: l5d}`";
    let word = |key: &str| {
        fields.missing(key, help);
        fields.word(key)
    };
    let [namespace, port, service] = [word("namespace"), word("port"), word("service")];
    let host = if fields.get("k8sHost").is_some() { fields.word("k8sHost")? } else { "localhost" };
    let k8s_port = if fields.get("k8sPort").is_some() { number(fields, "k8sPort")? } else { 8001 };
    let api = Params { base: format!("http://{host}:{k8s_port}"), tls: None, credentials: Credentials::None };
    let elements = [namespace?, port?, service?].map(str::as_bytes);
    Some(Transformer::DaemonSet {
        api: Box::new(k8s::Params { api, namespace: None, label: None }),
        gateways: Path::from_elements(elements).ok()?,
        bits: bits(fields),
    })
}

fn path(fields: &Fields<'_>) -> Option<Path> {
    fields.missing("path", "for example `path: /$/inet/127.0.0.1/4140`");
    fields.path("path")
}
