//! Tinit and Rinit: a version and headers.

use super::super::limits::Limits;
use super::reader::{MessageError, Reader};
use bytes::{BufMut, Bytes, BytesMut};

/// Body of Tinit and Rinit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Init {
    /// Version; there is only 1.
    pub version: u16,
    /// Headers in wire order, duplicates kept; of a repeated key the first counts.
    pub headers: Vec<(Bytes, Bytes)>,
}

impl Init {
    /// Reads a body within the default limits.
    ///
    /// # Errors
    /// [`MessageError`] naming the byte.
    pub fn decode(body: Bytes) -> Result<Self, MessageError> {
        Self::decode_within(body, &Limits::DEFAULT)
    }

    /// Reads a body.
    ///
    /// # Errors
    /// [`MessageError`] naming the byte.
    pub fn decode_within(body: Bytes, limits: &Limits) -> Result<Self, MessageError> {
        if body.len() > limits.init_bytes {
            return Err(MessageError::Limit { what: "headers", at: limits.init_bytes });
        }
        let mut reader = Reader::new(body);
        let version = reader.u16("version")?;
        let mut headers = Vec::new();
        while !reader.is_empty() {
            if headers.len() >= limits.init_headers {
                return Err(MessageError::Limit { what: "headers", at: reader.at() });
            }
            let key = str32(&mut reader, "header key")?;
            let value = str32(&mut reader, "header value")?;
            headers.push((key, value));
        }
        Ok(Self { version, headers })
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut BytesMut) {
        out.put_u16(self.version);
        for text in self.headers.iter().flat_map(|(key, value)| [key, value]) {
            out.put_u32(text.len() as u32);
            out.put_slice(text);
        }
    }

    /// The value of the first header with this key.
    pub fn header(&self, key: &[u8]) -> Option<&Bytes> {
        self.headers.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }
}

fn str32(reader: &mut Reader, what: &'static str) -> Result<Bytes, MessageError> {
    let len = reader.u32(what)?;
    reader.take(len as usize, what)
}
