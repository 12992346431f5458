//! Answers to the client.

use super::super::context::{ContextWriter, MuxFailure};
use super::super::frame::{Tag, kind};
use super::super::limits;
use super::super::message::Status;
use super::super::outbox::{EncodeError, Ticket};
use super::super::session::Call;
use super::super::table::Slot;
use super::{Phase, ServerSession};
use bytes::{BufMut, Bytes};

impl<U> ServerSession<U> {
    /// Answers a call, in the form it was asked in, and frees its tag. `contexts` writes the contexts of the reply (not
    /// called for a Treq, whose reply has none). The text of an ERROR is cut at [`limits::MAX_TEXT`], the body of a NACK
    /// left out. A reply that cannot be encoded becomes an ERROR that says so.
    ///
    /// `false` when the call is over (discarded, or the session closed): nothing is sent.
    #[inline]
    pub fn reply(
        &mut self,
        call: Call,
        status: Status,
        contexts: impl FnOnce(&mut ContextWriter<'_>),
        body: Bytes,
    ) -> bool {
        let slot = self.table.get_mut(call.tag.get());
        let Some(&mut Slot::Running { stamp, old_form, .. }) = slot else { return self.too_late() };
        if stamp != call.stamp || self.phase == Phase::Closed {
            return self.too_late();
        }
        let body = match status {
            Status::Ok => body,
            Status::Error => body.slice(..limits::cut_text(&body)),
            Status::Nack => Bytes::new(),
        };
        let ticket = match self.push_reply(call.tag, old_form, status, contexts, body) {
            Ok(ticket) => Some(ticket),
            Err(error) => self.error(call.tag, old_form, &format!("reply cannot be encoded: {error}")),
        };
        self.table.set(call.tag, ticket.map_or(Slot::Free, Slot::Replied), &self.outbox);
        true
    }

    fn too_late(&mut self) -> bool {
        self.counts.dropped_replies += 1;
        false
    }

    #[inline]
    fn push_reply(
        &mut self,
        tag: Tag,
        old_form: bool,
        status: Status,
        contexts: impl FnOnce(&mut ContextWriter<'_>),
        body: Bytes,
    ) -> Result<Ticket, EncodeError> {
        let status = status as u8;
        if old_form {
            return self.outbox.push_whole(kind::RREQ, tag, body, |out| out.put_u8(status));
        }
        self.outbox.push(kind::RDISPATCH, tag, body, |out| {
            out.put_u8(status);
            let mut writer = ContextWriter::new(out);
            contexts(&mut writer);
            writer.finish().map_err(EncodeError::from)
        })
    }

    /// A nack from the session itself.
    pub(super) fn nack(&mut self, tag: Tag, old_form: bool, failure: Option<MuxFailure>) {
        self.outbox.count_control();
        // Nothing in it can be too long.
        let _ = self.push_reply(
            tag,
            old_form,
            Status::Nack,
            |contexts| {
                if let Some(failure) = failure {
                    contexts.put_failure(failure);
                }
            },
            Bytes::new(),
        );
    }

    /// An error from the session itself, not to be repeated.
    pub(super) fn error(&mut self, tag: Tag, old_form: bool, text: &str) -> Option<Ticket> {
        self.outbox.count_control();
        let body = Bytes::copy_from_slice(text.as_bytes());
        let contexts = |contexts: &mut ContextWriter<'_>| contexts.put_failure(MuxFailure::NON_RETRYABLE);
        self.push_reply(tag, old_form, Status::Error, contexts, body).ok()
    }
}
