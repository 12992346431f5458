//! Series by label, as many as there is room for, each as long as someone holds it.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// A bounded map of what others keep alive. Asked when something is built, never during a call.
#[derive(Debug)]
pub struct Table<K, S> {
    room: usize,
    series: Mutex<BTreeMap<K, Weak<S>>>,
}

impl<K: Ord, S> Table<K, S> {
    pub fn new(room: usize) -> Self {
        Self { room, series: Mutex::default() }
    }

    /// The series of this key, made if there is none yet; None without room for one more.
    pub fn get(&self, key: K, make: impl FnOnce() -> S) -> Option<Arc<S>> {
        let mut series = self.series.lock();
        if let Some(living) = series.get(&key).and_then(Weak::upgrade) {
            return Some(living);
        }
        if series.len() >= self.room && !series.contains_key(&key) {
            series.retain(|_, series| series.strong_count() > 0);
        }
        if series.len() >= self.room && !series.contains_key(&key) {
            return None;
        }
        let made = Arc::new(make());
        series.insert(key, Arc::downgrade(&made));
        Some(made)
    }

    /// All that live, in order of their keys; the dead are forgotten.
    pub fn live(&self) -> Vec<Arc<S>> {
        let mut series = self.series.lock();
        let live = series.values().filter_map(Weak::upgrade).collect();
        series.retain(|_, series| series.strong_count() > 0);
        live
    }
}
