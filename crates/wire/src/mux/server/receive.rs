//! Frames from the client (mux spec, sections 9 and 13).

use super::super::context::MuxFailure;
use super::super::fragment::Assembled;
use super::super::frame::{Frame, Tag, kind};
use super::super::limits::Limits;
use super::super::message::{Message, MessageError, Tdiscarded, Tdispatch, Treq};
use super::super::outbox::Discarded;
use super::super::session::{Call, SessionError, unexpected_text};
use super::super::table::Slot;
use super::{Drain, Phase, Refusal, Request, ServerEvent, ServerSession};
use bytes::Bytes;
use std::time::Duration;

type Received<U> = Result<ServerEvent<U>, SessionError>;

impl<U> ServerSession<U> {
    /// Handles a frame.
    ///
    /// # Errors
    /// The session is dead: stop the calls, write what is in the outbox, close the socket.
    #[inline]
    pub fn receive(&mut self, frame: Frame, now: Duration) -> Received<U> {
        match self.phase {
            Phase::Open | Phase::Draining | Phase::Drained => {}
            Phase::Closed => return Err(SessionError::Closed),
            Phase::Switching => return Err(self.die(SessionError::Unexpected(frame.kind))),
            Phase::Fresh | Phase::Probed => {
                if let Some(event) = self.shake(&frame)? {
                    return Ok(event);
                }
            }
        }
        if frame.fragment {
            let pushed = self.partials.push(frame.tag, &frame.body, now);
            return pushed.map(|()| ServerEvent::Nothing).map_err(|error| self.die(error));
        }
        match frame.kind {
            kind::TDISPATCH | kind::TREQ => self.request(frame, now),
            kind::TPING => {
                self.outbox.push_control(kind::RPING, frame.tag, &[]);
                self.check_flood().map(|()| ServerEvent::Nothing)
            }
            kind::TDISCARDED | kind::TDISCARDED_OLD => self.discarded(frame),
            kind::RDRAIN if frame.tag == Tag::SESSION && self.phase == Phase::Draining => {
                self.phase = Phase::Drained;
                Ok(ServerEvent::DrainAcknowledged)
            }
            _ => self.unexpected(frame),
        }
    }

    #[inline]
    fn request(&mut self, frame: Frame, now: Duration) -> Received<U> {
        let Frame { kind, tag, body, .. } = frame;
        if matches!(self.table.get_mut(tag.get()), Some(Slot::Running { .. })) {
            return Err(self.duplicate(tag));
        }
        let old_form = kind == kind::TREQ;
        let assembled = self.partials.finish(tag, body);
        if let Some((why, failure)) = self.refusal(now) {
            self.nack(tag, old_form, failure);
            self.check_flood()?;
            return Ok(ServerEvent::Refused { tag, why });
        }
        let decoded = match assembled {
            Assembled::TooLarge => Err(Refusal::TooLarge),
            Assembled::Whole(body) => decode(old_form, body, &self.config.limits).map_err(Refusal::Malformed),
        };
        match decoded {
            Ok(request) => {
                self.stamp = self.stamp.wrapping_add(1);
                let slot = Slot::Running { stamp: self.stamp, old_form, token: None };
                self.table.set(tag, slot, &self.outbox);
                Ok(ServerEvent::Dispatch { call: Call { tag, stamp: self.stamp }, request })
            }
            Err(why) => {
                let text = match &why {
                    Refusal::Malformed(error) => error.to_string(),
                    _ => "message is larger than is accepted".to_owned(),
                };
                self.error(tag, old_form, &text);
                self.check_flood()?;
                Ok(ServerEvent::Refused { tag, why })
            }
        }
    }

    /// Why a request that comes now is nacked, and what the nack says about repeating it.
    fn refusal(&self, now: Duration) -> Option<(Refusal, Option<MuxFailure>)> {
        let elsewhere = Some(MuxFailure::RETRYABLE_REJECTED);
        match self.phase {
            Phase::Drained => Some((Refusal::Draining, None)),
            Phase::Draining if self.drain == Drain::Refuse => Some((Refusal::Draining, elsewhere)),
            _ if self.config.nack_expired_lease && self.lease_end.is_some_and(|end| end <= now) => {
                Some((Refusal::Lease, None))
            }
            _ if self.in_flight() >= self.config.max_in_flight => Some((Refusal::InFlight, elsewhere)),
            _ if self.is_backed_up() => Some((Refusal::Queued, elsewhere)),
            _ => None,
        }
    }

    /// Everything in flight is lost with the session, and everybody is told why.
    fn duplicate(&mut self, tag: Tag) -> SessionError {
        let text = format!("Received duplicate tag {tag} from client.");
        for running in self.table.running_tags() {
            self.outbox.push_control(kind::RERR_OLD, running, text.as_bytes());
        }
        self.die(SessionError::DuplicateTag(tag))
    }

    fn discarded(&mut self, frame: Frame) -> Received<U> {
        let Tdiscarded { which, why } = Tdiscarded::decode(frame.body)
            .map_err(|error| self.die(SessionError::Malformed { kind: frame.kind, error }))?;
        let Some(tag) = Tag::new(which) else {
            self.counts.orphan_discards += 1;
            return Ok(ServerEvent::Nothing);
        };
        // Finagle says nothing when it drops part of a request, and its clients then wait for ever; we do say so.
        let partial = self.partials.drop_partial(tag);
        let (acknowledge, event) = match self.table.get_mut(which) {
            Some(Slot::Running { token, .. }) => {
                (true, ServerEvent::Discarded { tag, token: token.take(), why })
            }
            Some(Slot::Replied(ticket)) => {
                let cut = self.outbox.discard(*ticket) != Discarded::Written;
                (cut || partial, ServerEvent::Nothing)
            }
            Some(Slot::Free) | None => (partial, ServerEvent::Nothing),
        };
        if acknowledge {
            self.table.set(tag, Slot::Free, &self.outbox);
            self.outbox.push_control(kind::RDISCARDED, tag, &[]);
        } else {
            self.counts.orphan_discards += 1;
        }
        self.check_flood()?;
        Ok(event)
    }

    /// Well formed but out of place, or of the application's kind but unknown: an Rerr and on we go. Else the end.
    fn unexpected(&mut self, frame: Frame) -> Received<U> {
        match Message::decode_within(frame.kind, frame.body, &self.config.limits) {
            Err(MessageError::Type(kind)) if !kind::is_application(kind) => {
                Err(self.die(SessionError::UnknownType(kind)))
            }
            Ok(_) | Err(MessageError::Type(_)) => {
                self.counts.unexpected += 1;
                self.outbox.push_control(kind::RERR_OLD, frame.tag, unexpected_text(frame.kind).as_bytes());
                self.check_flood().map(|()| ServerEvent::Nothing)
            }
            Err(error) => Err(self.die(SessionError::Malformed { kind: frame.kind, error })),
        }
    }
}

fn decode(old_form: bool, body: Bytes, limits: &Limits) -> Result<Request, MessageError> {
    if old_form {
        Treq::decode_within(body, limits).map(Request::Treq)
    } else {
        Tdispatch::decode_within(body, limits).map(Request::Tdispatch)
    }
}
