//! What a source said of each name of a subject, and what is believed of it.
//!
//! ```text
//!              members                          none, after an outage
//!   unknown ─────────────▶ believed ─────────────────────────────────▶ doubted
//!      │ ▲ disk, in an       │ ▲  none, without an outage               │   │
//!      │ └─ outage           │ └────────────── members ─────────────────┘   │ grace time
//!      ▼                     ▼                                              ▼
//!   pending, failed or negative  ◀──────────────────────────────────────────┘
//! ```
//!
//! An error takes nothing away. Everything here is done under the subject's lock, and costs what the names it is about cost.

use super::params::{FIRST_ANSWER, MAX_MEMBERS, MAX_NAMES, TRUST_SILENCE};
use super::{Common, Member, Set};
use crate::names::addr::Addr;
use crate::names::standing::Standing;
use muxgate_wire::name::Path;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::SystemTime;
use tokio::sync::watch;
use tokio::time::Instant;

/// What is believed of a name.
#[derive(Clone, Debug)]
pub(super) enum Belief {
    Pending,
    Failed(String),
    Neg,
    Members(watch::Receiver<Addr>),
}

pub(super) struct State {
    path: Path,
    common: Arc<Common>,
    names: HashMap<Path, Name>,
    /// How many hold a name.
    pub holds: usize,
    /// Since when nobody does.
    pub idle: Instant,
    /// When the source has last told everything.
    pub told: Option<Instant>,
    /// Since when it cannot be asked, and why.
    pub outage: Option<(Instant, String)>,
    last_error: Option<String>,
    pub heard: Option<Instant>,
    /// Names that wait until the source is known to be there.
    asking: Vec<Path>,
    /// Names whose emptiness is doubted, and until when: the grace time is the same for all, so these are in order.
    doubts: VecDeque<(Instant, Path)>,
    /// Until then, names that were kept on disk and are not reported are doubted too: the source came back after this process
    /// had started without it.
    restoring: Option<Instant>,
    /// When the oldest answer that was taken from disk was kept there.
    pub oldest: Option<SystemTime>,
}

#[derive(Default)]
pub(super) struct Name {
    /// What is in use.
    members: Vec<Member>,
    doubted: Option<Instant>,
    /// They are from disk.
    kept: Option<SystemTime>,
    holds: usize,
    set: Option<Set>,
    belief: Option<watch::Sender<Belief>>,
}

impl Name {
    fn set_is_held(&self) -> bool {
        self.set.as_ref().is_some_and(Set::is_held)
    }

    fn believe(&self, next: Belief) {
        if let Some(belief) = &self.belief {
            belief.send_if_modified(|now| {
                let same = match (&*now, &next) {
                    (Belief::Pending, Belief::Pending) | (Belief::Neg, Belief::Neg) => true,
                    (Belief::Failed(now), Belief::Failed(next)) => now == next,
                    (Belief::Members(now), Belief::Members(next)) => now.same_channel(next),
                    _ => false,
                };
                if !same {
                    *now = next;
                }
                !same
            });
        }
    }

    /// These members are in use from now on, by those who hold the name.
    fn publish(&mut self, common: &Common) {
        if self.holds == 0 && self.set.is_none() {
            return;
        }
        let set = self.set.get_or_insert_with(Set::new);
        set.update(&self.members, &common.hosts);
        let addr = set.addr();
        self.believe(Belief::Members(addr));
    }
}

impl State {
    pub fn new(path: Path, common: Arc<Common>) -> Self {
        common.stats.subjects.add(1);
        Self {
            path,
            common,
            names: HashMap::new(),
            holds: 0,
            idle: Instant::now(),
            told: None,
            outage: None,
            last_error: None,
            heard: None,
            asking: Vec::new(),
            doubts: VecDeque::new(),
            restoring: None,
            oldest: None,
        }
    }

    /// What is believed of names without members.
    fn otherwise(&self) -> Belief {
        match (&self.outage, self.told) {
            (Some((_, why)), _) => Belief::Failed(why.clone()),
            (None, Some(_)) => Belief::Neg,
            (None, None) => Belief::Pending,
        }
    }

    /// Whether names that are not known can be looked for on disk: this process was never told of them.
    fn restores(&self) -> bool {
        match self.told {
            None => self.outage.is_some(),
            Some(_) => self.restoring.is_some_and(|until| until > Instant::now()),
        }
    }

    /// Somebody wants a name. None, if there is no room for it.
    pub fn hold(&mut self, name: &Path) -> Option<watch::Receiver<Belief>> {
        if self.names.len() >= MAX_NAMES && !self.names.contains_key(name) {
            return None;
        }
        let (otherwise, restores) = (self.otherwise(), self.restores());
        let silent = self.heard.is_none_or(|heard| heard.elapsed() > TRUST_SILENCE);
        self.holds += 1;
        let known = self.names.entry(name.clone()).or_default();
        known.holds += 1;
        if let Some(belief) = &known.belief {
            return Some(belief.subscribe());
        }
        let (to, belief) = watch::channel(Belief::Pending);
        known.belief = Some(to);
        if !known.members.is_empty() {
            known.publish(&self.common);
            if known.kept.is_none() {
                self.common.keep(&self.path, name, &known.members);
            }
            return Some(belief);
        }
        if restores && self.restore(name) {
            return Some(belief);
        }
        if matches!(otherwise, Belief::Neg) && silent && self.asking.len() < MAX_NAMES {
            self.asking.push(name.clone());
        } else {
            self.settle(name, otherwise);
        }
        Some(belief)
    }

    /// Nobody wants it any more, as far as this one is concerned.
    pub fn release(&mut self, name: &Path) {
        self.holds -= self.holds.min(1);
        if self.holds == 0 {
            self.idle = Instant::now();
        }
        let Some(known) = self.names.get_mut(name) else { return };
        known.holds -= known.holds.min(1);
        if known.holds > 0 {
            return;
        }
        known.belief = None;
        if !known.set_is_held() {
            known.set = None;
            if known.members.is_empty() {
                self.names.remove(name);
            }
        }
    }

    /// Lets go of sets that were still in use when their names were released; whether any is in use.
    pub fn sweep(&mut self) -> bool {
        let mut in_use = false;
        self.names.retain(|_, name| {
            if name.holds == 0 && !name.set_is_held() {
                name.set = None;
            }
            in_use |= name.set.is_some();
            name.holds > 0 || name.set.is_some() || !name.members.is_empty()
        });
        in_use
    }

    /// What is believed of a name without members. That it is none is kept too.
    fn settle(&mut self, name: &Path, belief: Belief) {
        if matches!(belief, Belief::Neg) && self.common.kept(&self.path, name).is_some() {
            self.common.keep(&self.path, name, &[]);
        }
        if let Some(known) = self.names.get(name) {
            known.believe(belief);
        }
    }

    /// Takes the members of a name from disk, if there are any.
    fn restore(&mut self, name: &Path) -> bool {
        let Some((members, when)) = self.common.kept(&self.path, name) else { return false };
        let Some(known) = self.names.get_mut(name) else { return false };
        known.members = members;
        known.kept = Some(when);
        self.oldest = Some(self.oldest.map_or(when, |oldest| oldest.min(when)));
        known.publish(&self.common);
        self.common.stats.restored.add_one();
        if let Some(until) = self.restoring.filter(|_| self.told.is_some()) {
            known.doubted = Some(Instant::now());
            // Not behind those that are doubted for longer: this is over when their time is.
            self.doubts.push_front((until, name.clone()));
        }
        true
    }

    pub fn told_all(&mut self, all: HashMap<Path, Vec<Member>>) {
        let outage = self.outage.take();
        if outage.is_some() {
            self.common.stats.outages.add(-1);
        }
        let after_outage = outage.is_some();
        let now = Instant::now();
        if after_outage && self.told.is_none() {
            self.restoring = Some(now + self.common.params.empty_grace);
        }
        (self.told, self.heard, self.oldest) = (Some(now), Some(now), None);
        let gone: Vec<Path> = self.names.keys().filter(|name| !all.contains_key(name)).cloned().collect();
        for name in gone {
            self.told_none(&name, after_outage);
        }
        for (name, members) in all {
            match members.is_empty() {
                true => self.told_none(&name, after_outage),
                false => self.told_members(&name, members),
            }
        }
    }

    pub fn told_one(&mut self, name: &Path, members: Vec<Member>) {
        self.heard = Some(Instant::now());
        match (members.is_empty(), &self.outage) {
            (false, _) => self.told_members(name, members),
            (true, None) => self.told_none(name, false),
            // Before all is told it is not known what the source has lost.
            (true, Some(_)) => {}
        }
    }

    fn told_members(&mut self, name: &Path, mut members: Vec<Member>) {
        if self.names.len() >= MAX_NAMES && !self.names.contains_key(name) {
            return;
        }
        members.truncate(MAX_MEMBERS);
        let known = self.names.entry(name.clone()).or_default();
        (known.doubted, known.kept) = (None, None);
        if known.members == members {
            return;
        }
        known.members = members;
        known.publish(&self.common);
        if known.holds > 0 {
            self.common.keep(&self.path, name, &known.members);
        }
    }

    fn told_none(&mut self, name: &Path, after_outage: bool) {
        let otherwise = self.otherwise();
        let Some(known) = self.names.get_mut(name) else { return };
        if known.members.is_empty() {
            return self.settle(name, otherwise);
        }
        if known.doubted.is_some() {
            return;
        }
        if after_outage {
            let now = Instant::now();
            known.doubted = Some(now);
            self.doubts.push_back((now + self.common.params.empty_grace, name.clone()));
            self.common.stats.doubts.add_one();
            return;
        }
        self.believe_none(name);
    }

    fn believe_none(&mut self, name: &Path) {
        let otherwise = self.otherwise();
        let Some(known) = self.names.get_mut(name) else { return };
        known.members = Vec::new();
        (known.doubted, known.kept) = (None, None);
        if let Some(set) = &known.set {
            set.gone();
        }
        known.believe(otherwise);
        self.common.keep(&self.path, name, &[]);
        if known.holds == 0 && !known.set_is_held() {
            self.names.remove(name);
        }
    }

    /// The source cannot be asked. What is known goes on, and what is doubted will be doubted anew.
    pub fn failed(&mut self, why: &str) {
        let since = match self.outage.take() {
            Some((since, _)) => since,
            None => {
                self.common.stats.outages.add(1);
                Instant::now()
            }
        };
        self.common.stats.failures.add_one();
        self.last_error = Some(why.to_owned());
        self.outage = Some((since, format!("the source of {} cannot be asked: {why}", self.common.prefix)));
        self.asking.clear();
        self.doubts.clear();
        let (otherwise, restores) = (self.otherwise(), self.restores());
        let mut unknown = Vec::new();
        for (path, name) in &mut self.names {
            name.doubted = None;
            if name.members.is_empty() {
                unknown.push(path.clone());
            }
        }
        for name in unknown {
            if !(restores && self.restore(&name)) {
                self.settle(&name, otherwise.clone());
            }
        }
    }

    /// Nothing was told for too long since it was asked for.
    pub fn waited(&mut self, began: Instant) {
        if self.told.is_none() && self.outage.is_none() && began.elapsed() >= FIRST_ANSWER {
            self.failed(&format!("no answer within {} s", FIRST_ANSWER.as_secs()));
        }
    }

    /// How a name stands.
    pub fn standing(&self, name: &Path) -> Standing {
        let known = self.names.get(name);
        let kept = known.and_then(|known| known.kept);
        Standing {
            outage: self.outage.clone(),
            confirmed: self.heard.filter(|_| kept.is_none()),
            kept,
            doubted: known.and_then(|known| known.doubted),
        }
    }

    /// Names that are known.
    pub fn known(&self) -> usize {
        self.names.len()
    }

    /// Names whose emptiness is doubted.
    pub fn doubted(&self) -> impl Iterator<Item = &Path> {
        let doubted =
            |(_, name): &&(Instant, Path)| self.names.get(name).is_some_and(|known| known.doubted.is_some());
        self.doubts.iter().filter(doubted).map(|(_, name)| name)
    }

    /// Why the source could not be asked the last time, however long ago.
    pub fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }

    /// The source is there.
    pub fn checked(&mut self) {
        self.heard = Some(Instant::now());
        for name in std::mem::take(&mut self.asking) {
            if self.names.get(&name).is_some_and(|known| known.members.is_empty()) {
                let otherwise = self.otherwise();
                self.settle(&name, otherwise);
            }
        }
    }

    /// Whether somebody waits for word that the source is there.
    pub fn is_asked(&self) -> bool {
        !self.asking.is_empty()
    }

    /// Believes what was doubted long enough; says when to look again.
    pub fn end_doubts(&mut self) -> Option<Instant> {
        loop {
            let (until, _) = self.doubts.front()?;
            if *until > Instant::now() {
                return Some(*until);
            }
            let (_, name) = self.doubts.pop_front()?;
            if self.names.get(&name).is_some_and(|known| known.doubted.is_some()) {
                self.believe_none(&name);
            }
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.common.stats.subjects.add(-1);
        if self.outage.is_some() {
            self.common.stats.outages.add(-1);
        }
    }
}
