//! What can exist: a configuration that has been checked. Only [`super::parse`] makes one.

mod tables;
mod tls;

pub use tables::{
    ETCD_TABLES, Proof, Right, STORE_ADDRESS, STORE_FOLDER, StorageChoice, StorePlan, ZK_TABLES,
};
pub use tls::{ClientTls, CommonName, ListenerTls};

use crate::flow::{accept, address, admit, bind, choose, dispatch};
use crate::names;
use crate::names::announce;
use crate::names::namers::configured::{Discovery, Env};
use crate::names::namers::dns;
use crate::names::namers::pattern::Pattern;
use crate::names::table;
use crate::names::transform::Transformer;
use muxgate_rpc::tls::ClientFiles;
use muxgate_wire::mux::handshake::CompressionLevel;
use muxgate_wire::name::{Dtab, Path, Prefix};
use muxgate_wire::thrift::Protocol;
use std::collections::HashSet;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A checked configuration. Cloning is cheap enough for start-up; share it in an `Arc` after that.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub(super) name: Arc<str>,
    pub(super) text: Arc<str>,
    pub(super) threads: usize,
    pub(super) admin: Option<Admin>,
    pub(super) grace: Duration,
    pub(super) zipkin: Option<Zipkin>,
    pub(super) recent_traces: usize,
    pub(super) state: State,
    pub(super) dns: dns::Params,
    pub(super) namers: Vec<Namer>,
    pub(super) store: Option<table::Params>,
    pub(super) dtab: Dtab,
    pub(super) listeners: Vec<Listener>,
    pub(super) services: Vec<Rule<ServicePart>>,
    pub(super) clients: Vec<Rule<ClientPart>>,
}

/// Where what is learned is kept over a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Wherever the command line finds a place; nowhere, if it does not look.
    #[default]
    Default,
    /// In this folder.
    Folder(PathBuf),
    /// Nowhere.
    Nowhere,
}

/// The admin server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admin {
    /// Where it listens; port 0 takes a free one.
    pub address: SocketAddr,
}

/// Where spans go.
#[derive(Clone, Debug, PartialEq)]
pub struct Zipkin {
    /// The whole address spans are posted to, path included.
    pub url: http::Uri,
    /// Share of the calls without a decision of their own that are traced, 0 to 1.
    pub sample_rate: f64,
    /// Our name in traces.
    pub service_name: String,
}

/// A source of addresses, reached by names below `/#` and its prefix.
#[derive(Clone, Debug, PartialEq)]
pub struct Namer {
    /// Without `/#`: `/io.l5d.fs` by default.
    pub prefix: Path,
    /// What it asks.
    pub discovery: Discovery,
    /// What stands between it and the table, in the order in which they are applied.
    pub transformers: Vec<Transformer>,
}

impl Namer {
    /// Starts the namer, with its transformers in front. Must be called on a runtime.
    ///
    /// # Errors
    /// What cannot be used at all, and whose it is.
    pub fn start(&self, env: &Env) -> Result<Arc<dyn names::Namer>, String> {
        let prefix = Path::parse("/#").unwrap_or_default().concat(&self.prefix);
        let wrong = |why| format!("the namer {}: {why}", self.prefix);
        let plain = self.discovery.build(prefix, env).map_err(wrong)?;
        self.transformers.iter().try_fold(plain, |namer, change| change.before(namer, env).map_err(wrong))
    }
}

/// As in "names below /#/x are ...".
impl fmt::Display for Namer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.discovery.fmt(f)?;
        self.transformers.iter().try_for_each(|transformer| write!(f, ", {transformer}"))
    }
}

/// A place where listeners announce themselves, reached by names below `/#` and its prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcer {
    /// Without `/#`: `/io.l5d.serversets` by default.
    pub prefix: Path,
    /// Whom it tells.
    pub params: announce::Params,
}

/// One announcement of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announce {
    /// Whom it tells.
    pub params: announce::Params,
    /// The node of the server set.
    pub node: String,
}

/// A port, with the settings of the rooms that are one per listener.
#[derive(Clone, Debug, PartialEq)]
pub struct Listener {
    /// Connections.
    pub accept: accept::Params,
    /// Names of calls.
    pub address: address::Params,
    /// Limits.
    pub admit: admit::Params,
    /// Certificates; none for plain connections.
    pub tls: Option<ListenerTls>,
    /// Where it announces itself.
    pub announce: Vec<Announce>,
}

/// Settings for the names that a prefix matches.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rule<T> {
    pub prefix: Prefix,
    /// What the prefix keeps of a name, if it has captures: then both must match.
    pub captures: Option<Pattern>,
    pub part: T,
}

impl<T> Rule<T> {
    pub fn matches(&self, name: &Path) -> bool {
        self.prefix.matches(name)
            && self.captures.as_ref().is_none_or(|pattern| pattern.matches(name).is_some())
    }
}

/// The keys that one entry of `services` sets. For keys that can be switched off, the inner none means off.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ServicePart {
    pub total: Option<Option<Duration>>,
    pub binding: Option<Duration>,
    pub percent: Option<f64>,
    pub min_per_sec: Option<u32>,
    pub ttl: Option<Duration>,
    pub classifier: Option<bind::Classifier>,
    pub backoff: Option<bind::Backoff>,
}

/// The keys that one entry of `clients` sets.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ClientPart {
    pub balancer: Option<choose::Balancer>,
    pub upstream: Option<dispatch::Upstream>,
    pub protocol: Option<Option<Protocol>>,
    pub strip_service: Option<bool>,
    pub attempt: Option<Option<Duration>>,
    pub connect: Option<Duration>,
    pub accrual: Option<Option<dispatch::Accrual>>,
    pub max_size: Option<usize>,
    pub max_waiters: Option<usize>,
    pub idle: Option<Duration>,
    pub life: Option<Option<Duration>>,
    pub declared_fails: Option<bool>,
    pub max_frame: Option<usize>,
    pub tls: Option<Option<ClientTls>>,
    pub compression: Option<CompressionLevel>,
}

impl Plan {
    /// What messages call the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Worker threads, at least one.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The admin server, if there is one.
    pub fn admin(&self) -> Option<&Admin> {
        self.admin.as_ref()
    }

    /// How long a shutdown waits for calls in progress.
    pub fn grace(&self) -> Duration {
        self.grace
    }

    /// Where spans go, if anywhere.
    pub fn zipkin(&self) -> Option<&Zipkin> {
        self.zipkin.as_ref()
    }

    /// Number of recent traces that the admin server can show.
    pub fn recent_traces(&self) -> usize {
        self.recent_traces
    }

    /// Where answers are kept over a restart.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Keeps them somewhere else.
    pub fn keep_state(&mut self, state: State) {
        self.state = state;
    }

    /// Whether there is something to keep: a source or a store is watched.
    pub fn has_state(&self) -> bool {
        self.store.is_some()
            || self.namers.iter().any(|namer| namer.discovery.is_watched())
            || self.text.contains(crate::names::namers::serversets::SYSTEM)
    }

    /// Who is asked about host names.
    pub fn dns(&self) -> &dns::Params {
        &self.dns
    }

    /// The namers in the order of the file; of two that fit, the later one is asked first.
    pub fn namers(&self) -> &[Namer] {
        &self.namers
    }

    /// Where the table below the one of the file is followed, if anywhere.
    pub fn store(&self) -> Option<&table::Params> {
        self.store.as_ref()
    }

    /// The table of the file; the base table is this one, laid over that of the store.
    pub fn dtab(&self) -> &Dtab {
        &self.dtab
    }

    /// The listeners, at least one.
    pub fn listeners(&self) -> &[Listener] {
        &self.listeners
    }

    /// The settings of a service: the defaults, and over them every entry whose prefix matches its name.
    pub fn service(&self, name: &Path) -> bind::Params {
        let mut params = bind::Params::default();
        matching(&self.services, name).for_each(|part| part.apply(&mut params));
        params
    }

    /// The settings of a cluster: the defaults, and over them every entry whose prefix matches its bound id.
    pub fn client(&self, id: &Path) -> (choose::Params, dispatch::Params) {
        let mut params = (choose::Params::default(), dispatch::Params::default());
        matching(&self.clients, id).for_each(|part| part.apply(&mut params.0, &mut params.1));
        params
    }

    /// The certificates of all entries of `clients`, each once.
    pub fn client_files(&self) -> HashSet<&ClientFiles> {
        self.clients.iter().filter_map(|rule| Some(&rule.part.tls.as_ref()?.as_ref()?.files)).collect()
    }

    /// How connections to a cluster are encrypted: by the last entry that says so, with what its prefix keeps of the bound
    /// id in the name that is asked for.
    pub fn client_tls(&self, id: &Path) -> Option<(&ClientTls, Option<String>)> {
        let says = |rule: &&Rule<ClientPart>| rule.part.tls.is_some() && rule.matches(id);
        let rule = self.clients.iter().rfind(says)?;
        let tls = rule.part.tls.as_ref()?.as_ref()?;
        let kept = rule.captures.as_ref().and_then(|pattern| pattern.matches(id)).unwrap_or_default();
        Some((tls, tls.name.as_ref().map(|name| name.fill(&kept))))
    }
}

fn matching<'a, T>(rules: &'a [Rule<T>], name: &'a Path) -> impl Iterator<Item = &'a T> {
    rules.iter().filter(|rule| rule.matches(name)).map(|rule| &rule.part)
}

/// Takes what an entry says, and leaves what it does not say.
fn set<T: Clone>(value: &mut T, said: &Option<T>) {
    if let Some(said) = said {
        value.clone_from(said);
    }
}

impl ServicePart {
    fn apply(&self, params: &mut bind::Params) {
        set(&mut params.total, &self.total);
        set(&mut params.binding, &self.binding);
        set(&mut params.budget.percent, &self.percent);
        set(&mut params.budget.min_per_sec, &self.min_per_sec);
        set(&mut params.budget.ttl, &self.ttl);
        set(&mut params.retries.classifier, &self.classifier);
        set(&mut params.retries.backoff, &self.backoff);
    }
}

impl ClientPart {
    fn apply(&self, choose: &mut choose::Params, dispatch: &mut dispatch::Params) {
        set(&mut choose.balancer, &self.balancer);
        set(&mut dispatch.upstream, &self.upstream);
        set(&mut dispatch.protocol, &self.protocol);
        set(&mut dispatch.strip_service, &self.strip_service);
        set(&mut dispatch.attempt, &self.attempt);
        set(&mut dispatch.connect, &self.connect);
        set(&mut dispatch.accrual, &self.accrual);
        set(&mut dispatch.pool.max_size, &self.max_size);
        set(&mut dispatch.pool.max_waiters, &self.max_waiters);
        set(&mut dispatch.pool.idle, &self.idle);
        set(&mut dispatch.pool.life, &self.life);
        set(&mut dispatch.declared_fails, &self.declared_fails);
        set(&mut dispatch.max_frame, &self.max_frame);
        set(&mut dispatch.compression, &self.compression);
    }
}
