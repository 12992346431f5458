//! Where the table in use is from, and how its stores are.

use super::Params;
use super::belief::Told;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// For admin pages and logs.
#[derive(Debug)]
pub(super) struct Status {
    namespace: Arc<str>,
    stores: Vec<String>,
    /// The table in use, who told it, and when.
    pub held: Option<(Told, String, SystemTime)>,
    /// The store that is followed now.
    pub store: Option<String>,
    /// Since when there is none.
    pub outage: Option<Instant>,
    pub last_error: Option<String>,
    /// Since when something else is told than what is in use, and what.
    pub doubted: Option<(Instant, String)>,
}

impl Status {
    pub fn new(params: &Params) -> Self {
        Self {
            namespace: Arc::clone(&params.namespace),
            stores: params.stores.iter().map(|store| store.base.clone()).collect(),
            held: None,
            store: None,
            outage: Some(Instant::now()),
            last_error: None,
            doubted: None,
        }
    }

    /// Why there is no table.
    pub fn missing(&self) -> Option<String> {
        match (&self.held, &self.last_error) {
            (Some(_), _) => None,
            (None, Some(why)) => Some(why.clone()),
            (None, None) => Some(format!("asking {}", self.stores.join(" or "))),
        }
    }

    pub fn to_json(&self) -> Value {
        let version = self.held.as_ref().and_then(|(told, ..)| told.version()).map(|v| v.text().to_string());
        let since = self.held.as_ref().map(|(_, _, when)| unix_ms(*when));
        let doubted = self.doubted.as_ref();
        json!({
            "namespace": &*self.namespace,
            "stores": self.stores,
            "version": version,
            "dtab": self.held.as_ref().map(|(told, ..)| told.dtab().to_string()),
            "from": self.held.as_ref().map(|(_, from, _)| from),
            "sinceMs": since,
            "store": self.store,
            "outageSeconds": self.outage.map(|since| since.elapsed().as_secs()),
            "lastError": self.last_error,
            "doubted": doubted.map(|(since, what)| json!({"what": what, "seconds": since.elapsed().as_secs()})),
        })
    }
}

/// Milliseconds since 1970.
pub(super) fn unix_ms(when: SystemTime) -> u64 {
    let since = when.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
