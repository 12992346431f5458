//! All keys below the prefix, by name.

use super::{MAX_NAME, member};
use crate::names::source::Member;
use crate::outside::etcd::{Event, KeyValue};
use muxgate_wire::name::Path;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;
use tokio::time::Instant;

/// What cannot be read is spoken of no more often than this.
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);

/// The members of each name, by the last element of their keys. A member that cannot be read is none: that is no error of its set.
pub(super) struct Names<'a> {
    prefix: &'a [u8],
    known: HashMap<Path, BTreeMap<Vec<u8>, Option<Member>>>,
    /// Keys that name no member: too deep, or not deep enough.
    strange: HashSet<Vec<u8>>,
    keys: usize,
    unreadable: usize,
    complained: Option<Instant>,
}

impl<'a> Names<'a> {
    pub fn new(prefix: &'a [u8], kvs: &[KeyValue]) -> Self {
        let (known, strange) = (HashMap::new(), HashSet::new());
        let mut names = Self { prefix, known, strange, keys: 0, unreadable: 0, complained: None };
        for kv in kvs {
            names.put(&kv.key, &kv.value);
        }
        names
    }

    /// Keys that are known, whatever they hold.
    pub fn keys(&self) -> usize {
        self.keys
    }

    /// All names, with their members.
    pub fn all(&mut self) -> Vec<(Path, Vec<Member>)> {
        self.complain();
        self.known.keys().map(|name| (name.clone(), self.members(name))).collect()
    }

    /// Takes changes in; gives each name that has changed, once, with the members that it has now.
    pub fn change(&mut self, events: Vec<Event>) -> Vec<(Path, Vec<Member>)> {
        let unreadable = self.unreadable;
        let mut changed = HashSet::new();
        for event in events {
            let name = match event {
                Event::Put(kv) => self.put(&kv.key, &kv.value),
                Event::Deleted(key) => self.delete(&key),
            };
            changed.extend(name);
        }
        if self.unreadable > unreadable {
            self.complain();
        }
        changed.into_iter().map(|name| (name.clone(), self.members(&name))).collect()
    }

    fn members(&self, name: &Path) -> Vec<Member> {
        self.known.get(name).into_iter().flat_map(|members| members.values().flatten().cloned()).collect()
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Option<Path> {
        let Some((name, word)) = self.place(key) else {
            let new = self.strange.insert(key.to_vec());
            self.keys += usize::from(new);
            self.unreadable += usize::from(new);
            return None;
        };
        let read = member::parse(value);
        let (now, members) = (read.is_none(), self.known.entry(name.clone()).or_default());
        let before = members.insert(word.to_vec(), read);
        self.keys += usize::from(before.is_none());
        self.unreadable += usize::from(now);
        self.unreadable -= usize::from(before == Some(None));
        Some(name)
    }

    fn delete(&mut self, key: &[u8]) -> Option<Path> {
        let Some((name, word)) = self.place(key) else {
            let known = self.strange.remove(key);
            self.keys -= usize::from(known);
            self.unreadable -= usize::from(known);
            return None;
        };
        let members = self.known.get_mut(&name)?;
        let before = members.remove(word)?;
        self.keys -= 1;
        self.unreadable -= usize::from(before.is_none());
        if members.is_empty() {
            self.known.remove(&name);
        }
        Some(name)
    }

    /// The name, and the word that tells its members apart.
    fn place<'k>(&self, key: &'k [u8]) -> Option<(Path, &'k [u8])> {
        let rest = key.strip_prefix(self.prefix)?;
        let mut elements: Vec<_> = rest.split(|byte| *byte == b'/').collect();
        let word = elements.pop().filter(|word| !word.is_empty())?;
        if elements.is_empty() || elements.len() > MAX_NAME {
            return None;
        }
        Some((Path::from_elements(elements).ok()?, word))
    }

    fn complain(&mut self) {
        let now = Instant::now();
        let lately = self.complained.is_some_and(|then| now - then < COMPLAIN_EVERY);
        if self.unreadable == 0 || lately {
            return;
        }
        self.complained = Some(now);
        let of_name = |(name, members): (&Path, &BTreeMap<Vec<u8>, Option<Member>>)| {
            let (word, _) = members.iter().find(|(_, member)| member.is_none())?;
            Some(format!("{name}/{}", word.escape_ascii()))
        };
        let strange = self.strange.iter().next().map(|key| key.escape_ascii().to_string());
        let example = self.known.iter().find_map(of_name).or(strange);
        let (keys, example) = (self.unreadable, example.unwrap_or_default());
        tracing::warn!(
            keys,
            example,
            "keys in etcd that say no member; want host:port, or JSON with host and port"
        );
    }
}
