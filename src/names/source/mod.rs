//! Discovery that is watched: what a namer has to know about its source, and the frame around it that decides what to
//! believe.
//!
//! A [`Source`] knows how to ask one discovery system; it asks, watches and reports, and gives up at the first sign of
//! trouble. Everything else is the frame's: one task a subject however many names want it, asking again with back-off and
//! jitter, a check of those that are silent, a full resync now and then, the last good answer during an outage, also that of
//! the process before, doubt of what comes back empty, host names, and what is told to the binder.

mod belief;
mod common;
mod namer;
pub mod params;
mod set;
mod show;
mod subject;

#[cfg(test)]
mod tests;

use common::Common;
pub use namer::Discovered;
pub use params::Params;
pub(super) use set::Set;
pub use show::Watched;
pub use subject::Says;
use subject::Subject;

use async_trait::async_trait;
use muxgate_wire::name::Path;
use std::fmt;
use std::sync::Arc;

/// One endpoint as a source tells it.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Address literal or host name; names are followed by DNS.
    pub host: Arc<str>,
    /// From 1.
    pub port: u16,
    /// Its weight among the members of its set; 1 if the source has none.
    pub weight: f64,
}

impl Member {
    /// A member of weight 1.
    pub fn new(host: impl Into<Arc<str>>, port: u16) -> Self {
        Self { host: host.into(), port, weight: 1.0 }
    }
}

/// What a path below a namer's prefix may stand for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// What has to be watched for it: a service, a namespace, or everything (`/`).
    pub subject: Path,
    /// Which name it is among those that the subject reports.
    pub name: Path,
    /// How many elements of the path it takes; the rest is residual.
    pub used: usize,
}

/// Why a source could not be asked, for people: what was asked of whom, and what happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceError(pub String);

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<crate::outside::http::HttpError> for SourceError {
    fn from(error: crate::outside::http::HttpError) -> Self {
        Self(error.text)
    }
}

/// A discovery system.
#[async_trait]
pub trait Source: Send + Sync + 'static {
    /// What the rest of a path, behind the namer's prefix, may stand for: the first that has members is meant. Nothing, if it
    /// cannot be a name here: that is negative. At most [`MAX_MEANINGS`] count.
    ///
    /// # Errors
    /// A path that is wrong whatever the source says; it says what is wanted.
    fn meanings(&self, rest: &Path) -> Result<Vec<Meaning>, String>;

    /// Asks for a subject, reports all of it, and goes on to report changes, for ever. Whoever waits for the next change must
    /// find out by itself that the connection is dead. Ends only because it cannot go on; the frame calls again, and then
    /// everything is asked for anew. Dropped when nobody wants the subject any more, or for a resync.
    async fn follow(&self, subject: &Path, says: &Says) -> SourceError;

    /// Whether the source can be asked about a subject right now. Called before a name that nobody reported is called
    /// unknown while the last sign of life is old. Cheap; within a few seconds.
    ///
    /// # Errors
    /// Why it cannot.
    async fn check(&self, subject: &Path) -> Result<(), SourceError>;
}

/// Meanings of one path that are looked at.
pub const MAX_MEANINGS: usize = 16;
