//! The struct before every reply.

use super::request::{read_pairs, write_pairs};
use crate::mux::limits::{MAX_CONTEXT_BYTES, MAX_CONTEXTS};
use crate::pairs::Pairs;
use crate::thrift::cursor::Cursor;
use crate::thrift::error::ThriftError;
use crate::thrift::skip::{skip_struct, skip_value};
use crate::thrift::types::{Items, Read, Type, Write};
use crate::thrift::{Protocol, binary, compact};
use bytes::{BufMut, BytesMut};

/// What a server says beside a reply. Finagle's servers always send an empty one; its spans are not kept here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseHeader {
    /// Field 2: keys and values as in Mux.
    pub contexts: Pairs,
}

impl ResponseHeader {
    /// Writes the header that Finagle writes: an empty struct, one byte in both protocols.
    pub fn write_empty(out: &mut BytesMut) {
        out.put_u8(0);
    }

    /// Says where the message behind the header begins, without reading the header's fields. Steps over a whole
    /// struct: not every server sends an empty one.
    ///
    /// # Errors
    /// A struct that does not read.
    pub fn skip(protocol: Protocol, frame: &[u8]) -> Result<usize, ThriftError> {
        if frame.first() == Some(&0) {
            return Ok(1);
        }
        let mut cursor = Cursor::whole(frame);
        skip_struct(protocol, &mut cursor)?;
        Ok(cursor.at())
    }

    /// Reads the header; also says where the message begins.
    ///
    /// # Errors
    /// A struct that does not read, or has more contexts than [`MAX_CONTEXTS`].
    pub fn decode(protocol: Protocol, frame: &[u8]) -> Result<(Self, usize), ThriftError> {
        let cursor = Cursor::whole(frame);
        match protocol {
            Protocol::Binary => read(binary::Reader(cursor)),
            Protocol::Compact => read(compact::Reader(cursor)),
        }
    }

    /// Writes the header with its contexts; empty ones are not written.
    pub fn encode(&self, protocol: Protocol, out: &mut BytesMut) {
        match protocol {
            Protocol::Binary => write(self, binary::Writer(out)),
            Protocol::Compact => write(self, compact::Writer(out)),
        }
    }
}

fn read<'a, R: Read<'a>>(mut reader: R) -> Result<(ResponseHeader, usize), ThriftError> {
    let mut header = ResponseHeader::default();
    let mut last = 0;
    while let Some(field) = reader.field(last)? {
        last = field.id;
        match (field.id, field.ty) {
            (2, Type::List) => header.contexts = read_pairs(&mut reader, MAX_CONTEXTS, MAX_CONTEXT_BYTES)?,
            (_, ty) => skip_value(&mut reader, ty, field.inline, 1)?,
        }
    }
    let at = reader.cursor().at();
    Ok((header, at))
}

fn write(header: &ResponseHeader, mut writer: impl Write) {
    if !header.contexts.is_empty() {
        // Written as the one known sample has it: an empty list of spans, then the contexts.
        writer.field(0, 1, Type::List);
        writer.items(Items { ty: Type::Struct, count: 0 });
        writer.field(1, 2, Type::List);
        write_pairs(&mut writer, &header.contexts);
    }
    writer.stop();
}
