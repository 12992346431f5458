//! `/$/com.twitter.serverset/<hosts>/<node path>[:<endpoint>][#<shard>]`: the ensemble stands in the path.
//!
//! Paths come from tables, and those may come from callers: the number of ensembles is bounded.

use super::{Place, follow};
use crate::names::source::{Meaning, Member, Says, Source, SourceError};
use crate::outside::zk::{self, Zk, ZkError};
use async_trait::async_trait;
use futures_util::future::select_all;
use muxgate_wire::name::Path;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The namer's word below `/$/`.
pub const SYSTEM: &str = "com.twitter.serverset";

/// Ensembles that paths may name at the same time.
pub const MAX_ENSEMBLES: usize = 16;

/// Ensembles that one path may name, to be asked side by side.
const MAX_SIDE_BY_SIDE: usize = 4;

/// Where a path of the system namer leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The first element: `host:port`, several with commas between; several such lists with `#` between.
    pub hosts: String,
    /// The rest.
    pub place: Place,
}

impl Target {
    /// Reads a path behind the namer's prefix. `Ok(None)`: it names no ensemble, or no node.
    ///
    /// # Errors
    /// What [`Place::of`] says.
    pub fn of(path: &Path) -> Result<Option<Self>, String> {
        let Some(hosts) = path.raw_elements().next() else { return Ok(None) };
        let Ok(hosts) = String::from_utf8(hosts.into_owned()) else { return Ok(None) };
        Ok(Place::of(&path.skip(1))?.map(|place| Self { hosts, place }))
    }

    fn ensembles(&self) -> Result<Vec<zk::Params>, String> {
        let ensembles: Result<Vec<_>, _> = self.hosts.split('#').map(zk::Params::parse).collect();
        match ensembles {
            Ok(ensembles) if ensembles.len() > MAX_SIDE_BY_SIDE => {
                Err(format!("{}: more than {MAX_SIDE_BY_SIDE} ensembles side by side", self.hosts))
            }
            Ok(ensembles) => Ok(ensembles),
            Err(wrong) => Err(format!("{}: {wrong}", self.hosts)),
        }
    }
}

/// Server sets of the ensembles that paths name.
#[derive(Default)]
pub struct System {
    ensembles: Mutex<HashMap<String, Arc<Zk>>>,
}

impl System {
    pub(super) fn ensemble(&self, params: zk::Params) -> Result<Arc<Zk>, SourceError> {
        let name = params.to_string();
        let mut ensembles = self.ensembles.lock();
        if let Some(known) = ensembles.get(&name) {
            return Ok(Arc::clone(known));
        }
        if ensembles.len() >= MAX_ENSEMBLES {
            ensembles.retain(|_, ensemble| Arc::strong_count(ensemble) > 1);
        }
        if ensembles.len() >= MAX_ENSEMBLES {
            let text = format!("{name}: {MAX_ENSEMBLES} other ensembles of ZooKeeper are asked already");
            return Err(SourceError(text));
        }
        let ensemble = Arc::new(Zk::new(params));
        ensembles.insert(name, Arc::clone(&ensemble));
        Ok(ensemble)
    }

    fn ensembles(&self, target: &Target) -> Result<Vec<Arc<Zk>>, SourceError> {
        target.ensembles().map_err(SourceError)?.into_iter().map(|params| self.ensemble(params)).collect()
    }
}

#[async_trait]
impl Source for System {
    /// The whole path: nothing is left as residual.
    fn meanings(&self, rest: &Path) -> Result<Vec<Meaning>, String> {
        let Some(target) = Target::of(rest)? else { return Ok(Vec::new()) };
        target.ensembles()?;
        Ok(vec![Meaning { subject: rest.clone(), name: Path::empty(), used: rest.len() }])
    }

    async fn follow(&self, subject: &Path, says: &Says) -> SourceError {
        let Ok(Some(target)) = Target::of(subject) else {
            return SourceError(format!("{subject} is no server set"));
        };
        let ensembles = match self.ensembles(&target) {
            Ok(ensembles) => ensembles,
            Err(error) => return error,
        };
        let told = Mutex::new(BTreeMap::new());
        let all = ensembles.len();
        let follow = |(at, zk): (usize, &Arc<Zk>)| {
            let (zk, place, told) = (Arc::clone(zk), &target.place, &told);
            let tell = move |members| {
                let mut told = told.lock();
                told.insert(at, members);
                if told.len() == all {
                    says.all([(Path::empty(), together(&told))]);
                }
            };
            Box::pin(async move { follow::set(&zk, place, tell, || says.alive()).await })
        };
        let (error, ..): (ZkError, _, _) = select_all(ensembles.iter().enumerate().map(follow)).await;
        error.into()
    }

    async fn check(&self, subject: &Path) -> Result<(), SourceError> {
        let Ok(Some(target)) = Target::of(subject) else { return Ok(()) };
        for ensemble in self.ensembles(&target)? {
            ensemble.session().await?.stat("/").await?;
        }
        Ok(())
    }
}

/// The members that any of the ensembles has.
fn together(told: &BTreeMap<usize, Vec<Member>>) -> Vec<Member> {
    let mut all: Vec<Member> = Vec::new();
    for member in told.values().flatten() {
        if !all.iter().any(|known| known.host == member.host && known.port == member.port) {
            all.push(member.clone());
        }
    }
    all
}
