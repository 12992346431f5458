//! The struct before every request.

use crate::mux::limits::Limits;
use crate::pairs::Pairs;
use crate::thrift::cursor::Cursor;
use crate::thrift::error::{ThriftError, Why};
use crate::thrift::skip::skip_value;
use crate::thrift::types::{Items, Read, Type, Write};
use crate::thrift::{Protocol, binary, compact};
use bytes::{Bytes, BytesMut};
use std::ops::Range;

/// Most bytes of all keys and values of a header's delegations together.
const MAX_DELEGATION_BYTES: usize = 64 * 1024;

/// What a TTwitter client says about a request. Ids are bit patterns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestHeader {
    /// Field 1: the low half of the trace id. Always written; absent reads as 0.
    pub trace_id: u64,
    /// Field 2: always written; absent reads as 0.
    pub span_id: u64,
    /// Field 3: absent for a root span.
    pub parent_span_id: Option<u64>,
    /// Field 5: absent while nobody has decided.
    pub sampled: Option<bool>,
    /// Field 6: the name in its struct; the calling service by its own claim.
    pub client_id: Option<Bytes>,
    /// Field 7: the flags word of a trace context.
    pub flags: Option<u64>,
    /// Field 8: keys and values as in Mux. An empty list is not written.
    pub contexts: Pairs,
    /// Field 9: path text, not checked here.
    pub dest: Option<Bytes>,
    /// Field 10: prefix and name tree, as in a Mux dtab but with wildcards allowed; not checked here.
    pub delegations: Pairs,
    /// Field 11: the high half of a 128-bit trace id. Read by Finagle, never written by it.
    pub trace_id_high: Option<u64>,
}

/// A part of a header that is more than is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Excess {
    /// Which: `contexts` (the client id is one), `dtab` or `destination`.
    pub what: &'static str,
    /// Where, and by how much.
    pub error: ThriftError,
}

/// A header while its texts are still borrowed.
#[derive(Default)]
struct Raw {
    header: RequestHeader,
    client_id: Option<Range<usize>>,
    dest: Option<Range<usize>>,
    excess: Option<Excess>,
}

impl RequestHeader {
    /// Reads the header in front of a request; also says where the message begins. Texts share the frame's memory;
    /// contexts and delegations are copied, since their lengths are written differently here.
    ///
    /// A context or delegation that lacks one of its two strings is left out, unknown fields are skipped, and a
    /// known field of another type counts as unknown.
    ///
    /// # Errors
    /// A struct that does not read, or goes beyond the default limits.
    pub fn decode(protocol: Protocol, frame: &Bytes) -> Result<(Self, usize), ThriftError> {
        let (header, message_at, excess) = Self::decode_within(protocol, frame, &Limits::DEFAULT)?;
        excess.map_or(Ok((header, message_at)), |excess| Err(excess.error))
    }

    /// As [`Self::decode`], but a part beyond the limits is left out and named, so that the call can be answered: where the
    /// message begins is known all the same.
    ///
    /// # Errors
    /// A struct that does not read.
    pub fn decode_within(
        protocol: Protocol,
        frame: &Bytes,
        limits: &Limits,
    ) -> Result<(Self, usize, Option<Excess>), ThriftError> {
        let cursor = Cursor::whole(frame);
        let (raw, message_at) = match protocol {
            Protocol::Binary => read(binary::Reader(cursor), limits)?,
            Protocol::Compact => read(compact::Reader(cursor), limits)?,
        };
        let excess = raw.excess;
        let header = Self {
            client_id: raw.client_id.map(|range| frame.slice(range)),
            dest: raw.dest.map(|range| frame.slice(range)),
            ..raw.header
        };
        Ok((header, message_at, excess))
    }

    /// Writes the header; the message is to follow.
    pub fn encode(&self, protocol: Protocol, out: &mut BytesMut) {
        match protocol {
            Protocol::Binary => write(self, binary::Writer(out)),
            Protocol::Compact => write(self, compact::Writer(out)),
        }
    }
}

fn read<'a, R: Read<'a>>(mut reader: R, limits: &Limits) -> Result<(Raw, usize), ThriftError> {
    let mut raw = Raw::default();
    let mut last = 0;
    while let Some(field) = reader.field(last)? {
        last = field.id;
        let Raw { header, client_id, dest, excess } = &mut raw;
        match (field.id, field.ty) {
            (id, ty) if limits.destination_only && (id, ty) != (9, Type::String) => {
                skip_value(&mut reader, ty, field.inline, 1)?;
            }
            (1, Type::I64) => header.trace_id = reader.i64()? as u64,
            (2, Type::I64) => header.span_id = reader.i64()? as u64,
            (3, Type::I64) => header.parent_span_id = Some(reader.i64()? as u64),
            (5, Type::Bool) => header.sampled = Some(reader.bool(field.inline)?),
            (6, Type::Struct) => {
                *client_id = bounded(&mut reader, "contexts", field.ty, excess, |reader| {
                    read_client_id(reader, limits.destination_bytes)
                })?;
            }
            (7, Type::I64) => header.flags = Some(reader.i64()? as u64),
            (8, Type::List) => {
                header.contexts = bounded(&mut reader, "contexts", field.ty, excess, |reader| {
                    read_pairs(reader, limits.contexts, limits.context_bytes)
                })?;
            }
            (9, Type::String) => {
                *dest = bounded(&mut reader, "destination", field.ty, excess, |reader| {
                    read_text(reader, limits.destination_bytes).map(Some)
                })?;
            }
            (10, Type::List) => {
                header.delegations = bounded(&mut reader, "dtab", field.ty, excess, |reader| {
                    read_pairs(reader, limits.dtab_entries, MAX_DELEGATION_BYTES)
                })?;
            }
            (11, Type::I64) => header.trace_id_high = Some(reader.i64()? as u64),
            (_, ty) => skip_value(&mut reader, ty, field.inline, 1)?,
        }
    }
    let at = reader.cursor().at();
    Ok((raw, at))
}

/// Reads a value; one beyond its limits is noted, stepped over, and empty.
fn bounded<'a, R: Read<'a>, T: Default>(
    reader: &mut R,
    what: &'static str,
    ty: Type,
    excess: &mut Option<Excess>,
    read: impl FnOnce(&mut R) -> Result<T, ThriftError>,
) -> Result<T, ThriftError> {
    let start = reader.cursor().at();
    match read(reader) {
        Err(error) if matches!(error.why, Why::TooMany { .. } | Why::TooLong { .. }) => {
            reader.cursor().seek(start);
            skip_value(reader, ty, None, 1)?;
            excess.get_or_insert(Excess { what, error });
            Ok(T::default())
        }
        read => read,
    }
}

fn read_text<'a, R: Read<'a>>(reader: &mut R, most: usize) -> Result<Range<usize>, ThriftError> {
    let text = reader.string()?;
    if text.len() > most {
        return Err(ThriftError::new(text.start, Why::TooLong { len: text.len(), most }));
    }
    Ok(text)
}

/// `ClientId { 1: name }`.
fn read_client_id<'a, R: Read<'a>>(reader: &mut R, most: usize) -> Result<Option<Range<usize>>, ThriftError> {
    let mut name = None;
    let mut last = 0;
    while let Some(field) = reader.field(last)? {
        last = field.id;
        match (field.id, field.ty) {
            (1, Type::String) => name = Some(read_text(reader, most)?),
            (_, ty) => skip_value(reader, ty, field.inline, 2)?,
        }
    }
    Ok(name)
}

/// A list of structs whose fields 1 and 2 are strings: contexts, and delegations.
pub(super) fn read_pairs<'a, R: Read<'a>>(
    reader: &mut R,
    most: usize,
    most_bytes: usize,
) -> Result<Pairs, ThriftError> {
    let start = reader.cursor().at();
    let Items { ty, count } = reader.items()?;
    if count as usize > most {
        return Err(ThriftError::new(start, Why::TooMany { count: count as usize, most }));
    }
    if count > 0 && ty != Type::Struct {
        return Err(ThriftError::new(start, Why::WrongType(ty)));
    }
    let mut pairs = Vec::new();
    let mut bytes = 0usize;
    for _ in 0..count {
        let at = reader.cursor().at();
        let Some((key, value)) = read_pair(reader)? else { continue };
        let pair = (reader.cursor().slice(key), reader.cursor().slice(value));
        bytes += pair.0.len() + pair.1.len();
        if bytes > most_bytes {
            return Err(ThriftError::new(at, Why::TooLong { len: bytes, most: most_bytes }));
        }
        pairs.push(pair);
    }
    let longest = pairs.iter().map(|(key, value)| key.len().max(value.len())).max().unwrap_or(0);
    Pairs::build(pairs)
        .map_err(|_| ThriftError::new(start, Why::TooLong { len: longest, most: crate::pairs::MAX_STR16 }))
}

type Pair = (Range<usize>, Range<usize>);

fn read_pair<'a, R: Read<'a>>(reader: &mut R) -> Result<Option<Pair>, ThriftError> {
    let (mut first, mut second) = (None, None);
    let mut last = 0;
    while let Some(field) = reader.field(last)? {
        last = field.id;
        match (field.id, field.ty) {
            (1, Type::String) => first = Some(reader.string()?),
            (2, Type::String) => second = Some(reader.string()?),
            (_, ty) => skip_value(reader, ty, field.inline, 3)?,
        }
    }
    Ok(first.zip(second))
}

/// Remembers the last field id, which the compact protocol needs.
struct Fields<W> {
    writer: W,
    last: i16,
}

impl<W: Write> Fields<W> {
    fn id(&mut self, id: i16, value: Option<u64>) {
        if let Some(value) = value {
            self.begin(id, Type::I64).i64(value as i64);
        }
    }

    fn begin(&mut self, id: i16, ty: Type) -> &mut W {
        self.writer.field(self.last, id, ty);
        self.last = id;
        &mut self.writer
    }

    fn pairs(&mut self, id: i16, pairs: &Pairs) {
        if !pairs.is_empty() {
            write_pairs(self.begin(id, Type::List), pairs);
        }
    }
}

fn write(header: &RequestHeader, writer: impl Write) {
    let mut fields = Fields { writer, last: 0 };
    fields.id(1, Some(header.trace_id));
    fields.id(2, Some(header.span_id));
    fields.id(3, header.parent_span_id);
    if let Some(sampled) = header.sampled {
        fields.writer.bool_field(fields.last, 5, sampled);
        fields.last = 5;
    }
    if let Some(name) = &header.client_id {
        let writer = fields.begin(6, Type::Struct);
        writer.field(0, 1, Type::String);
        writer.string(name);
        writer.stop();
    }
    fields.id(7, header.flags);
    fields.pairs(8, &header.contexts);
    if let Some(dest) = &header.dest {
        fields.begin(9, Type::String).string(dest);
    }
    fields.pairs(10, &header.delegations);
    fields.id(11, header.trace_id_high);
    fields.writer.stop();
}

pub(super) fn write_pairs(writer: &mut impl Write, pairs: &Pairs) {
    writer.items(Items { ty: Type::Struct, count: pairs.len() as u32 });
    for (key, value) in pairs.iter() {
        writer.field(0, 1, Type::String);
        writer.string(&key);
        writer.field(1, 2, Type::String);
        writer.string(&value);
        writer.stop();
    }
}
