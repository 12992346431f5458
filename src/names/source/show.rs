//! How what is watched stands: for the admin pages and the numbers.

use super::Subject;
use super::belief::State;
use super::namer::Shared;
use crate::names::standing::{Standing, Stands};
use muxgate_wire::name::Path;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

/// Subjects, and doubted names of each, that a page shows.
const MAX_SHOWN: usize = 1_000;
const MAX_DOUBTED: usize = 20;

/// All namers that watch a source.
#[derive(Default)]
pub struct Watched(Mutex<Vec<Weak<Shared>>>);

impl Watched {
    pub(super) fn add(&self, namer: &Arc<Shared>) {
        let mut all = self.0.lock();
        all.retain(|namer| namer.strong_count() > 0);
        all.push(Arc::downgrade(namer));
    }

    /// A list of namers, each with what it watches and how that stands: what is in trouble comes first.
    pub fn to_json(&self) -> Value {
        let all: Vec<_> = self.0.lock().iter().filter_map(Weak::upgrade).collect();
        all.iter().map(|namer| shown(namer)).collect()
    }
}

fn shown(namer: &Shared) -> Value {
    let subjects = namer.subjects();
    let mut rows: Vec<_> =
        subjects.iter().map(|subject| (subject.path(), subject.look(State::to_json))).collect();
    rows.sort_by_cached_key(|(path, row)| (row["state"] != "outage", (*path).clone()));
    rows.truncate(MAX_SHOWN);
    let rows: Vec<Value> = rows
        .into_iter()
        .map(|(path, mut row)| {
            row["subject"] = path.as_str().into();
            row
        })
        .collect();
    json!({ "namer": namer.prefix().as_str(), "watched": subjects.len(), "subjects": rows })
}

impl State {
    fn to_json(&self) -> Value {
        let doubted = self.doubted().take(MAX_DOUBTED).map(|name| Value::from(name.as_str()));
        let state = match (&self.outage, self.told) {
            (Some(_), _) => "outage",
            (None, Some(_)) => "well",
            (None, None) => "pending",
        };
        json!({
            "state": state,
            "names": self.known(),
            "held": self.holds,
            "heardMs": self.heard.map(|at| at.elapsed().as_millis() as u64),
            "toldMs": self.told.map(|at| at.elapsed().as_millis() as u64),
            "outageMs": self.outage.as_ref().map(|(since, _)| since.elapsed().as_millis() as u64),
            "error": self.last_error(),
            "doubted": doubted.collect::<Vec<_>>(),
        })
    }

    /// How old its oldest answer in use is, if it has any.
    pub(super) fn age(&self) -> Option<Duration> {
        if self.holds == 0 {
            return None;
        }
        let on_disk = self.oldest.map(|at| SystemTime::now().duration_since(at).unwrap_or_default());
        on_disk.max(self.told.and(self.heard).map(|at| at.elapsed()))
    }
}

/// A name of a subject; holding this does not keep it watched.
pub(super) struct Stand {
    subject: Arc<Subject>,
    name: Path,
}

impl Stand {
    pub(super) fn of(subject: &Arc<Subject>, name: &Path) -> Arc<dyn Stands> {
        Arc::new(Self { subject: Arc::clone(subject), name: name.clone() })
    }
}

impl Stands for Stand {
    fn standing(&self) -> Standing {
        self.subject.look(|state| state.standing(&self.name))
    }
}
