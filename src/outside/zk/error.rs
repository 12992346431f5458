//! Why a call went wrong.

use std::fmt;
use zookeeper_client::{Error, MultiWriteError};

/// What a caller can make of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Not asked, or no answer: whether it was done is not known.
    Away,
    /// There is no such node, or no parent for it.
    Missing,
    /// There is such a node already.
    Exists,
    /// The node has another version.
    Differs,
    /// The node has children.
    NotEmpty,
    /// We may not do this.
    Forbidden,
    /// The ensemble says no.
    Refused,
}

/// Why a call went wrong: what was asked of whom, and what happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZkError {
    /// For programs.
    pub kind: Kind,
    /// Which part of several was wrong, from 0.
    pub part: Option<usize>,
    /// For people.
    pub text: String,
}

impl ZkError {
    /// Nobody answered.
    pub(crate) fn away(hosts: &str, why: &str) -> Self {
        Self::new(Kind::Away, hosts, why)
    }

    /// What a caller makes of an answer.
    pub(crate) fn new(kind: Kind, hosts: &str, why: &str) -> Self {
        let cannot = if matches!(kind, Kind::Away | Kind::Forbidden) { " cannot be asked" } else { "" };
        Self { kind, part: None, text: format!("ZooKeeper {hosts}{cannot}: {why}") }
    }

    pub(super) fn of(hosts: &str, what: &str, error: &Error) -> Self {
        let kind = match error {
            Error::NoNode => Kind::Missing,
            Error::NodeExists => Kind::Exists,
            Error::BadVersion => Kind::Differs,
            Error::NotEmpty => Kind::NotEmpty,
            Error::NoAuth | Error::AuthFailed | Error::InvalidAcl => Kind::Forbidden,
            Error::BadArguments(_)
            | Error::QuotaExceeded
            | Error::NoChildrenForEphemerals
            | Error::Unimplemented
            | Error::NotReadOnly => Kind::Refused,
            _ => Kind::Away,
        };
        Self::new(kind, hosts, &format!("{what}: {error}"))
    }

    pub(super) fn of_several(hosts: &str, what: &str, error: &MultiWriteError) -> Self {
        match error {
            MultiWriteError::RequestFailed { source } => Self::of(hosts, what, source),
            MultiWriteError::OperationFailed { index, source } => {
                Self { part: Some(*index), ..Self::of(hosts, what, source) }
            }
        }
    }
}

impl fmt::Display for ZkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for ZkError {}
