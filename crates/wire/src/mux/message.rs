//! Bodies of messages to meaning and back (mux spec, sections 4 and 5), stricter than Finagle: a length that overruns
//! the message is an error, never a shorter string (section 19, gateway column).

mod init;
mod reader;
mod request;
#[cfg(test)]
mod tests;

pub use init::Init;
pub use reader::MessageError;
pub use request::{Rdispatch, Rreq, Status, Tdispatch, Treq};

use super::frame::kind;
use super::limits::{self, Limits};
use bytes::{BufMut, Bytes, BytesMut};
use reader::Reader;
pub(super) use request::encode_destination;

/// Cancellation of the dispatch named in the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tdiscarded {
    /// Number of the tag to cancel, 24 bits as on the wire: above [`Tag::MAX`](super::frame::Tag::MAX) it names nothing.
    pub which: u32,
    /// Why, as UTF-8 text; may be invalid, and is passed on as it is.
    pub why: Bytes,
}

impl Tdiscarded {
    /// Reads a body.
    ///
    /// # Errors
    /// [`MessageError::Short`] below three bytes.
    pub fn decode(body: Bytes) -> Result<Self, MessageError> {
        let mut reader = Reader::new(body);
        let which = u32::from(reader.u8("discarded tag")?) << 16 | u32::from(reader.u16("discarded tag")?);
        Ok(Self { which, why: reader.rest() })
    }

    /// Appends the body, with the reason cut at [`limits::MAX_TEXT`].
    pub fn encode(&self, out: &mut BytesMut) {
        encode_discarded(self.which, &self.why, out);
    }
}

pub(super) fn encode_discarded(which: u32, why: &[u8], out: &mut BytesMut) {
    let [_, a, b, c] = which.to_be_bytes();
    out.put_slice(&[a, b, c]);
    out.put_slice(&why[..limits::cut_text(why)]);
}

/// "You may count on me for this long."
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tlease {
    /// 0 = milliseconds from receipt; nothing else is understood by anybody.
    pub unit: u8,
    /// Amount; a top bit set is a negative number to Finagle, hence an expired lease.
    pub amount: u64,
}

impl Tlease {
    /// The unit "milliseconds from receipt".
    pub const MILLIS: u8 = 0;

    /// Reads a body; bytes beyond the ninth are ignored.
    ///
    /// # Errors
    /// [`MessageError::Short`] below nine bytes.
    pub fn decode(body: Bytes) -> Result<Self, MessageError> {
        let mut reader = Reader::new(body);
        Ok(Self { unit: reader.u8("lease unit")?, amount: reader.u64("lease amount")? })
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut BytesMut) {
        out.put_u8(self.unit);
        out.put_u64(self.amount);
    }
}

/// Any message, for those who do not know beforehand what comes. Session machines decode by type instead.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is the message of its name")]
pub enum Message {
    Treq(Treq),
    Rreq(Rreq),
    Tdispatch(Tdispatch),
    Rdispatch(Rdispatch),
    Tdrain,
    Rdrain,
    Tping,
    Rping,
    Tdiscarded(Tdiscarded),
    Rdiscarded,
    Tlease(Tlease),
    Tinit(Init),
    Rinit(Init),
    /// Text of the error.
    Rerr(Bytes),
}

impl Message {
    /// Reads the body of a whole message of this type, within the default limits.
    ///
    /// # Errors
    /// [`MessageError::Type`] for a type that does not exist, else what is wrong with the body and at which byte of it.
    pub fn decode(kind: i8, body: Bytes) -> Result<Self, MessageError> {
        Self::decode_within(kind, body, &Limits::DEFAULT)
    }

    /// Reads the body of a whole message of this type.
    ///
    /// # Errors
    /// [`MessageError::Type`] for a type that does not exist, else what is wrong with the body and at which byte of it.
    pub fn decode_within(kind: i8, body: Bytes, limits: &Limits) -> Result<Self, MessageError> {
        Ok(match kind {
            kind::TREQ => Self::Treq(Treq::decode(body)?),
            kind::RREQ => Self::Rreq(Rreq::decode(body)?),
            kind::TDISPATCH => Self::Tdispatch(Tdispatch::decode_within(body, limits)?),
            kind::RDISPATCH => Self::Rdispatch(Rdispatch::decode_within(body, limits)?),
            kind::TDRAIN => Self::Tdrain,
            kind::RDRAIN => Self::Rdrain,
            kind::TPING => Self::Tping,
            kind::RPING => Self::Rping,
            kind::TDISCARDED | kind::TDISCARDED_OLD => Self::Tdiscarded(Tdiscarded::decode(body)?),
            kind::RDISCARDED => Self::Rdiscarded,
            kind::TLEASE => Self::Tlease(Tlease::decode(body)?),
            kind::TINIT => Self::Tinit(Init::decode_within(body, limits)?),
            kind::RINIT => Self::Rinit(Init::decode_within(body, limits)?),
            kind::RERR | kind::RERR_OLD => Self::Rerr(body),
            other => return Err(MessageError::Type(other)),
        })
    }

    /// The type to write in the frame: of the two numbers that some messages have, the one that every peer knows.
    pub fn kind(&self) -> i8 {
        match self {
            Self::Treq(_) => kind::TREQ,
            Self::Rreq(_) => kind::RREQ,
            Self::Tdispatch(_) => kind::TDISPATCH,
            Self::Rdispatch(_) => kind::RDISPATCH,
            Self::Tdrain => kind::TDRAIN,
            Self::Rdrain => kind::RDRAIN,
            Self::Tping => kind::TPING,
            Self::Rping => kind::RPING,
            Self::Tdiscarded(_) => kind::TDISCARDED_OLD,
            Self::Rdiscarded => kind::RDISCARDED,
            Self::Tlease(_) => kind::TLEASE,
            Self::Tinit(_) => kind::TINIT,
            Self::Rinit(_) => kind::RINIT,
            Self::Rerr(_) => kind::RERR_OLD,
        }
    }

    /// Appends the body (no frame header).
    pub fn encode(&self, out: &mut BytesMut) {
        match self {
            Self::Treq(m) => m.encode(out),
            Self::Rreq(m) => m.encode(out),
            Self::Tdispatch(m) => m.encode(out),
            Self::Rdispatch(m) => m.encode(out),
            Self::Tdiscarded(m) => m.encode(out),
            Self::Tlease(m) => m.encode(out),
            Self::Tinit(m) | Self::Rinit(m) => m.encode(out),
            Self::Rerr(text) => out.put_slice(&text[..limits::cut_text(text)]),
            Self::Tdrain | Self::Rdrain | Self::Tping | Self::Rping | Self::Rdiscarded => {}
        }
    }
}
