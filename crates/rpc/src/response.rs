//! A reply, with the one judgement of it that stats, accrual, retries and spans share.

use bytes::Bytes;
use muxgate_wire::thrift::{ApplicationExceptionType, ReplyClass, classify};

/// What a reply says, from its first bytes and without IDL (thriftmux spec, section 15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Field 0: a result.
    Result,
    /// No field: void, or nothing at all to a one-way call.
    Void,
    /// A declared exception, by its field id.
    Declared(i16),
    /// A TApplicationException of this type.
    Application(ApplicationExceptionType),
    /// A body that is not Thrift: nothing is known.
    Opaque,
}

/// What a reply or failure means for stats, accrual and retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It worked.
    Success,
    /// It did not work; repeating is not known to be safe.
    Failure,
    /// It did not work and may be repeated.
    RetryableFailure,
    /// Says nothing about the endpoint: the caller gave up, or the caller is at fault.
    Ignorable,
}

/// A reply on its way out.
#[derive(Clone, Debug)]
pub struct Response {
    /// Reply contexts, handed on byte for byte.
    pub contexts: Vec<(Bytes, Bytes)>,
    /// The reply message; empty for a one-way call.
    pub body: Bytes,
    /// What the reply says.
    pub reply: Reply,
    /// What it means.
    pub class: Class,
}

impl Response {
    /// The answer to a one-way call: nothing.
    pub fn nothing() -> Self {
        Self { contexts: Vec::new(), body: Bytes::new(), reply: Reply::Void, class: Class::Success }
    }

    /// Judges a reply's first bytes. Declared exceptions are successes of the session and count as failures of the
    /// call only where `declared_fails` says so; they are told apart in any case by [`Reply::Declared`].
    pub fn judged(body: Bytes, contexts: Vec<(Bytes, Bytes)>, declared_fails: bool) -> Self {
        let reply = match classify(&body) {
            Ok(ReplyClass::Result) => Reply::Result,
            Ok(ReplyClass::Void) => Reply::Void,
            Ok(ReplyClass::Declared(id)) => Reply::Declared(id),
            Ok(ReplyClass::Application { kind, .. }) => Reply::Application(kind),
            Err(_) => Reply::Opaque,
        };
        let class = match reply {
            Reply::Result | Reply::Void | Reply::Opaque => Class::Success,
            Reply::Declared(_) if declared_fails => Class::Failure,
            Reply::Declared(_) => Class::Success,
            Reply::Application(kind) if is_callers_fault(kind) => Class::Ignorable,
            Reply::Application(_) => Class::Failure,
        };
        Self { contexts, body, reply, class }
    }
}

/// Types that say the request was wrong, not the service (thriftmux spec, section 15).
fn is_callers_fault(kind: ApplicationExceptionType) -> bool {
    use ApplicationExceptionType as Type;
    matches!(
        kind,
        Type::UnknownMethod
            | Type::InvalidMessageType
            | Type::ProtocolError
            | Type::InvalidTransform
            | Type::InvalidProtocol
            | Type::UnsupportedClientType
    )
}
