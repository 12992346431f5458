//! Times among the values of a map.

use super::Fields;
use crate::config::node::Value;
use std::time::Duration;

/// Longest time that can be set: a day. Longer ones are slips of the unit.
const MAX_MILLIS: u64 = 24 * 3600 * 1000;

/// What a time with a unit is in milliseconds: people write `2s` first and read on afterwards.
fn in_millis(text: &str) -> Option<u64> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number: f64 = text.strip_suffix(unit)?.parse().ok()?;
    let factor = match unit.trim() {
        "" | "ms" => 1.0,
        "s" => 1000.0,
        "m" | "min" => 60_000.0,
        _ => return None,
    };
    Some((number * factor) as u64)
}

impl Fields<'_> {
    /// A time in milliseconds, at least one.
    pub fn millis(&self, key: &str) -> Option<Duration> {
        self.time(key, "without any time every call would fail; leave the key out for the default")
    }

    /// How long a connection may be kept, in milliseconds.
    pub fn keep(&self, key: &str) -> Option<Duration> {
        self.time(
            key,
            "connections would be closed as soon as they are made; leave the key out for the default",
        )
    }

    /// How long a connection may be kept, in milliseconds, or `none` for no limit.
    pub fn keep_or_none(&self, key: &str) -> Option<Option<Duration>> {
        if self.is_none(key) {
            return Some(None);
        }
        self.time(key, "connections would be closed as soon as they are made; write `none` for no limit")
            .map(Some)
    }

    /// A time in milliseconds; 0 is one.
    pub fn millis_or_zero(&self, key: &str) -> Option<Duration> {
        match self.get(key)?.value {
            Value::Int(0) => Some(Duration::ZERO),
            _ => self.time(key, ""),
        }
    }

    /// A time in milliseconds, or `none` for no limit.
    pub fn millis_or_none(&self, key: &str) -> Option<Option<Duration>> {
        if self.is_none(key) {
            return Some(None);
        }
        self.time(key, "without any time every call would fail; write `none` for no limit").map(Some)
    }

    fn time(&self, key: &str, zero: &str) -> Option<Duration> {
        let node = self.get(key)?;
        if let Value::Text(text) = &node.value {
            let help = in_millis(text).map_or_else(String::new, |millis| format!("write {millis}"));
            self.mistyped(key, node, "a whole number of milliseconds", &help);
            return None;
        }
        self.count(key, 1..=MAX_MILLIS, zero).map(Duration::from_millis)
    }
}
