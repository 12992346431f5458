//! The namers that a configuration can ask for: each kind's settings, and how it is built of them.

use super::dns::{self, Hosts};
use super::serversets::{self, Serversets};
use super::{consul, dnssrv, etcd, fs, k8s, pattern};
use crate::names::namer::Namer;
use crate::names::source::{self, Discovered, Watched};
use crate::observe::Registry;
use crate::observe::stats::Limits;
use crate::outside::kept::Kept;
use muxgate_wire::name::Path;
use std::fmt;
use std::sync::Arc;

/// What namers share.
#[derive(Clone)]
pub struct Env {
    /// Follows host names; tasks of namers run where its tasks do.
    pub hosts: Arc<Hosts>,
    /// Which DNS servers are asked, unless a namer has its own.
    pub dns: dns::Params,
    /// When the answers of watched sources are doubted.
    pub belief: source::Params,
    /// Where their answers are kept over a restart.
    pub kept: Arc<Kept>,
    /// Where they are counted.
    pub registry: Arc<Registry>,
    /// All that are watched, for the admin pages.
    pub watched: Arc<Watched>,
    /// What the namer that is built asks: what was kept of another system is not used for it.
    pub asks: Arc<str>,
}

impl Env {
    /// With the hosts that these DNS servers know; nothing is kept. Tasks run on the current runtime.
    ///
    /// # Panics
    /// Outside a runtime.
    pub fn of(dns: &dns::Params) -> Self {
        Self { dns: dns.clone(), ..Self::new(Hosts::new(dns::Client::new(dns))) }
    }

    /// With these hosts; nothing is kept.
    pub fn new(hosts: Arc<Hosts>) -> Self {
        Self {
            hosts,
            dns: dns::Params::default(),
            belief: source::Params::default(),
            kept: Kept::nowhere(),
            registry: Registry::new(Limits::default()),
            watched: Arc::default(),
            asks: "".into(),
        }
    }
}

/// What a namer asks, and how.
#[derive(Clone, Debug, PartialEq)]
pub enum Discovery {
    /// `io.l5d.consul`: services of Consul.
    Consul(consul::Params),
    /// `io.l5d.etcd`: keys in etcd.
    Etcd(etcd::Params),
    /// `io.l5d.fs`: a folder in which each file is a service.
    Fs(fs::Params),
    /// `io.l5d.dnssrv`: SRV records.
    DnsSrv(dnssrv::Params),
    /// `io.l5d.rewrite`: names that become other names.
    Rewrite(pattern::Rewrite),
    /// `io.l5d.k8s`, `io.l5d.k8s.ns`: EndpointSlices of Kubernetes.
    K8s(k8s::Params),
    /// `io.l5d.serversets`: server sets in ZooKeeper.
    Serversets(serversets::Params),
}

impl Discovery {
    /// Starts the namer. Must be called on a runtime.
    ///
    /// # Errors
    /// Files or addresses that cannot be used at all. A source that cannot be reached is none: names are failed until it can.
    pub fn build(&self, prefix: Path, env: &Env) -> Result<Arc<dyn Namer>, String> {
        let env = &Env { asks: self.to_string().into(), ..env.clone() };
        Ok(match self {
            Self::Consul(params) => {
                let source = consul::Consul::new(params).map_err(|error| error.text)?;
                Arc::new(Discovered::new(prefix, source, env))
            }
            Self::Etcd(params) => {
                let source = etcd::EtcdSource::new(params).map_err(|error| error.text)?;
                Arc::new(Discovered::new(prefix, source, env))
            }
            Self::Fs(params) => Arc::new(fs::Fs::new(prefix, &params.root, Arc::clone(&env.hosts))),
            Self::DnsSrv(params) => Arc::new(dnssrv(prefix, params, env)),
            Self::Rewrite(rewrite) => Arc::new(pattern::Rewriter::new(prefix, rewrite.clone())),
            Self::K8s(params) => {
                let source = k8s::K8s::new(params).map_err(|error| error.text)?;
                Arc::new(Discovered::new(prefix, source, env))
            }
            Self::Serversets(params) => Arc::new(Discovered::new(prefix, Serversets::new(params), env)),
        })
    }

    /// Whether a source outside is watched, which may be away when it is needed.
    pub fn is_watched(&self) -> bool {
        !matches!(self, Self::Fs(_) | Self::Rewrite(_))
    }

    /// What is allowed and yet hardly meant.
    pub fn doubt(&self) -> Option<String> {
        match self {
            Self::Consul(params) => params.doubt(),
            Self::Fs(params) => params.doubt(),
            Self::DnsSrv(_) | Self::Rewrite(_) => None,
            Self::K8s(params) => params.doubt(),
            Self::Etcd(_) | Self::Serversets(_) => None,
        }
    }
}

/// As in "names below /#/x are ...".
impl fmt::Display for Discovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Consul(params) => params.fmt(f),
            Self::Etcd(params) => params.fmt(f),
            Self::Fs(params) => params.fmt(f),
            Self::DnsSrv(params) => params.fmt(f),
            Self::Rewrite(rewrite) => rewrite.fmt(f),
            Self::K8s(params) => params.fmt(f),
            Self::Serversets(params) => params.fmt(f),
        }
    }
}

fn dnssrv(prefix: Path, params: &dnssrv::Params, env: &Env) -> Discovered {
    let own = dns::Params { servers: params.servers.clone(), ..env.dns.clone() };
    let (client, hosts) = match params.servers.is_empty() {
        true => (dns::Client::new(&env.dns), Arc::clone(&env.hosts)),
        false => (dns::Client::new(&own), Hosts::new(dns::Client::new(&own))),
    };
    let env = Env { hosts, ..env.clone() };
    Discovered::new(prefix, dnssrv::DnsSrv::new(Arc::new(client), params.refresh), &env)
}
