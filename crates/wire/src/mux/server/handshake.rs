//! The server's side of the handshake (mux spec, section 7.2).

use super::super::frame::{Frame, Tag, kind};
use super::super::handshake::{HandshakeError, PROBE, TlsLevel, VERSION, is_probe};
use super::super::message::{Init, Message, MessageError};
use super::super::session::SessionError;
use super::{Phase, ServerEvent, ServerSession};
use bytes::BytesMut;

impl<U> ServerSession<U> {
    /// Handles a frame that came before the session began. `Ok(None)`: it began it, and is still to be handled.
    pub(super) fn shake(&mut self, frame: &Frame) -> Result<Option<ServerEvent<U>>, SessionError> {
        if self.phase == Phase::Fresh && is_probe(frame) {
            self.outbox.push_control(kind::RERR_OLD, Tag::SESSION, PROBE);
            self.phase = Phase::Probed;
            return Ok(Some(ServerEvent::Nothing));
        }
        if self.phase == Phase::Probed && frame.kind == kind::TINIT && !frame.fragment {
            return self.tinit(frame).map(Some);
        }
        if !frame.fragment {
            // A request that does not decode is answered later on; anything else is not Mux at all.
            let request = matches!(frame.kind, kind::TDISPATCH | kind::TREQ);
            match Message::decode_within(frame.kind, frame.body.clone(), &self.config.limits) {
                Err(MessageError::Type(kind)) => return Err(self.die(SessionError::UnknownType(kind))),
                Err(error) if !request => {
                    return Err(self.die(SessionError::Malformed { kind: frame.kind, error }));
                }
                _ => {}
            }
        }
        if self.config.offer.tls == TlsLevel::Required {
            return Err(self.refuse_handshake(frame.tag, HandshakeError::Tls));
        }
        self.begin();
        Ok(None)
    }

    /// To be called when TLS or compression has begun after [`ServerEvent::Established`] said so.
    pub fn switched(&mut self) {
        if self.phase == Phase::Switching {
            self.begin();
        }
    }

    fn begin(&mut self) {
        self.phase = Phase::Open;
        self.push_lease();
        self.begin_drain();
    }

    fn tinit(&mut self, frame: &Frame) -> Result<ServerEvent<U>, SessionError> {
        let init = Init::decode_within(frame.body.clone(), &self.config.limits)
            .map_err(|error| self.die(SessionError::Malformed { kind: kind::TINIT, error }))?;
        if init.version != VERSION {
            return Err(self.refuse_handshake(frame.tag, HandshakeError::Version(init.version)));
        }
        let mut body = BytesMut::new();
        self.config.offer.to_rinit(&init).encode(&mut body);
        // Rinit goes out even if we then find that we do not agree: that is how Finagle clients get to see our headers.
        self.outbox.push_control(kind::RINIT, frame.tag, &body);
        match self.config.offer.agree_with_client(&init) {
            Ok(agreed) => {
                self.outbox.set_window(agreed.window);
                if agreed.switches() {
                    self.phase = Phase::Switching;
                } else {
                    self.begin();
                }
                Ok(ServerEvent::Established(agreed))
            }
            Err(error) => Err(self.refuse_handshake(frame.tag, error)),
        }
    }

    fn refuse_handshake(&mut self, tag: Tag, error: HandshakeError) -> SessionError {
        self.outbox.push_control(kind::RERR_OLD, tag, error.to_string().as_bytes());
        self.die(error.into())
    }
}
