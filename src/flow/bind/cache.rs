//! A bounded table whose entries go when nobody has asked for them for a while.

use dashmap::DashMap;
use foldhash::fast::RandomState;
use parking_lot::RwLock;
use std::hash::Hash;
use std::sync::Arc;

/// Two generations: what is asked for moves to the young one; when that is half full, or time is up, the old one is
/// dropped and the young one grows old. So an entry that is used stays, whatever else comes in, and nothing is scanned.
///
/// Values are handles: dropping one from the table does not end what still uses it.
pub struct Cache<K, V> {
    half: usize,
    generations: RwLock<Generations<K, V>>,
}

type Table<K, V> = Arc<DashMap<K, V, RandomState>>;

struct Generations<K, V> {
    young: Table<K, V>,
    old: Table<K, V>,
}

impl<K: Eq + Hash + Clone, V: Clone> Cache<K, V> {
    /// A table of at most `room` entries.
    pub fn new(room: usize) -> Self {
        let generations = Generations { young: Self::table(), old: Self::table() };
        Self { half: (room / 2).max(1), generations: RwLock::new(generations) }
    }

    fn table() -> Table<K, V> {
        Arc::new(DashMap::with_hasher_and_shard_amount(RandomState::default(), 4))
    }

    /// The entry, which is thereby in use.
    pub fn get(&self, key: &K) -> Option<V> {
        let found_old = {
            let generations = self.generations.read();
            if let Some(value) = generations.young.get(key).map(|entry| entry.clone()) {
                return Some(value);
            }
            generations.old.remove(key)
        };
        let (key, value) = found_old?;
        Some(self.insert(key, value))
    }

    /// Adds an entry, unless another has been faster: then that one is returned.
    pub fn insert(&self, key: K, value: V) -> V {
        let value = {
            let generations = self.generations.read();
            let entry = generations.young.entry(key).or_insert(value);
            entry.clone()
        };
        if self.generations.read().young.len() >= self.half {
            let mut generations = self.generations.write();
            if generations.young.len() >= self.half {
                generations.turn(Self::table());
            }
        }
        value
    }

    /// Takes an entry out.
    pub fn remove(&self, key: &K) {
        let generations = self.generations.read();
        generations.young.remove(key);
        generations.old.remove(key);
    }

    /// Drops what was not asked for since the last call.
    pub fn age(&self) {
        self.generations.write().turn(Self::table());
    }

    /// All values, for admin pages.
    pub fn values(&self) -> Vec<V> {
        let generations = self.generations.read();
        let tables = [&generations.young, &generations.old];
        tables.into_iter().flat_map(|table| table.iter().map(|entry| entry.value().clone())).collect()
    }
}

impl<K, V> Generations<K, V> {
    fn turn(&mut self, empty: Table<K, V>) {
        self.old = std::mem::replace(&mut self.young, empty);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_table_keeps_to_its_size() {
        let cache = Cache::new(100);
        cache.insert(-1, "used");
        for stranger in 0..10_000 {
            cache.insert(stranger, "once");
            if stranger % 10 == 0 {
                assert_eq!(cache.get(&-1), Some("used"));
            }
            assert!(cache.values().len() <= 100);
        }
    }

    #[test]
    fn what_nobody_asks_for_goes_after_two_turns() {
        let cache = Cache::new(100);
        cache.insert(1, "a");
        cache.insert(2, "b");
        cache.age();
        assert_eq!(cache.get(&1), Some("a"));
        cache.age();
        assert_eq!(cache.get(&2), None);
        assert_eq!(cache.get(&1), Some("a"));
        assert_eq!(cache.insert(1, "later"), "a");
    }
}
