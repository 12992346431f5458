//! Where tables are kept: what a backend can do, and the words for it.
//!
//! A backend keeps named tables with versions, changes them by compare-and-set, remembers what they were, and mirrors all
//! of them into memory, live. Reads are answered from the mirror, so they go on while a backend is away.
//!
//! To write one: a file here that implements [`Storage`], a settings type, and `conformance` run on it.

#[cfg(any(test, feature = "peers"))]
pub mod conformance;
pub mod embedded;
pub mod etcd;
mod version;
pub mod zk;

pub use version::Version;

use async_trait::async_trait;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;

/// Most changes that are remembered of each namespace; older ones are forgotten.
pub const MAX_HISTORY: usize = 1000;

/// Most namespaces.
pub const MAX_NAMESPACES: usize = 10_000;

/// Longest name of a namespace, in bytes.
pub const MAX_NAMESPACE: usize = 128;

/// Longest table, in bytes of its text.
pub const MAX_DTAB: usize = 1 << 20;

/// Longest `who` and `why` of a change, in bytes. Backends need not look: those who write cut them.
pub const MAX_REMARK: usize = 1024;

/// A table as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its text. Whoever writes has read it as a dtab; what others have put into a shared backend may be anything.
    pub dtab: Arc<str>,
    /// Since which change it is so.
    pub version: Version,
}

/// A change that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    /// The version that it made.
    pub version: Version,
    /// The table from then on; none: it was deleted.
    pub dtab: Option<Arc<str>>,
    /// Who made it. Empty: not known, as of a change that was made past us.
    pub who: String,
    /// When, in milliseconds since 1970 began (UTC), by the clock of the store that was asked.
    pub when_ms: u64,
    /// Why, in the words of who made it; may be empty.
    pub why: String,
}

/// What must be so for a change to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Nothing: create or overwrite. To delete, there must be a table all the same.
    Anything,
    /// There is no such table; else [`StorageError::Exists`].
    Absent,
    /// There is one; else [`StorageError::Missing`].
    Present,
    /// There is one, with this version; else [`StorageError::Missing`] or [`StorageError::Differs`].
    Version(Version),
}

impl Expect {
    /// Judges a change by the version that is there now. `delete`: the change takes the table away.
    ///
    /// # Errors
    /// The one that [`Storage::write`] owes.
    pub fn judge(self, now: Option<Version>, delete: bool) -> Result<(), StorageError> {
        match (self, now) {
            (_, None) if delete => Err(StorageError::Missing),
            (Self::Absent, Some(_)) => Err(StorageError::Exists),
            (Self::Present | Self::Version(_), None) => Err(StorageError::Missing),
            (Self::Version(expected), Some(now)) if expected != now => Err(StorageError::Differs),
            _ => Ok(()),
        }
    }
}

/// A change to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Of which namespace: one that [`check_namespace`] lets pass.
    pub namespace: String,
    /// The table from now on, as text; none deletes it.
    pub dtab: Option<Arc<str>>,
    /// On which condition.
    pub expect: Expect,
    /// As in [`Past::who`].
    pub who: String,
    /// As in [`Past::when_ms`].
    pub when_ms: u64,
    /// As in [`Past::why`].
    pub why: String,
}

/// Why a change was not made, or history could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// It should have been absent.
    #[error("there is such a namespace already")]
    Exists,
    /// It should have been there.
    #[error("there is no such namespace")]
    Missing,
    /// It has another version than was expected.
    #[error("the version is another by now")]
    Differs,
    /// The backend can be asked and does not want it: no right, too large, too many. Says which.
    #[error("refused: {0}")]
    Refused(String),
    /// The backend cannot be asked, or did not say in time whether the change was made: **it may have been**.
    #[error("the storage cannot be asked: {0}")]
    Unavailable(String),
}

/// All tables in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mirror {
    /// By namespace. What was last known, during an outage.
    pub tables: Arc<BTreeMap<String, Table>>,
    /// Whether the backend has ever been read as a whole: before that, absence says nothing.
    pub known: bool,
    /// Why the backend cannot be asked at the moment; none while it can.
    pub outage: Option<String>,
}

/// A backend.
#[async_trait]
pub trait Storage: Send + Sync + 'static {
    /// All tables, live: a change that anybody made is here in well under a second. The tables stay during an outage.
    fn mirror(&self) -> watch::Receiver<Mirror>;

    /// Compare and set. When it returns, the change is made for good and remembered, in one step; the mirror may lag.
    /// Two writes of the same namespace that expect the same version never both succeed, whichever process they go
    /// through. Bounded in time by the backend: seconds, not minutes.
    ///
    /// # Errors
    /// The condition does not hold ([`Expect::judge`]); the backend does not want it, or cannot be asked.
    async fn write(&self, write: Write) -> Result<Version, StorageError>;

    /// The changes of a namespace, newest first, no more than `limit`. What is deleted has a history, too; of what never
    /// was, it is empty. At most [`MAX_HISTORY`] are kept.
    ///
    /// # Errors
    /// The backend cannot be asked.
    async fn history(&self, namespace: &str, limit: usize) -> Result<Vec<Past>, StorageError>;
}

/// Whether something may be the name of a namespace: letters, digits and `. _ -`, at most [`MAX_NAMESPACE`] of them, and
/// not a folder's `.` or `..`. So it is one element of a path of any backend, and of a URL.
///
/// # Errors
/// What is wrong with it.
pub fn check_namespace(name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > MAX_NAMESPACE {
        return Err(format!(
            "the name of a namespace has 1 to {MAX_NAMESPACE} characters; this one has {}",
            name.len()
        ));
    }
    let odd = name.chars().find(|c| !c.is_ascii_alphanumeric() && !"._-".contains(*c));
    match odd {
        Some(odd) => Err(format!(
            "{odd:?} cannot be in the name of a namespace: it is made of letters, digits, `.`, `_` and `-`"
        )),
        None if name == "." || name == ".." => Err(format!("`{name}` cannot be the name of a namespace")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_have_plain_names() {
        for good in ["default", "a", "a.b-c_D9", &"x".repeat(MAX_NAMESPACE)] {
            assert_eq!(check_namespace(good), Ok(()), "{good}");
        }
        for wrong in ["", ".", "..", "a/b", "a b", "é", "a%2fb", "a\0", &"x".repeat(MAX_NAMESPACE + 1)] {
            assert!(check_namespace(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn conditions_are_judged() {
        use StorageError::{Differs, Exists, Missing};
        let one = Some(Version(1));
        for (expect, now, delete, want) in [
            (Expect::Anything, None, false, Ok(())),
            (Expect::Anything, None, true, Err(Missing)),
            (Expect::Anything, one, true, Ok(())),
            (Expect::Absent, None, false, Ok(())),
            (Expect::Absent, one, false, Err(Exists)),
            (Expect::Present, None, false, Err(Missing)),
            (Expect::Present, one, false, Ok(())),
            (Expect::Version(Version(1)), one, true, Ok(())),
            (Expect::Version(Version(2)), one, false, Err(Differs)),
            (Expect::Version(Version(2)), None, false, Err(Missing)),
        ] {
            assert_eq!(expect.judge(now, delete), want, "{expect:?} {now:?} {delete}");
        }
    }
}
