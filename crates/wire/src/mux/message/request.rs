//! Requests and replies: Treq, Rreq, Tdispatch, Rdispatch.

use super::super::context::TraceContext;
use super::super::limits::Limits;
use super::reader::{MessageError, Reader};
use crate::pairs::Pairs;
use bytes::{BufMut, Bytes, BytesMut};

/// A request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tdispatch {
    /// Contexts in wire order, duplicates kept.
    pub contexts: Pairs,
    /// Text of the destination path; empty = the empty path. Not parsed here.
    pub dst: Bytes,
    /// Delegations as received, (prefix, tree) texts. Not parsed here.
    pub dtab: Pairs,
    /// The request itself.
    pub body: Bytes,
}

impl Tdispatch {
    /// Reads a body within the default limits; all parts share its memory.
    ///
    /// # Errors
    /// [`MessageError`] naming the byte.
    #[inline]
    pub fn decode(body: Bytes) -> Result<Self, MessageError> {
        Self::decode_within(body, &Limits::DEFAULT)
    }

    /// Reads a body; all parts share its memory.
    ///
    /// # Errors
    /// [`MessageError`] naming the byte.
    #[inline]
    pub fn decode_within(body: Bytes, limits: &Limits) -> Result<Self, MessageError> {
        let mut reader = Reader::new(body);
        if limits.destination_only {
            return Self::without_extras(reader, limits);
        }
        let contexts = reader.contexts(limits)?;
        let dst = reader.str16("destination", limits.destination_bytes)?;
        let dtab = reader.pairs("dtab", limits.dtab_entries, usize::MAX)?;
        Ok(Self { contexts, dst, dtab, body: reader.rest() })
    }

    /// See [`Limits::destination_only`].
    fn without_extras(mut reader: Reader, limits: &Limits) -> Result<Self, MessageError> {
        reader.pairs("contexts", usize::MAX, usize::MAX)?;
        let dst = reader.str16("destination", limits.destination_bytes)?;
        reader.pairs("dtab", usize::MAX, usize::MAX)?;
        Ok(Self { dst, body: reader.rest(), ..Self::default() })
    }

    /// Appends the message body.
    pub fn encode(&self, out: &mut BytesMut) {
        self.contexts.write(out);
        encode_destination(&self.dst, &self.dtab, out);
        out.put_slice(&self.body);
    }
}

/// The part of a Tdispatch between contexts and body. The caller has checked the length of `dst`.
pub(in super::super) fn encode_destination(dst: &[u8], dtab: &Pairs, out: &mut BytesMut) {
    out.put_u16(dst.len() as u16);
    out.put_slice(dst);
    dtab.write(out);
}

/// Length of the only trace id a Treq can carry.
const TREQ_TRACE: usize = 24;
const TREQ_KEY_TRACE: u8 = 1;
const TREQ_KEY_FLAGS: u8 = 2;

/// A request of the old form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Treq {
    /// Trace id and flags as one context (never with a high half), to be sent on as such. Of the flags word, a Treq
    /// holds the low byte only; unlike Finagle we do not sign-extend it.
    pub trace: Option<TraceContext>,
    /// The request itself.
    pub body: Bytes,
}

impl Treq {
    /// Reads a body. Unknown keys are skipped; of a repeated key the last one counts.
    ///
    /// # Errors
    /// [`MessageError`] naming the byte.
    pub fn decode(body: Bytes) -> Result<Self, MessageError> {
        Self::decode_within(body, &Limits::DEFAULT)
    }

    /// The same; of the limits only [`Limits::destination_only`] counts, with which there is no trace.
    ///
    /// # Errors
    /// [`MessageError`] naming the byte.
    pub fn decode_within(body: Bytes, limits: &Limits) -> Result<Self, MessageError> {
        let mut reader = Reader::new(body);
        let keys = reader.u8("number of keys")?;
        if keys > 127 {
            return Err(MessageError::Negative { what: "number of keys", at: 0 });
        }
        let mut trace = None;
        let mut flags = 0;
        for _ in 0..keys {
            let key = reader.u8("key")?;
            let len = usize::from(reader.u8("value length")?);
            let at = reader.at();
            let value = reader.take(len, "value")?;
            match key {
                _ if limits.destination_only => {}
                TREQ_KEY_TRACE => {
                    trace =
                        Some(TraceContext::from_treq(&value).ok_or(MessageError::TraceLength { len, at })?);
                }
                TREQ_KEY_FLAGS => flags = value.last().copied().unwrap_or(0),
                _ => {}
            }
        }
        let trace = trace.map(|trace| TraceContext { flags: u64::from(flags), ..trace });
        Ok(Self { trace, body: reader.rest() })
    }

    /// Appends the message body: both keys when there is a trace id, else none. A high half is left out.
    pub fn encode(&self, out: &mut BytesMut) {
        match &self.trace {
            None => out.put_u8(0),
            Some(trace) => {
                out.put_slice(&[2, TREQ_KEY_TRACE, TREQ_TRACE as u8]);
                out.put_u64(trace.span_id);
                out.put_u64(trace.parent_id);
                out.put_u64(trace.trace_id);
                out.put_slice(&[TREQ_KEY_FLAGS, 1, trace.flags as u8]);
            }
        }
        out.put_slice(&self.body);
    }
}

/// How a request went, as far as Mux is concerned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// The application answered.
    #[default]
    Ok = 0,
    /// The server tried and failed; the body is text.
    Error = 1,
    /// The server did not do the work.
    Nack = 2,
}

impl Status {
    fn read(reader: &mut Reader) -> Result<Self, MessageError> {
        match reader.u8("status")? {
            0 => Ok(Self::Ok),
            1 => Ok(Self::Error),
            2 => Ok(Self::Nack),
            other => Err(MessageError::Status(other)),
        }
    }
}

/// A reply to a Tdispatch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rdispatch {
    /// How it went.
    pub status: Status,
    /// Contexts in wire order, duplicates kept.
    pub contexts: Pairs,
    /// OK: the reply. ERROR: text. NACK: nothing of interest.
    pub body: Bytes,
}

impl Rdispatch {
    /// Reads a body within the default limits; all parts share its memory.
    ///
    /// # Errors
    /// [`MessageError`] naming the byte.
    #[inline]
    pub fn decode(body: Bytes) -> Result<Self, MessageError> {
        Self::decode_within(body, &Limits::DEFAULT)
    }

    /// Reads a body; all parts share its memory.
    ///
    /// # Errors
    /// [`MessageError`] naming the byte.
    #[inline]
    pub fn decode_within(body: Bytes, limits: &Limits) -> Result<Self, MessageError> {
        let mut reader = Reader::new(body);
        let status = Status::read(&mut reader)?;
        let contexts = reader.contexts(limits)?;
        Ok(Self { status, contexts, body: reader.rest() })
    }

    /// Appends the message body.
    pub fn encode(&self, out: &mut BytesMut) {
        out.put_u8(self.status as u8);
        self.contexts.write(out);
        out.put_slice(&self.body);
    }
}

/// A reply to a Treq.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rreq {
    /// How it went.
    pub status: Status,
    /// As in [`Rdispatch::body`].
    pub body: Bytes,
}

impl Rreq {
    /// Reads a body.
    ///
    /// # Errors
    /// [`MessageError`] for a missing or unknown status.
    pub fn decode(body: Bytes) -> Result<Self, MessageError> {
        let mut reader = Reader::new(body);
        Ok(Self { status: Status::read(&mut reader)?, body: reader.rest() })
    }

    /// Appends the message body.
    pub fn encode(&self, out: &mut BytesMut) {
        out.put_u8(self.status as u8);
        out.put_slice(&self.body);
    }
}
