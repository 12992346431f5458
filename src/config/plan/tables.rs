//! The plan of `muxgate store`.

use super::Namer;
use crate::names::namers::dns;
use crate::outside::{http, zk};
use muxgate_rpc::tls::ServerFiles;
use muxgate_wire::name::Prefix;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// Where a store listens: the port of namerd's HTTP interface, for this host alone.
pub const STORE_ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 4180);

/// Where an embedded store keeps its tables.
pub const STORE_FOLDER: &str = "muxgate-store";

/// Where tables are in ZooKeeper, as in namerd.
pub const ZK_TABLES: &str = "/dtabs";

/// Where tables are in etcd, as in namerd.
pub const ETCD_TABLES: &str = "/namerd/dtabs";

/// A checked configuration of a store.
#[derive(Clone, Debug, PartialEq)]
pub struct StorePlan {
    /// Where it listens; port 0 takes a free one.
    pub address: SocketAddr,
    /// Certificates; none for plain connections.
    pub tls: Option<ServerFiles>,
    /// Where tables are kept.
    pub storage: StorageChoice,
    /// What names are looked up in, behind the system namers; of two that fit, the later one is asked first.
    pub namers: Vec<Namer>,
    /// Which DNS servers are asked.
    pub dns: dns::Params,
    /// Who may do what. None at all: whoever reaches the port may do everything.
    pub rights: Vec<Right>,
}

impl Default for StorePlan {
    fn default() -> Self {
        let storage = StorageChoice::Embedded(STORE_FOLDER.into());
        Self {
            address: STORE_ADDRESS,
            tls: None,
            storage,
            namers: Vec::new(),
            dns: dns::Params::default(),
            rights: Vec::new(),
        }
    }
}

/// A kind of storage, with its settings.
#[derive(Clone, Debug, PartialEq)]
pub enum StorageChoice {
    /// A file in this folder.
    Embedded(PathBuf),
    /// Nodes of ZooKeeper, below a path.
    ZooKeeper(zk::Params, String),
    /// Keys of a cluster of etcd, below a path.
    Etcd(Vec<http::Params>, String),
}

/// What some callers may do.
#[derive(Clone, Debug, PartialEq)]
pub struct Right {
    /// Stands in the history as who made a change.
    pub name: String,
    /// Whom it is for.
    pub proof: Proof,
    /// Namespaces; `*` in a name stands for any characters.
    pub namespaces: Vec<String>,
    /// Entries with these prefixes, or longer ones, may be changed, and no others. Empty: all.
    pub prefixes: Vec<Prefix>,
    /// Whether it allows to change something at all.
    pub write: bool,
}

/// How callers prove that a right is theirs.
#[derive(Clone, Debug, PartialEq)]
pub enum Proof {
    /// They know the token in this file, which is read again for each request.
    TokenFile(PathBuf),
    /// They know a token with this SHA-256.
    TokenSha256([u8; 32]),
    /// Their certificate has this subject, common name or alternative name.
    Certificate(String),
}
