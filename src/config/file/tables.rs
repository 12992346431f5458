//! The file of `muxgate store`: `listen`, `data` or `storage`, `tls`, `namers`, `dns`, `rights`.

use super::super::node::{Node, Value};
use super::super::plan::{ETCD_TABLES, Proof, Right, STORE_ADDRESS, StorageChoice, StorePlan, ZK_TABLES};
use super::super::problem::{Problems, Report};
use super::{Fields, File, Shape, dns, namers, remote, tls, zk};
use muxgate_rpc::tls::ServerFiles;
use muxgate_wire::mux::handshake::TlsLevel;
use muxgate_wire::name::Prefix;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Where etcd is, if nothing is said.
const ETCD_HOST: &str = "localhost";
/// And on which port.
const ETCD_PORT: u16 = 2379;

const ROOT: Shape = Shape {
    what: "the file of a store",
    keys: &["listen", "data", "storage", "tls", "namers", "dns", "rights"],
    strangers: &[
        ("interfaces", "there is one: write `listen: 127.0.0.1:4180`, and `tls` beside it"),
        ("admin", "pages and `/health` are on the same port: leave this out"),
        ("ip", "write `listen: IP:PORT`"),
        ("port", "write `listen: IP:PORT`"),
        ("namespaces", "write tables over HTTP: they are kept"),
        ("dtab", "this belongs into a gateway's file; tables of the store are written over HTTP"),
    ],
};

const STORAGE: [(&str, &Shape, Reader); 3] = [
    (
        "embedded",
        &Shape {
            what: "storage `embedded`",
            keys: &["kind", "dir"],
            strangers: &[("path", "did you mean `dir`?")],
        },
        embedded,
    ),
    (
        "io.l5d.zk",
        &Shape {
            what: "storage `io.l5d.zk`",
            keys: &["kind", "zkAddrs", "pathPrefix", "sessionTimeoutMs", "authInfo"],
            strangers: &[("acls", "nodes are made as `authInfo` says: leave this out")],
        },
        zookeeper,
    ),
    (
        "io.l5d.etcd",
        &Shape {
            what: "storage `io.l5d.etcd`",
            keys: &["kind", "host", "port", "addresses", "pathPrefix", "tls"],
            strangers: &[("endpoints", "write `addresses`, a list such as [\"etcd1:2379\", \"etcd2:2379\"]")],
        },
        etcd,
    ),
];

type Reader = fn(&Fields<'_>) -> Option<StorageChoice>;

/// A kind that is not known: only that is said of it.
const UNKNOWN: Shape = Shape { what: "`storage`", keys: &["kind"], strangers: &[] };

const RIGHT: Shape = Shape {
    what: "a right",
    keys: &["name", "tokenFile", "tokenSha256", "certificate", "namespaces", "prefixes", "access"],
    strangers: &[
        ("token", "write `tokenFile`, or `tokenSha256`: secrets stay out of this file"),
        ("namespace", "write `namespaces`, a list"),
        ("prefix", "write `prefixes`, a list"),
    ],
};

/// Longest name of a right.
const MAX_NAME: usize = 100;

/// Reads the file of a store.
pub(in crate::config) fn read(name: &str, text: &str) -> Result<StorePlan, Report> {
    let file = File { text, problems: Problems::default() };
    let root = if text.len() > crate::config::MAX_FILE {
        let message = format!("the file has {} bytes, the limit is {}", text.len(), crate::config::MAX_FILE);
        file.problems.add(0..0, message, "");
        None
    } else {
        Node::read(text, &file.problems)
    };
    let plan = root.as_ref().and_then(|root| plan(&file, root));
    file.problems.finish(name, text, plan)
}

fn plan(file: &File<'_>, root: &Node) -> Option<StorePlan> {
    let fields = Fields::open(file, &ROOT, root)?;
    let address = address(&fields);
    let tls = certificates(&fields);
    let namers = namers::namers(&fields);
    let storage = storage(&fields);
    let dns = dns::dns(&fields);
    let rights = rights(&fields, tls.as_ref());
    Some(StorePlan { address: address?, tls, storage: storage?, namers: namers?, dns, rights: rights? })
}

fn address(fields: &Fields<'_>) -> Option<SocketAddr> {
    if fields.get("listen").is_none() {
        return Some(STORE_ADDRESS);
    }
    let text = fields.word("listen")?;
    let read = text.parse();
    if read.is_err() {
        fields.wrong("listen", format!("`{text}` is no IP:PORT"), "for example `listen: 127.0.0.1:4180`");
    }
    read.ok()
}

fn certificates(fields: &Fields<'_>) -> Option<ServerFiles> {
    fields.get("tls")?;
    let tls = tls::server(fields)?;
    if tls.opportunistic != TlsLevel::Off {
        fields.wrong_in(
            "tls",
            "opportunistic",
            "HTTP is encrypted from its first byte",
            "leave `opportunistic` out",
        );
    }
    Some(tls.files)
}

fn storage(fields: &Fields<'_>) -> Option<StorageChoice> {
    if fields.get("storage").is_none() {
        return match fields.get("data") {
            None => Some(StorePlan::default().storage),
            Some(_) => Some(StorageChoice::Embedded(fields.word("data")?.into())),
        };
    }
    if fields.get("data").is_some() {
        let help = "`data: DIR` is short for `storage: {kind: embedded, dir: DIR}`: leave one out";
        fields.wrong("data", "there is `storage` as well", help);
    }
    let kinds = STORAGE.map(|(word, ..)| word);
    if matches!(fields.get("storage"), Some(Node { value: Value::Text(_), .. })) {
        // Which says how it is written.
        fields.section_of_kind("storage", &UNKNOWN, &kinds)?;
    }
    let shape_of = |kind: &str| STORAGE.iter().find(|(word, ..)| *word == kind).map(|(_, shape, _)| *shape);
    let section = fields.section_by_kind("storage", &UNKNOWN, shape_of)?;
    section.missing("kind", "for example `kind: embedded`");
    let words = STORAGE.map(|(word, _, read)| (word, read));
    section.choice("kind", &words)?(&section)
}

fn embedded(fields: &Fields<'_>) -> Option<StorageChoice> {
    fields.missing("dir", "the folder in which tables are kept: `dir: muxgate-store`");
    Some(StorageChoice::Embedded(fields.word("dir")?.into()))
}

fn zookeeper(fields: &Fields<'_>) -> Option<StorageChoice> {
    let prefix = path_prefix(fields, ZK_TABLES);
    Some(StorageChoice::ZooKeeper(zk::ensemble(fields)?, prefix?))
}

fn etcd(fields: &Fields<'_>) -> Option<StorageChoice> {
    let prefix = path_prefix(fields, ETCD_TABLES);
    let nodes = remote::of_addresses(fields, ETCD_HOST, ETCD_PORT)?;
    Some(StorageChoice::Etcd(nodes, prefix?))
}

fn path_prefix(fields: &Fields<'_>, default: &str) -> Option<String> {
    match fields.get("pathPrefix") {
        None => Some(default.to_owned()),
        Some(_) => Some(fields.path("pathPrefix")?.as_str().to_owned()),
    }
}

fn rights(root: &Fields<'_>, tls: Option<&ServerFiles>) -> Option<Vec<Right>> {
    if root.get("rights").is_none() {
        return Some(Vec::new());
    }
    let all = root.list("rights", &RIGHT)?;
    if all.is_empty() {
        root.wrong("rights", "nobody could do anything", "leave `rights` out to let everybody do everything");
    }
    let mut names = BTreeSet::new();
    let read: Vec<_> = all.iter().filter_map(|fields| right(fields, tls, &mut names)).collect();
    (read.len() == all.len()).then_some(read)
}

fn right(fields: &Fields<'_>, tls: Option<&ServerFiles>, names: &mut BTreeSet<String>) -> Option<Right> {
    fields.missing("name", "it stands in the history as who made a change: `name: team-a`");
    fields.missing("namespaces", "for example `namespaces: [default]`, or `[\"*\"]` for all");
    fields.missing("access", "write `access: read` or `access: write`");
    let (proof, prefixes) = (proof(fields, tls), prefixes(fields));
    let write = fields.choice("access", &[("read", false), ("write", true)]);
    let namespaces = fields.words("namespaces", "for example `namespaces: [default, team-*]`");
    let name = fields.word("name")?;
    if name.len() > MAX_NAME || !names.insert(name.to_owned()) {
        fields.wrong(
            "name",
            format!("`{name}` is taken, or too long"),
            "give each right a short name of its own",
        );
        return None;
    }
    if write == Some(false) && fields.get("prefixes").is_some() {
        fields.wrong(
            "prefixes",
            "this right changes nothing",
            "leave `prefixes` out, or write `access: write`",
        );
    }
    let namespaces = namespaces?.into_iter().map(str::to_owned).collect();
    Some(Right { name: name.to_owned(), proof: proof?, namespaces, prefixes: prefixes?, write: write? })
}

fn proof(fields: &Fields<'_>, tls: Option<&ServerFiles>) -> Option<Proof> {
    let given = ["tokenFile", "tokenSha256", "certificate"].map(|key| fields.get(key).is_some());
    let help = "a right has one of `tokenFile`, `tokenSha256` and `certificate`";
    if given.iter().filter(|given| **given).count() != 1 {
        fields.wrong("name", "whom is this right for?", help);
        return None;
    }
    if let Some(path) = fields.get("tokenFile").and_then(|_| fields.word("tokenFile")) {
        return Some(Proof::TokenFile(PathBuf::from(path)));
    }
    if fields.get("tokenSha256").is_some() {
        let text = fields.word("tokenSha256")?;
        let read = sha256(text);
        if read.is_none() {
            let help = "64 hex digits, as from `printf %s TOKEN | sha256sum`";
            fields.wrong("tokenSha256", "this is no SHA-256", help);
        }
        return read.map(Proof::TokenSha256);
    }
    let name = fields.word("certificate")?;
    if !tls.is_some_and(|files| files.clients != muxgate_rpc::tls::ClientAuth::Off) {
        let help = "write `tls` with `caCertPath`, the authorities of such certificates";
        fields.wrong("certificate", "nobody is asked for a certificate", help);
    }
    Some(Proof::Certificate(name.to_owned()))
}

fn sha256(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    let digits: Vec<_> = text.chars().map(|c| c.to_digit(16)).collect::<Option<_>>()?;
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = pair.iter().fold(0, |byte, digit| byte << 4 | *digit as u8);
    }
    Some(bytes)
}

fn prefixes(fields: &Fields<'_>) -> Option<Vec<Prefix>> {
    if fields.get("prefixes").is_none() {
        return Some(Vec::new());
    }
    let help = "for example `prefixes: [/svc/team-a]`";
    let words = fields.words("prefixes", help)?;
    if words.is_empty() {
        fields.wrong("prefixes", "no entry could be changed", "leave `prefixes` out for all entries");
    }
    let mut read = Vec::new();
    for (index, word) in words.iter().enumerate() {
        match Prefix::parse(word) {
            Ok(prefix) => read.push(prefix),
            Err(error) => {
                fields.wrong_item("prefixes", index, format!("`{word}` is no prefix: {error}"), help)
            }
        }
    }
    (read.len() == words.len()).then_some(read)
}
