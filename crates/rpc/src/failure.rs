//! Why a call has no reply, and what its caller may do about it. Nobody guesses: retry layers read [`Flags`] and nothing else.

use bytes::Bytes;
use std::borrow::Cow;
use std::fmt;
use std::net::SocketAddr;

/// What a retry needs to know, as a set of bits.
///
/// Retryable and non-retryable exclude each other: setting one clears the other, and non-retryable wins when both are
/// given at once (mux spec, section 14).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Flags(u8);

impl Flags {
    /// Nothing is known.
    pub const NONE: Self = Self(0);
    /// Nothing was done; set only where that is proved. Safe to send again.
    pub const RETRYABLE: Self = Self(1);
    /// Refused without trying.
    pub const REJECTED: Self = Self(2);
    /// Must not be repeated at any level.
    pub const NON_RETRYABLE: Self = Self(4);
    /// The caller gave up.
    pub const INTERRUPTED: Self = Self(8);
    /// The deadline had passed.
    pub const EXPIRED: Self = Self(16);
    /// The name led nowhere.
    pub const NAMING: Self = Self(32);
    /// Says nothing about the health of the endpoint.
    pub const IGNORABLE: Self = Self(64);

    /// Reads the bit set of a `MuxFailure` context; unknown bits are dropped (mux spec, section 14).
    pub fn from_mux(bits: u64) -> Self {
        Self::NONE.with(Self((bits & 7) as u8))
    }

    /// The bit set for a `MuxFailure` context: restartable 1, rejected 2, non-retryable 4.
    pub fn to_mux(self) -> u64 {
        u64::from(self.0 & 7)
    }

    /// Adds flags; retryable and non-retryable push each other out, non-retryable wins within `other`.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        let mut bits = self.0 | other.0;
        if other.has(Self::NON_RETRYABLE) || (self.has(Self::NON_RETRYABLE) && !other.has(Self::RETRYABLE)) {
            bits &= !Self::RETRYABLE.0;
        } else if other.has(Self::RETRYABLE) {
            bits &= !Self::NON_RETRYABLE.0;
        }
        Self(bits)
    }

    /// Takes flags away.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether all of `other` are set.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 7] =
            ["retryable", "rejected", "non-retryable", "interrupted", "expired", "naming", "ignorable"];
        let set = NAMES.iter().enumerate().filter(|(bit, _)| self.0 & (1 << bit) != 0).map(|(_, name)| *name);
        f.write_str(&set.collect::<Vec<_>>().join("|"))
    }
}

/// The closed list of causes. Metrics label failures by [`Why::name`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// The request's bytes, path or dtab could not be read.
    BadRequest,
    /// The name is negative, failed or empty: nobody is behind it.
    NoSuchName,
    /// The name could not be looked up (a namer's error), or not in time.
    NameUnavailable,
    /// The name is bound, but no endpoint could be tried.
    NoEndpoint,
    /// The deadline had passed before anything was tried.
    Expired,
    /// The time limit ran out while waiting for an answer.
    Timeout,
    /// Refused here for too much load.
    Overload,
    /// Refused here because the gateway is shutting down.
    Draining,
    /// No connection to the endpoint.
    Connect,
    /// The connection was lost with the call on it.
    ConnectionLost,
    /// The endpoint refused without trying.
    Nack,
    /// The endpoint answered with an error of its session or server (Rdispatch ERROR, Rerr).
    Upstream,
    /// The endpoint's answer could not be read.
    BadReply,
    /// The caller gave up.
    Cancelled,
    /// A bug in the gateway, caught.
    Panic,
}

impl Why {
    /// All causes, in the order of [`Why::index`].
    pub const ALL: [Self; 15] = [
        Self::BadRequest,
        Self::NoSuchName,
        Self::NameUnavailable,
        Self::NoEndpoint,
        Self::Expired,
        Self::Timeout,
        Self::Overload,
        Self::Draining,
        Self::Connect,
        Self::ConnectionLost,
        Self::Nack,
        Self::Upstream,
        Self::BadReply,
        Self::Cancelled,
        Self::Panic,
    ];

    /// Position in [`Why::ALL`], for tables of counters.
    pub fn index(self) -> usize {
        self as usize
    }

    /// The name in metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::BadRequest => "bad_request",
            Self::NoSuchName => "no_such_name",
            Self::NameUnavailable => "name_unavailable",
            Self::NoEndpoint => "no_endpoint",
            Self::Expired => "deadline",
            Self::Timeout => "timeout",
            Self::Overload => "overload",
            Self::Draining => "draining",
            Self::Connect => "connect",
            Self::ConnectionLost => "connection_lost",
            Self::Nack => "nack",
            Self::Upstream => "upstream_error",
            Self::BadReply => "bad_reply",
            Self::Cancelled => "cancelled",
            Self::Panic => "panic",
        }
    }
}

/// A call without a reply. One pointer wide: failures are rare, requests that carry them through layers are not.
#[derive(Clone)]
pub struct Failure(Box<Parts>);

#[derive(Clone)]
struct Parts {
    why: Why,
    flags: Flags,
    from: Option<SocketAddr>,
    text: Cow<'static, str>,
    contexts: Vec<(Bytes, Bytes)>,
}

impl Failure {
    /// A failure with the flags that always follow from its cause.
    pub fn new(why: Why, text: impl Into<Cow<'static, str>>) -> Self {
        let flags = match why {
            Why::NoSuchName | Why::NameUnavailable => Flags::NAMING,
            Why::Expired => Flags::EXPIRED.with(Flags::REJECTED).with(Flags::NON_RETRYABLE),
            Why::Overload | Why::Draining | Why::NoEndpoint => Flags::REJECTED.with(Flags::RETRYABLE),
            Why::Nack | Why::Connect => Flags::REJECTED.with(Flags::RETRYABLE),
            Why::Cancelled => Flags::INTERRUPTED.with(Flags::IGNORABLE),
            Why::BadRequest => Flags::NON_RETRYABLE,
            _ => Flags::NONE,
        };
        Self(Box::new(Parts { why, flags, from: None, text: text.into(), contexts: Vec::new() }))
    }

    /// The cause.
    pub fn why(&self) -> Why {
        self.0.why
    }

    /// What a retry may do.
    pub fn flags(&self) -> Flags {
        self.0.flags
    }

    /// The endpoint that failed, if one was involved.
    pub fn from(&self) -> Option<SocketAddr> {
        self.0.from
    }

    /// The reason for people.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Reply contexts that came with an upstream's error, to be handed on unchanged (without `MuxFailure`).
    pub fn contexts(&self) -> &[(Bytes, Bytes)] {
        &self.0.contexts
    }

    /// Adds flags.
    #[must_use]
    pub fn with(mut self, flags: Flags) -> Self {
        self.0.flags = self.0.flags.with(flags);
        self
    }

    /// Takes flags away.
    #[must_use]
    pub fn without(mut self, flags: Flags) -> Self {
        self.0.flags = self.0.flags.without(flags);
        self
    }

    /// Replaces all flags by those the peer sent.
    #[must_use]
    pub fn with_exactly(mut self, flags: Flags) -> Self {
        self.0.flags = flags;
        self
    }

    /// Names the endpoint.
    #[must_use]
    pub fn at(mut self, endpoint: SocketAddr) -> Self {
        self.0.from = Some(endpoint);
        self
    }

    /// Keeps the reply contexts of an upstream's error.
    #[must_use]
    pub fn with_contexts(mut self, contexts: Vec<(Bytes, Bytes)>) -> Self {
        self.0.contexts = contexts;
        self
    }

    /// Whether the same request may be sent again: nothing was done.
    pub fn is_retryable(&self) -> bool {
        self.0.flags.has(Flags::RETRYABLE)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)?;
        if let Some(endpoint) = self.0.from {
            write!(f, " (endpoint {endpoint})")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Failure({}, {:?}: {self})", self.why().name(), self.flags())
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retryable_and_non_retryable_never_meet() {
        assert_eq!(Flags::from_mux(5), Flags::NON_RETRYABLE);
        assert_eq!(Flags::RETRYABLE.with(Flags::NON_RETRYABLE), Flags::NON_RETRYABLE);
        assert_eq!(Flags::NON_RETRYABLE.with(Flags::RETRYABLE), Flags::RETRYABLE);
        assert_eq!(Flags::NON_RETRYABLE.with(Flags::REJECTED).to_mux(), 6);
        assert_eq!(Flags::from_mux(0xff00_0000_0000_0003).to_mux(), 3);
    }

    #[test]
    fn every_cause_knows_its_place() {
        for (index, why) in Why::ALL.iter().enumerate() {
            assert_eq!(why.index(), index);
        }
    }
}
