//! How an answer that is watched stands with its source: current, or kept, since when and why.

use std::fmt;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// How an answer stands right now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Standing {
    /// Since when the source cannot be asked, and what it last said of that.
    pub outage: Option<(Instant, String)>,
    /// When the source last confirmed it, in this process.
    pub confirmed: Option<Instant>,
    /// It was kept on disk then, and has not been confirmed since.
    pub kept: Option<SystemTime>,
    /// Since when the source, back from an outage, says that there are no members, which is doubted.
    pub doubted: Option<Instant>,
}

impl Standing {
    /// The age of the answer.
    pub fn age(&self) -> Option<Duration> {
        let on_disk = || Some(SystemTime::now().duration_since(self.kept?).unwrap_or_default());
        self.confirmed.map(|at| at.elapsed()).or_else(on_disk)
    }

    /// Why it is an old answer that is served; nothing, if it is current.
    pub fn explain(&self) -> Option<String> {
        let from = match (self.kept, self.age()) {
            (Some(_), Some(age)) => format!("the answer kept on disk {} s ago", age.as_secs()),
            _ => "the last good answer".to_owned(),
        };
        match (&self.outage, self.doubted) {
            (Some((since, why)), _) => {
                Some(format!("served from {from} since {} s: {why}", since.elapsed().as_secs()))
            }
            (None, Some(since)) => Some(format!(
                "served from {from}: the source came back without it {} s ago, which is doubted",
                since.elapsed().as_secs()
            )),
            (None, None) => None,
        }
    }
}

/// Whoever knows how an answer stands.
pub trait Stands: Send + Sync {
    /// How it stands now.
    fn standing(&self) -> Standing;
}

impl fmt::Debug for dyn Stands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.standing().fmt(f)
    }
}
