//! The namers that a configuration can ask for: each kind's settings, and how it is built of them.

use super::dns::Hosts;
use super::fs;
use crate::names::namer::Namer;
use crate::names::source::{self, Watched};
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
    /// With these hosts; nothing is kept.
    pub fn new(hosts: Arc<Hosts>) -> Self {
        Self {
            hosts,
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
    /// `io.l5d.fs`: a folder in which each file is a service.
    Fs(fs::Params),
}

impl Discovery {
    /// Starts the namer. Must be called on a runtime.
    ///
    /// # Errors
    /// Files or addresses that cannot be used at all. A source that cannot be reached is none: names are failed until it can.
    pub fn build(&self, prefix: Path, env: &Env) -> Result<Arc<dyn Namer>, String> {
        let env = &Env { asks: self.to_string().into(), ..env.clone() };
        Ok(match self {
            Self::Fs(params) => Arc::new(fs::Fs::new(prefix, &params.root, Arc::clone(&env.hosts))),
        })
    }

    /// What is allowed and yet hardly meant.
    pub fn doubt(&self) -> Option<String> {
        match self {
            Self::Fs(params) => params.doubt(),
        }
    }
}

/// As in "names below /#/x are ...".
impl fmt::Display for Discovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fs(params) => params.fmt(f),
        }
    }
}
