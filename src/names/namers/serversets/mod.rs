//! Server sets in ZooKeeper: the configured namer `io.l5d.serversets`, whose ensemble stands in the configuration, and the
//! system namer `/$/com.twitter.serverset/<hosts>/...`, whose ensemble stands in the path.
//!
//! `/#/io.l5d.serversets/<node path>[:<endpoint>][#<shard>]`: a path whose node has no server set is tried without its last
//! element, which is left as residual, and so on. Changes are believed at once, removals too: Finagle holds those back for
//! ten seconds, so that a set that flickers does not. Here a set that shrinks because ZooKeeper was away is doubted by the frame, and a
//! member whose session ends is gone for good.

mod follow;
mod member;
mod params;
mod place;
mod system;
#[cfg(test)]
mod tests;
mod vector;

pub use member::{Endpoint, Member, Status};
pub use params::Params;
pub use place::Place;
pub use system::{MAX_ENSEMBLES, SYSTEM, System, Target};
pub use vector::{Vector, weight};

use crate::names::source::{Meaning, Says, Source, SourceError};
use crate::outside::zk::{Zk, ZkError};
use async_trait::async_trait;
use muxgate_wire::name::Path;

impl From<ZkError> for SourceError {
    fn from(error: ZkError) -> Self {
        Self(error.text)
    }
}

/// The server sets of one ensemble. A subject is a node with what is wanted of it; it has one name, `/`.
pub struct Serversets(Zk);

impl Serversets {
    /// Server sets of an ensemble.
    pub fn new(params: &Params) -> Self {
        Self(Zk::new(params.zk.clone()))
    }
}

#[async_trait]
impl Source for Serversets {
    /// One for each length of the path.
    fn meanings(&self, rest: &Path) -> Result<Vec<Meaning>, String> {
        Place::of(rest)?;
        let meaning = |used| {
            let subject = rest.take(used);
            let place = Place::of(&subject).ok()??;
            (!place.is_part()).then_some(Meaning { subject, name: Path::empty(), used })
        };
        Ok((1..=rest.len()).rev().filter_map(meaning).collect())
    }

    async fn follow(&self, subject: &Path, says: &Says) -> SourceError {
        let tell = |members| says.all([(Path::empty(), members)]);
        match Place::of(subject) {
            Ok(Some(place)) => follow::set(&self.0, &place, tell, || says.alive()).await.into(),
            Ok(None) => SourceError(format!("{subject} is no node of ZooKeeper")),
            Err(wrong) => SourceError(wrong),
        }
    }

    async fn check(&self, _: &Path) -> Result<(), SourceError> {
        self.0.session().await?.stat("/").await?;
        Ok(())
    }
}
