//! A reply, with the one judgement of it that stats, accrual, retries and spans share.

use crate::{Failure, Payload, Why};
use bytes::Bytes;
use muxgate_wire::thrift::reply::classify_body;
use muxgate_wire::thrift::{ApplicationExceptionType, MessageHead, ReplyClass, peek};

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

    /// Judges a reply by its first bytes, as the answer to `call`. Declared exceptions are successes of the session and
    /// count as failures of the call only where `declared_fails` says so; they are told apart in any case by
    /// [`Reply::Declared`]. The answer to what is not Thrift is not looked at, and of a result nothing behind its first field:
    /// a struct cut short, or bytes behind it, reach the caller as they came.
    ///
    /// # Errors
    /// [`Why::BadReply`] for what is no answer to this call: nothing, no Thrift message, a message that is no reply, or
    /// one in another protocol, for another method, or with another sequence id (thriftmux spec, section 15).
    pub fn judged(
        call: &Payload,
        body: Bytes,
        contexts: Vec<(Bytes, Bytes)>,
        declared_fails: bool,
    ) -> Result<Self, Failure> {
        let Some(asked) = call.head() else {
            return Ok(Self { contexts, body, reply: Reply::Opaque, class: Class::Success });
        };
        if body.is_empty() {
            return Err(bad_reply("the service answered the call with nothing".into()));
        }
        let head =
            peek(&body).map_err(|error| bad_reply(format!("the service's reply is not Thrift: {error}")))?;
        check(call, asked, &body, &head)?;
        let reply = match classify_body(&body, &head) {
            Ok(ReplyClass::Result) => Reply::Result,
            Ok(ReplyClass::Void) => Reply::Void,
            Ok(ReplyClass::Declared(id)) => Reply::Declared(id),
            Ok(ReplyClass::Application { kind, .. }) => Reply::Application(kind),
            Err(error) => return Err(bad_reply(format!("the service's reply cannot be read: {error}"))),
        };
        let class = match reply {
            Reply::Result | Reply::Void | Reply::Opaque => Class::Success,
            Reply::Declared(_) if declared_fails => Class::Failure,
            Reply::Declared(_) => Class::Success,
            Reply::Application(kind) if is_callers_fault(kind) => Class::Ignorable,
            Reply::Application(_) => Class::Failure,
        };
        Ok(Self { contexts, body, reply, class })
    }
}

/// Whether a message answers this very call. A method of a multiplexed service (`Service:method`) is answered by its bare
/// name (thriftmux spec, section 17).
fn check(call: &Payload, asked: &MessageHead, body: &[u8], head: &MessageHead) -> Result<(), Failure> {
    if head.protocol != asked.protocol {
        return Err(bad_reply("the service answered in another protocol than it was asked in".into()));
    }
    if head.seqid != asked.seqid {
        let (got, sent) = (head.seqid, asked.seqid);
        return Err(bad_reply(format!("the service answered sequence id {got} to call {sent}")));
    }
    let method = call.method_bytes();
    if head.name_in(body) != method && !method.contains(&b':') {
        return Err(bad_reply("the service answered another method than it was asked for".into()));
    }
    Ok(())
}

fn bad_reply(text: String) -> Failure {
    Failure::new(Why::BadReply, text)
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

#[cfg(test)]
mod tests;
