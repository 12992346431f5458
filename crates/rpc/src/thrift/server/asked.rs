//! From a message to a call and to the form its answer must have.

use super::{Framing, ServerParams};
use crate::bridge::{self, Refusal};
use crate::events::Events;
use crate::{Failure, Payload, Peer, Request, Response, headers};
use bytes::{Bytes, BytesMut};
use muxgate_wire::thrift::{
    ApplicationExceptionType, Kind, Protocol, ThriftError, Why, exception, peek, theader, ttwitter,
};

/// What stands around the message of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Envelope {
    /// Nothing.
    Plain,
    /// An empty response header.
    TTwitter,
    /// A header that repeats what the call's said.
    THeader { seqid: i32, protocol: Protocol, zlib: bool },
}

/// A reply on its way to its caller.
pub(super) struct Reply {
    pub envelope: Envelope,
    pub contexts: Vec<(Bytes, Bytes)>,
    pub body: Bytes,
}

impl Reply {
    /// A message of our own, with nothing around it.
    pub(super) fn plain(body: Bytes) -> Self {
        Self::in_envelope(Envelope::Plain, body)
    }

    fn in_envelope(envelope: Envelope, body: Bytes) -> Self {
        Self { envelope, contexts: Vec::new(), body }
    }

    /// What came of a call, as its caller understands it; none for a oneway call.
    pub(super) fn of(result: Result<Response, Failure>, call: &Payload, envelope: Envelope) -> Option<Self> {
        if call.is_oneway() {
            return None;
        }
        Some(match result {
            Ok(Response { body, contexts, .. }) => Self { envelope, contexts, body },
            Err(failure) => Self::in_envelope(envelope, bridge::exception(call, &failure)),
        })
    }
}

/// A message that makes no call.
pub(super) enum Settled {
    /// It has its answer already.
    Answer(Reply),
    /// It wants none.
    Nothing,
    /// It cannot be read at all: there is nobody to answer, and no trust in what follows.
    Lost,
}

/// Reads the messages of a connection.
pub(super) struct Reader<'a> {
    framing: Framing,
    /// The protocol of TTwitter's headers, once upgraded.
    upgraded: Option<Protocol>,
    /// No message has come yet: only now the upgrade call is one.
    first: bool,
    peer: Peer,
    params: &'a ServerParams,
    events: &'a dyn Events,
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        framing: Framing,
        peer: Peer,
        params: &'a ServerParams,
        events: &'a dyn Events,
    ) -> Self {
        Self { framing, upgraded: None, first: true, peer, params, events }
    }

    /// Reads a message, or the content of a frame.
    ///
    /// # Errors
    /// What there is to do instead of a call.
    pub(super) fn read(&mut self, message: Bytes) -> Result<(Request, Envelope), Settled> {
        let first = std::mem::replace(&mut self.first, false);
        if self.framing == Framing::Header {
            return self.read_theader(message);
        }
        if first && let Some(answer) = self.upgrade(&message) {
            return Err(Settled::Answer(answer));
        }
        let limits = &self.params.limits;
        let (envelope, read) = match self.upgraded {
            Some(protocol) => {
                (Envelope::TTwitter, bridge::from_ttwitter(message, protocol, limits, self.peer.address))
            }
            None => (Envelope::Plain, bridge::from_thrift(message, self.peer.address)),
        };
        match read {
            Ok(request) => self.checked(request, envelope),
            Err(error) => {
                match error.why {
                    Why::NameTooLong(_) => self.events.limited("method_name"),
                    _ => self.events.decode_error("thrift"),
                }
                Err(Settled::Lost)
            }
        }
    }

    fn checked(
        &self,
        request: Result<Request, Refusal>,
        envelope: Envelope,
    ) -> Result<(Request, Envelope), Settled> {
        let refusal = match request {
            Ok(mut request) => match self.params.rules.apply(&mut request.body) {
                Ok(()) => {
                    request.local.identity.clone_from(&self.peer.identity);
                    return Ok((request, envelope));
                }
                Err(wrong) => {
                    self.events.decode_error("wrong_protocol");
                    let kind = ApplicationExceptionType::InvalidProtocol;
                    Refusal { call: request.body, kind, text: wrong.to_string() }
                }
            },
            Err(refusal) => {
                self.events.decode_error("no_call");
                refusal
            }
        };
        Err(match refusal.call.is_oneway() {
            true => Settled::Nothing,
            false => Settled::Answer(Reply::in_envelope(envelope, refusal.to_exception())),
        })
    }

    /// The answer to TTwitter's upgrade call; none for any other message. TTwitter has frames: without them it is refused,
    /// and its caller goes on plainly.
    fn upgrade(&mut self, message: &Bytes) -> Option<Reply> {
        let head = peek(message).ok().filter(|head| ttwitter::is_upgrade_call(head, message))?;
        let mut reply = BytesMut::new();
        if self.framing == Framing::Framed {
            self.upgraded = Some(head.protocol);
            ttwitter::write_upgrade_reply(head.form(), &mut reply);
        } else {
            let kind = ApplicationExceptionType::UnknownMethod;
            let text = "TTwitter needs framed connections";
            exception::write(head.form(), head.name_in(message), head.seqid, kind, text, &mut reply);
        }
        Some(Reply::plain(reply.freeze()))
    }

    fn read_theader(&self, frame: Bytes) -> Result<(Request, Envelope), Settled> {
        let max = self.params.max_frame;
        let read = match self.params.limits.destination_only {
            true => theader::decode_only(&frame, max, headers::DST),
            false => theader::decode(frame.clone(), max),
        };
        let (header, message) = match read {
            Ok(read) => read,
            Err(error) => return Err(self.unreadable(known_of(&frame), &error)),
        };
        let theader::Header { seqid, protocol, zlib, info, .. } = header;
        let envelope = Envelope::THeader { seqid, protocol, zlib };
        match bridge::from_theader(&info, message, &self.params.limits, self.peer.address) {
            Ok(Ok(request)) if request.body.protocol() != protocol => {
                let error = ThriftError {
                    at: 0,
                    why: Why::NotThrift(request.body.bytes().first().copied().unwrap_or(0)),
                };
                Err(self.unreadable(Some(envelope), &error))
            }
            Ok(request) => self.checked(request, envelope),
            Err(error) => Err(self.unreadable(Some(envelope), &error)),
        }
    }

    /// A frame whose message cannot be read is answered by its sequence id; its method stays unknown.
    fn unreadable(&self, envelope: Option<Envelope>, error: &ThriftError) -> Settled {
        match error.why {
            Why::TooMany { .. } | Why::TooLong { .. } => self.events.limited("contexts"),
            Why::NameTooLong(_) => self.events.limited("method_name"),
            Why::OverLimit { .. } => self.events.limited("message_too_long"),
            _ => self.events.decode_error("theader"),
        }
        let Some(envelope @ Envelope::THeader { seqid, protocol, .. }) = envelope else {
            return Settled::Lost;
        };
        let kind = match error.why {
            Why::UnknownTransform(_) | Why::BadZlib => ApplicationExceptionType::InvalidTransform,
            Why::UnknownProtocol(_) => ApplicationExceptionType::InvalidProtocol,
            _ => ApplicationExceptionType::ProtocolError,
        };
        let body = exception::to_bytes(protocol, b"", seqid, kind, &error.to_string());
        Settled::Answer(Reply::in_envelope(envelope, body))
    }
}

/// What is known of a THeader frame that cannot be taken apart; none if it is no such frame.
fn known_of(frame: &[u8]) -> Option<Envelope> {
    let (start, section) = frame.split_first_chunk::<10>()?;
    let [0x0f, 0xff, _, _, a, b, c, d, _, _] = *start else { return None };
    let protocol = if section.first() == Some(&2) { Protocol::Compact } else { Protocol::Binary };
    Some(Envelope::THeader { seqid: i32::from_be_bytes([a, b, c, d]), protocol, zlib: false })
}

/// Refuses a frame that is not taken for its length, by as much as is known from its first bytes: by the method if they reach
/// that far, else by the sequence id alone. None if not even that is there, or if nobody waits for an answer.
pub(super) fn refuse_header_frame(start: &[u8], text: &str) -> Option<Reply> {
    let mut envelope = known_of(start)?;
    let mut call = None;
    if let Ok((header, message)) = theader::decode_only(&Bytes::copy_from_slice(start), start.len(), b"") {
        let theader::Header { seqid, protocol, zlib, .. } = header;
        envelope = Envelope::THeader { seqid, protocol, zlib };
        call = peek(&message).ok().map(|head| (head, message));
    }
    let Envelope::THeader { seqid, protocol, .. } = envelope else { return None };
    let kind = ApplicationExceptionType::ProtocolError;
    let body = match &call {
        Some((head, _)) if head.kind != Kind::Call => return None,
        Some((head, message)) => {
            exception::to_bytes(head.form(), head.name_in(message), head.seqid, kind, text)
        }
        None => exception::to_bytes(protocol, b"", seqid, kind, text),
    };
    Some(Reply::in_envelope(envelope, body))
}
