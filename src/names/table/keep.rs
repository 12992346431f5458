//! The last good table on disk: a line of JSON about it, and behind it the table as it was written.

use super::Params;
use super::belief::Told;
use super::version::Version;
use crate::outside::kept::Kept;
use bytes::Bytes;
use muxgate_wire::name::Dtab;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::SystemTime;

const SHELF: &str = "table";

/// Where the table is kept.
pub(super) struct Keep {
    kept: Arc<Kept>,
    namespace: Arc<str>,
    stores: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Head {
    version: Option<String>,
    /// The stores that were followed: the table of quite others is not ours.
    stores: Vec<String>,
}

impl Keep {
    pub fn new(kept: Arc<Kept>, params: &Params) -> Self {
        let stores = params.stores.iter().map(|store| store.base.clone()).collect();
        Self { kept, namespace: Arc::clone(&params.namespace), stores }
    }

    /// What was kept, and when it was put there.
    pub fn get(&self) -> Option<(Told, SystemTime)> {
        let (value, when) = self.kept.get(SHELF, self.namespace.as_bytes())?;
        let text = std::str::from_utf8(&value).ok()?;
        let (head, text) = text.split_once('\n')?;
        let head: Head = serde_json::from_str(head).ok()?;
        if !head.stores.iter().any(|store| self.stores.contains(store)) {
            tracing::info!(stores = ?head.stores, "the kept table is that of other stores, and is not used");
            return None;
        }
        let told = match head.version {
            None => Told::Absent,
            Some(version) => Told::Table {
                version: Version::ordered(&version),
                dtab: Dtab::parse(text).ok()?,
                text: text.into(),
            },
        };
        Some((told, when))
    }

    pub fn put(&self, told: &Told) {
        let (version, text) = match told {
            Told::Table { version, text, .. } => (Some(version.to_string()), &**text),
            Told::Absent => (None, ""),
        };
        let head = Head { version, stores: self.stores.clone() };
        // Texts always have a form in JSON.
        let Ok(head) = serde_json::to_string(&head) else { return };
        let value = Bytes::from(format!("{head}\n{text}"));
        self.kept.put(SHELF, self.namespace.as_bytes(), Some(value));
    }
}
