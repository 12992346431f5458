//! Versions of a table, as stores write them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt;
use std::sync::Arc;

/// A version, as the store writes it. Those of our own stores grow with each change; those of others only differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    text: Arc<str>,
    order: Option<u64>,
}

impl Version {
    /// One of our own stores: base64 of eight bytes, the greatest first. Any other text is opaque.
    pub fn ordered(text: &str) -> Self {
        let bytes = STANDARD.decode(text).ok().and_then(|bytes| bytes.try_into().ok());
        Self { text: text.into(), order: bytes.map(u64::from_be_bytes) }
    }

    /// One of which nothing is known but its text.
    pub fn opaque(text: &str) -> Self {
        Self { text: text.into(), order: None }
    }

    /// The text.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Its place among the others, if they have an order.
    pub(super) fn order(&self) -> Option<u64> {
        self.order
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
