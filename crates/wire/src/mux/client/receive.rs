//! Frames from the server (mux spec, section 8).

use super::super::fragment::Assembled;
use super::super::frame::{Frame, Tag, kind};
use super::super::limits;
use super::super::message::{MessageError, Rdispatch, Rreq, Tlease};
use super::super::session::{SessionError, unexpected_text};
use super::handshake::Shaken;
use super::{CallFailure, ClientSession, Event, Form, Phase, Ping, Slot};
use bytes::Bytes;
use std::time::Duration;

type Received<T> = Result<Option<Event<T>>, SessionError>;

impl<T> ClientSession<T> {
    /// Handles a frame. At most one event comes of it.
    ///
    /// # Errors
    /// The session is dead: write what is in the outbox, take back the tokens, close the socket.
    #[inline]
    pub fn receive(&mut self, frame: Frame, now: Duration) -> Received<T> {
        match self.phase {
            Phase::Running | Phase::Draining => self.handle(frame, now),
            Phase::Closed => Err(SessionError::Closed),
            Phase::Probing | Phase::Offering | Phase::Switching => match self.shake(&frame, now)? {
                Shaken::Event(event) => Ok(event),
                // What else it may mean (a drain, a lease) shows in the session's status.
                Shaken::First(event) => self.handle(frame, now).map(|_| Some(event)),
            },
        }
    }

    #[inline]
    fn handle(&mut self, frame: Frame, now: Duration) -> Received<T> {
        if frame.fragment {
            let pushed = self.partials.push(frame.tag, &frame.body, now);
            return pushed.map(|()| None).map_err(|error| self.die(error));
        }
        match frame.kind {
            kind::RDISPATCH | kind::RREQ => self.reply(frame),
            _ => self.control(frame, now),
        }
    }

    #[inline]
    fn reply(&mut self, frame: Frame) -> Received<T> {
        let Assembled::Whole(body) = self.partials.finish(frame.tag, frame.body) else {
            return Ok(self.fail(frame.tag, CallFailure::TooLarge));
        };
        let decoded = if frame.kind == kind::RDISPATCH {
            if self.form == Form::Unproven {
                self.form = Form::Tdispatch;
            }
            Rdispatch::decode_within(body, &self.config.limits)
        } else {
            Rreq::decode(body).map(|Rreq { status, body }| Rdispatch { status, body, ..Rdispatch::default() })
        };
        match decoded {
            Ok(reply) => Ok(self.end(frame.tag).map(|token| Event::Replied { token, reply })),
            // Too much for us, but the peer is in its right mind: only this call fails.
            Err(error) if error.is_limit() => Ok(self.fail(frame.tag, CallFailure::TooLarge)),
            Err(error) => Err(self.malformed(frame.kind, error)),
        }
    }

    /// An R message has come for this tag: it is free. The token, if somebody still waits.
    #[inline]
    fn end(&mut self, tag: Tag) -> Option<T> {
        match self.slot(tag).map(|slot| std::mem::replace(slot, Slot::Free)) {
            Some(Slot::Live { token, .. }) => {
                self.proven = true;
                self.free.give(tag);
                self.in_flight -= 1;
                Some(token)
            }
            Some(Slot::Cancelled) => {
                self.counts.late_replies += 1;
                self.free_tag(tag);
                None
            }
            Some(Slot::Lost) => {
                self.counts.late_replies += 1;
                self.lost -= 1;
                self.free.give(tag);
                None
            }
            Some(Slot::Free) | None => {
                self.counts.late_replies += 1;
                None
            }
        }
    }

    fn fail(&mut self, tag: Tag, why: CallFailure) -> Option<Event<T>> {
        self.end(tag).map(|token| Event::Failed { token, why })
    }

    fn control(&mut self, frame: Frame, now: Duration) -> Received<T> {
        let Frame { kind, tag, body, .. } = frame;
        match kind {
            kind::TPING => self.answer(kind::RPING, tag, &[]),
            kind::RPING => {
                self.pong();
                Ok(None)
            }
            kind::RERR | kind::RERR_OLD => self.rerr(tag, body),
            kind::RDISCARDED => {
                self.partials.drop_partial(tag);
                // What was cancelled is now free; what was not has failed.
                let late = self.counts.late_replies;
                let event = self.fail(tag, CallFailure::Unexpected(kind));
                self.counts.late_replies = late;
                Ok(event)
            }
            kind::RINIT | kind::RDRAIN => Ok(self.fail(tag, CallFailure::Unexpected(kind))),
            kind::TDRAIN => {
                self.answer(kind::RDRAIN, tag, &[])?;
                self.phase = Phase::Draining;
                Ok(Some(Event::Draining))
            }
            kind::TLEASE => self.lease(body, now),
            // Finagle clients take it for an answer, because of its old number.
            kind::TDISCARDED | kind::TDISCARDED_OLD => {
                self.counts.unexpected += 1;
                Ok(None)
            }
            kind::TDISPATCH | kind::TREQ | kind::TINIT => Err(self.die(SessionError::Unexpected(kind))),
            _ => self.unknown(kind, tag),
        }
    }

    fn unknown(&mut self, kind: i8, tag: Tag) -> Received<T> {
        if !kind::is_application(kind) {
            return Err(self.die(SessionError::UnknownType(kind)));
        }
        self.counts.unexpected += 1;
        if kind < 0 {
            return Ok(self.fail(tag, CallFailure::Unexpected(kind)));
        }
        self.answer(kind::RERR_OLD, tag, unexpected_text(kind).as_bytes())
    }

    fn answer(&mut self, kind: i8, tag: Tag, body: &[u8]) -> Received<T> {
        self.outbox.push_control(kind, tag, body);
        if self.outbox.queued_control() > limits::MAX_QUEUED_CONTROL {
            return Err(self.die(SessionError::Flood));
        }
        Ok(None)
    }

    fn pong(&mut self) {
        self.proven = true;
        if let (Ping::Sent(at), Some(interval)) = (self.ping, self.config.ping_interval) {
            self.ping = Ping::Due(Some(at.saturating_add(interval)));
        }
    }

    fn rerr(&mut self, tag: Tag, text: Bytes) -> Received<T> {
        // Unlike Finagle, what was buffered is dropped, not put in front of the text.
        self.partials.drop_partial(tag);
        let in_use = matches!(self.slot(tag), Some(slot) if !matches!(slot, Slot::Free));
        if self.send_again(tag) {
            return Ok(None);
        }
        if tag != Tag::SESSION || in_use {
            return Ok(self.fail(tag, CallFailure::Rerr(text)));
        }
        // On the session's own tag: the answer to a ping that the peer does not know, at least it is alive; or, right
        // after a Rinit, the reason why the peer is about to close.
        if self.proven && matches!(self.ping, Ping::Sent(_)) {
            self.pong();
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        Err(self.die(SessionError::Peer(text)))
    }

    fn lease(&mut self, body: Bytes, now: Duration) -> Received<T> {
        let Tlease { unit, amount } =
            Tlease::decode(body).map_err(|error| self.malformed(kind::TLEASE, error))?;
        if unit != Tlease::MILLIS {
            return Err(self.die(SessionError::Unexpected(kind::TLEASE)));
        }
        if self.phase == Phase::Draining {
            return Ok(None);
        }
        // A set top bit is a negative number to Finagle: expired.
        let amount = if amount > i64::MAX as u64 { 0 } else { amount };
        let length = Duration::from_millis(amount);
        self.lease_end = now.checked_add(length);
        Ok(Some(Event::Leased(self.lease_end.map(|_| length))))
    }

    fn malformed(&mut self, kind: i8, error: MessageError) -> SessionError {
        self.die(SessionError::Malformed { kind, error })
    }
}
