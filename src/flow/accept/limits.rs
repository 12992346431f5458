//! What one call may bring beside its body. A call above a limit is refused as what it is, and the connection lives on.

use muxgate_rpc::events::Events;
use muxgate_rpc::{Failure, Flags, Request, Response, Serve, Status, Why};
use muxgate_wire::mux::limits;
use muxgate_wire::thrift;
use std::sync::Arc;

/// Bounds of one call, in any protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// Contexts: Mux contexts, those of a TTwitter header, info headers of THeader.
    pub contexts: usize,
    /// Bytes of all keys and values of contexts together; on Mux, their lengths included.
    pub context_bytes: usize,
    /// Entries of the call's own dtab.
    pub dtab_entries: usize,
    /// Bytes of the destination.
    pub destination_bytes: usize,
    /// Bytes of the method's name.
    pub method_bytes: usize,
    /// Levels of structs and containers, where a message has to be walked: without frames.
    pub nesting: usize,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            contexts: limits::MAX_CONTEXTS,
            context_bytes: limits::MAX_CONTEXT_BYTES,
            dtab_entries: limits::MAX_DTAB,
            destination_bytes: limits::MAX_DST,
            method_bytes: thrift::MAX_NAME,
            nesting: thrift::MAX_DEPTH,
        }
    }
}

impl CallLimits {
    /// The same, as the readers of both protocols take them: above these a call is not even unpacked.
    pub fn to_wire(self) -> limits::Limits {
        limits::Limits {
            contexts: self.contexts,
            context_bytes: self.context_bytes,
            dtab_entries: self.dtab_entries,
            destination_bytes: self.destination_bytes,
            ..limits::Limits::DEFAULT
        }
    }

    /// The cause by which a call is refused, if it is.
    fn exceeded(&self, request: &Request) -> Option<&'static str> {
        if request.local.excess.is_some() {
            return request.local.excess;
        }
        let ctx = &request.ctx;
        let known = usize::from(ctx.deadline.is_some()) + usize::from(ctx.client_id.is_some());
        if ctx.rest.len() + known > self.contexts || self.are_long(request) {
            return Some("contexts");
        }
        if request.dtab.len() > self.dtab_entries {
            return Some("dtab");
        }
        if request.dst.as_str().len() > self.destination_bytes {
            return Some("destination");
        }
        let is_long = match request.body.head() {
            Some(head) => head.name.len() > self.method_bytes,
            None => has_endless_name(request.body.bytes()),
        };
        is_long.then_some("method_name")
    }

    fn are_long(&self, request: &Request) -> bool {
        let ctx = &request.ctx;
        let rest = ctx.rest.iter().map(|(key, value)| key.len() + value.len());
        rest.sum::<usize>() + ctx.client_id.as_ref().map_or(0, |id| id.len()) > self.context_bytes
    }
}

/// Mux carries anything, but what begins as a Thrift message and has a name over the longest is one all the same.
fn has_endless_name(body: &[u8]) -> bool {
    let begins = matches!(body, [0x80, 0x01, ..]) || matches!(body, [0x82, second, ..] if second & 0x1f == 1);
    begins && thrift::peek(body).is_err_and(|error| matches!(error.why, thrift::Why::NameTooLong(_)))
}

/// Refuses calls that bring too much. It stands behind the span, so that these are counted and seen as calls.
pub struct Bounded<S> {
    inner: S,
    limits: CallLimits,
    events: Arc<dyn Events>,
}

impl<S> Bounded<S> {
    /// Stands before `inner`; `events` is told the cause of each refusal.
    pub fn new(limits: CallLimits, events: Arc<dyn Events>, inner: S) -> Self {
        Self { inner, limits, events }
    }

    fn check(&self, request: &Request) -> Result<(), Failure> {
        let Some(cause) = self.limits.exceeded(request) else { return Ok(()) };
        self.events.limited(cause);
        let text = match cause {
            "contexts" => "the call's contexts are more than is accepted",
            "dtab" => "the call's dtab is longer than is accepted",
            "destination" => "the call's destination is longer than is accepted",
            _ => "the method's name is longer than is accepted",
        };
        // Nothing was done, but the same call would be refused again.
        Err(Failure::new(Why::BadRequest, text).with(Flags::REJECTED))
    }
}

impl<S: Serve> Serve for Bounded<S> {
    async fn call(&self, request: &mut Request) -> Result<Response, Failure> {
        self.check(request)?;
        self.inner.call(request).await
    }

    fn status(&self) -> Status {
        self.inner.status()
    }
}
