//! The client's side of the handshake (mux spec, section 7.3).

use super::super::frame::{Frame, Tag, kind};
use super::super::handshake::{Agreed, HandshakeError, TlsLevel, is_probe};
use super::super::message::{Message, MessageError};
use super::super::session::SessionError;
use super::{ClientSession, Event, Form, Phase};
use bytes::BytesMut;
use std::time::Duration;

/// What a frame did to the handshake.
pub(super) enum Shaken<T> {
    /// It was part of it.
    Event(Option<Event<T>>),
    /// It ended it, which is the event, and is still to be handled as the session's first.
    First(Event<T>),
}

impl<T> ClientSession<T> {
    /// To be called when TLS or compression has begun after [`Event::Established`] said so; what was held back is written
    /// now.
    pub fn switched(&mut self, now: Duration) {
        if self.phase == Phase::Switching {
            self.run(now);
        }
    }

    /// Handles a frame that came before the end of the handshake.
    pub(super) fn shake(&mut self, frame: &Frame, now: Duration) -> Result<Shaken<T>, SessionError> {
        if self.phase == Phase::Switching {
            return Err(self.die(SessionError::Unexpected(frame.kind)));
        }
        if is_probe(frame) && self.phase == Phase::Probing {
            let mut body = BytesMut::new();
            self.config.offer.to_tinit().encode(&mut body);
            self.outbox.push_control(kind::TINIT, Tag::SESSION, &body);
            self.phase = Phase::Offering;
            return Ok(Shaken::Event(None));
        }
        if frame.fragment {
            return self.no_handshake(frame, now);
        }
        // Messages are decoded whole here: what does not decode fails the handshake.
        let message =
            Message::decode_within(frame.kind, frame.body.clone(), &self.config.limits).map_err(|error| {
                self.die(match error {
                    MessageError::Type(kind) => SessionError::UnknownType(kind),
                    error => SessionError::Malformed { kind: frame.kind, error },
                })
            })?;
        if self.phase == Phase::Probing {
            return self.no_handshake(frame, now);
        }
        let failed = match message {
            Message::Rinit(init) => match self.config.offer.agree_with_server(&init) {
                Ok(agreed) => return Ok(Shaken::Event(Some(self.established(agreed, now)))),
                Err(error) => error,
            },
            Message::Rerr(text) => HandshakeError::Refused(String::from_utf8_lossy(&text).into_owned()),
            other => HandshakeError::Unexpected(other.kind()),
        };
        Err(self.die(failed.into()))
    }

    /// The server does not know the handshake. The Rerr by which it says so has done its duty, and any other R message
    /// answers nothing, for nothing else has been sent; a T message is handled (Finagle throws it away).
    fn no_handshake(&mut self, frame: &Frame, now: Duration) -> Result<Shaken<T>, SessionError> {
        if self.phase == Phase::Offering {
            return Err(self.die(HandshakeError::Unexpected(frame.kind).into()));
        }
        if self.config.offer.tls == TlsLevel::Required {
            return Err(self.die(HandshakeError::Tls.into()));
        }
        let event = self.established(Agreed::NOTHING, now);
        let t_message = matches!(
            frame.kind,
            kind::TPING | kind::TDRAIN | kind::TLEASE | kind::TDISPATCH | kind::TREQ | kind::TINIT
        );
        let first = frame.fragment || t_message;
        Ok(if first { Shaken::First(event) } else { Shaken::Event(Some(event)) })
    }

    fn established(&mut self, agreed: Agreed, now: Duration) -> Event<T> {
        self.proven = !agreed.handshake;
        self.outbox.set_window(agreed.window);
        if agreed.handshake {
            self.form = Form::Tdispatch;
        }
        if agreed.switches() {
            self.phase = Phase::Switching;
        } else {
            self.run(now);
        }
        Event::Established(agreed)
    }

    fn run(&mut self, now: Duration) {
        self.phase = Phase::Running;
        self.started.get_or_insert(now);
        if self.config.ping_interval.is_some() {
            self.outbox.push_control(kind::TPING, Tag::SESSION, &[]);
            self.ping = super::Ping::Sent(now);
        }
        self.release();
    }
}
