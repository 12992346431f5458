//! The base table, which may not be known yet, and where it is from.

use muxgate_wire::name::Dtab;
use std::fmt;
use std::sync::Arc;

/// The table that names are bound by.
///
/// Once one is known it stays until another one is: neither of the other two states replaces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Base {
    /// Not known yet, and why not: names are pending.
    Pending(String),
    /// This one.
    Known(Table),
    /// It cannot be had, and this is why: names have failed, which is not the same as being unknown.
    Failed(String),
}

impl From<Dtab> for Base {
    fn from(dtab: Dtab) -> Self {
        Self::Known(Table { dtab, origin: None })
    }
}

impl Base {
    /// The table, if there is one.
    pub fn table(&self) -> Option<&Table> {
        match self {
            Self::Known(table) => Some(table),
            Self::Pending(_) | Self::Failed(_) => None,
        }
    }

    /// Whether `next` takes the place of this.
    pub(super) fn gives_way_to(&self, next: &Self) -> bool {
        self.table().is_none() || next.table().is_some()
    }
}

/// A table that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Its entries.
    pub dtab: Dtab,
    /// Where it is from, if not from our own configuration alone.
    pub origin: Option<Origin>,
}

/// One version of a table of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The table's name in the store.
    pub namespace: Arc<str>,
    /// The version as the store writes it; none: the store has no such table, which stands for an empty one.
    pub version: Option<Arc<str>>,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.version {
            Some(version) => write!(f, "table {}, version {version}", self.namespace),
            None => write!(f, "table {}, which the store does not have", self.namespace),
        }
    }
}
