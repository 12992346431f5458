//! Sending dispatches and taking them back.

use super::super::context::{ContextWriter, TRACE, TraceContext};
use super::super::frame::{MAX_LEN, MIN_LEN, Tag, kind};
use super::super::limits;
use super::super::message::{Tdispatch, Treq, encode_destination, encode_discarded};
use super::super::outbox::{Discarded, EncodeError, Outbox, Ticket};
use super::super::session::Call;
use super::{ClientSession, Form, Phase, Slot};
use crate::pairs::{MAX_STR16, Pairs, PairsError};
use bytes::{BufMut, Bytes, BytesMut};

/// What stands in front of the body of a Tdispatch.
pub struct DispatchHead<'a, F>
where
    F: FnOnce(&mut ContextWriter<'_>),
{
    /// Writes the contexts.
    pub contexts: F,
    /// Text of the destination path.
    pub dst: &'a [u8],
    /// Delegations.
    pub dtab: &'a Pairs,
}

/// Why a dispatch was not taken. Nothing of it has been or will be written, so it is safe to send it elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The session is over.
    Closed,
    /// The server wants no new ones.
    Draining,
    /// As many as may be are in flight.
    InFlight,
    /// As many as may be wait for the handshake.
    Handshake,
    /// As many bytes as may be wait to be written.
    Queued,
    /// It cannot be written at all, not on another session either.
    Encode(EncodeError),
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Closed => f.write_str("session is closed"),
            Self::Draining => f.write_str("server is draining"),
            Self::InFlight => f.write_str("too many dispatches in flight"),
            Self::Handshake => f.write_str("too many dispatches wait for the handshake"),
            Self::Queued => f.write_str("too many bytes wait to be written"),
            Self::Encode(error) => write!(f, "dispatch cannot be encoded: {error}"),
        }
    }
}

impl std::error::Error for Refused {}

/// A dispatch that waits for the end of the handshake: window and TLS are not known before.
#[derive(Debug)]
pub(super) struct Held {
    tag: Tag,
    head: Bytes,
    body: Bytes,
}

fn write_head<F>(out: &mut BytesMut, head: DispatchHead<'_, F>) -> Result<(), EncodeError>
where
    F: FnOnce(&mut ContextWriter<'_>),
{
    let mut writer = ContextWriter::new(out);
    (head.contexts)(&mut writer);
    writer.finish()?;
    if head.dst.len() > MAX_STR16 {
        return Err(PairsError::TooLong(0).into());
    }
    encode_destination(head.dst, head.dtab, out);
    Ok(())
}

impl<T> ClientSession<T> {
    /// Sends a request: written into the outbox at once, or held back until the handshake is over. The token comes back
    /// with the reply, from [`ClientSession::cancel`], or when the session ends.
    ///
    /// # Errors
    /// [`Refused`], with the token.
    #[inline]
    pub fn dispatch<F>(
        &mut self,
        token: T,
        head: DispatchHead<'_, F>,
        body: Bytes,
    ) -> Result<Call, (T, Refused)>
    where
        F: FnOnce(&mut ContextWriter<'_>),
    {
        if let Some(refused) = self.refuse() {
            return Err((token, refused));
        }
        let Some(tag) = self.free.take() else { return Err((token, Refused::InFlight)) };
        let written = if self.phase != Phase::Running {
            self.hold(tag, head, body).map(|()| (None, None))
        } else if self.form == Form::Tdispatch {
            let pushed = self.outbox.push(kind::TDISPATCH, tag, body, |out| write_head(out, head));
            pushed.map(|ticket| (Some(ticket), None))
        } else {
            let mut out = BytesMut::new();
            write_head(&mut out, head)
                .and_then(|()| self.push_unproven(tag, out.freeze(), body))
                .map(|(ticket, again)| (Some(ticket), again))
        };
        let (ticket, again) = match written {
            Ok(written) => written,
            Err(error) => {
                self.free.give(tag);
                return Err((token, Refused::Encode(error)));
            }
        };
        self.stamp = self.stamp.wrapping_add(1);
        let slot = Slot::Live { stamp: self.stamp, token, ticket, again };
        self.put(tag, slot);
        self.in_flight += 1;
        Ok(Call { tag, stamp: self.stamp })
    }

    fn refuse(&self) -> Option<Refused> {
        match self.phase {
            Phase::Closed => Some(Refused::Closed),
            Phase::Draining => Some(Refused::Draining),
            _ if self.in_flight >= self.config.max_in_flight => Some(Refused::InFlight),
            _ if self.queued_bytes() >= self.config.max_queued_bytes => Some(Refused::Queued),
            Phase::Running => None,
            _ => (self.held.len() >= self.config.max_held).then_some(Refused::Handshake),
        }
    }

    fn put(&mut self, tag: Tag, slot: Slot<T>) {
        let index = tag.get() as usize;
        if index >= self.slots.len() {
            self.slots.resize_with(index + 1, || Slot::Free);
        }
        if let Some(place) = self.slots.get_mut(index) {
            *place = slot;
        }
    }

    fn hold<F>(&mut self, tag: Tag, head: DispatchHead<'_, F>, body: Bytes) -> Result<(), EncodeError>
    where
        F: FnOnce(&mut ContextWriter<'_>),
    {
        let mut out = BytesMut::new();
        write_head(&mut out, head)?;
        if out.len() + body.len() > (MAX_LEN - MIN_LEN) as usize {
            return Err(EncodeError::TooLong);
        }
        let held = Held { tag, head: out.freeze(), body };
        self.held_bytes += held.head.len() + held.body.len();
        self.held.push_back(held);
        Ok(())
    }

    /// Writes what was held back. Nothing is too long for a frame here: `hold` has checked that.
    pub(super) fn release(&mut self) {
        self.held_bytes = 0;
        for Held { tag, head, body } in std::mem::take(&mut self.held) {
            let pushed = self.push_unproven(tag, head, body);
            if let (Ok((written, treq)), Some(Slot::Live { ticket, again, .. })) = (pushed, self.slot(tag)) {
                *ticket = Some(written);
                *again = treq;
            }
        }
    }

    /// Writes a request of which the head is written already, in the form of which most is known; with what is to be sent
    /// instead if the server turns out not to know that form.
    fn push_unproven(
        &mut self,
        tag: Tag,
        head: Bytes,
        body: Bytes,
    ) -> Result<(Ticket, Option<Box<Treq>>), EncodeError> {
        if self.form == Form::Treq {
            return Ok((self.push_treq(tag, old_form(head, body))?, None));
        }
        let again = (self.form == Form::Unproven)
            .then(|| Box::new(old_form(Bytes::clone(&head), Bytes::clone(&body))));
        let pushed = self.outbox.push(kind::TDISPATCH, tag, body, |out| {
            out.put_slice(&head);
            Ok(())
        });
        pushed.map(|ticket| (ticket, again))
    }

    fn push_treq(&mut self, tag: Tag, treq: Treq) -> Result<Ticket, EncodeError> {
        let Treq { trace, body } = treq;
        self.outbox.push_whole(kind::TREQ, tag, body, |out| Treq { trace, body: Bytes::new() }.encode(out))
    }

    /// The server did not understand a request. If it may know only the old form, that is tried, from now on always.
    pub(super) fn send_again(&mut self, tag: Tag) -> bool {
        if self.form == Form::Tdispatch {
            return false;
        }
        let Some(Slot::Live { again, .. }) = self.slot(tag) else { return false };
        let Some(treq) = again.take() else { return false };
        self.form = Form::Treq;
        let Ok(written) = self.push_treq(tag, *treq) else { return false };
        if let Some(Slot::Live { ticket, .. }) = self.slot(tag) {
            *ticket = Some(written);
        }
        true
    }

    /// Gives up on a dispatch. Unwritten, it is taken back and nobody is told; else the server is told why and the tag is
    /// kept until it answers. Returns the token, unless the call is over already.
    pub fn cancel(&mut self, call: Call, reason: &[u8]) -> Option<T> {
        let place = self.live(call)?;
        let Slot::Live { token, ticket, .. } = std::mem::replace(place, Slot::Cancelled) else { return None };
        let outcome = match ticket {
            Some(ticket) => self.outbox.discard(ticket),
            None => self.unhold(call.tag),
        };
        match outcome {
            Discarded::Unwritten => self.free_tag(call.tag),
            Discarded::Partly => {
                self.tell_discarded(call.tag, reason);
                self.lose(call.tag);
            }
            Discarded::Written => self.tell_discarded(call.tag, reason),
        }
        Some(token)
    }

    fn unhold(&mut self, tag: Tag) -> Discarded {
        if let Some(index) = self.held.iter().position(|held| held.tag == tag)
            && let Some(held) = self.held.remove(index)
        {
            self.held_bytes -= held.head.len() + held.body.len();
        }
        Discarded::Unwritten
    }

    fn tell_discarded(&mut self, tag: Tag, reason: &[u8]) {
        self.counts.discards += 1;
        push_discarded(&mut self.outbox, tag, reason);
    }

    /// Finagle servers do not answer the cancellation of a request they have only part of: the tag is not waited for, and
    /// not used again unless an answer comes after all.
    fn lose(&mut self, tag: Tag) {
        self.put(tag, Slot::Lost);
        self.in_flight -= 1;
        self.lost += 1;
        if self.lost >= limits::MAX_LOST_TAGS && self.phase == Phase::Running {
            self.phase = Phase::Draining;
        }
    }

    pub(super) fn free_tag(&mut self, tag: Tag) {
        self.put(tag, Slot::Free);
        self.free.give(tag);
        self.in_flight -= 1;
    }
}

/// What a Treq can carry of a request: its trace and its body.
fn old_form(head: Bytes, body: Bytes) -> Treq {
    let contexts = Tdispatch::decode(head).map(|request| request.contexts).unwrap_or_default();
    let trace = contexts.iter().filter(|(key, _)| key == TRACE).last();
    Treq { trace: trace.and_then(|(_, value)| TraceContext::decode(&value)), body }
}

fn push_discarded(outbox: &mut Outbox, tag: Tag, reason: &[u8]) {
    let mut body = BytesMut::with_capacity(3 + limits::MAX_TEXT.min(reason.len()));
    encode_discarded(tag.get(), reason, &mut body);
    outbox.push_control(kind::TDISCARDED_OLD, Tag::MARKER, &body);
}
