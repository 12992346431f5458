//! A Thrift value of any type, read and written by our code and by the `thrift` crate.

use bytes::BytesMut;
use muxgate_wire::thrift::{
    Cursor, Entries, Field, Items, Protocol, Read, ThriftError, Type, Write, binary, compact,
};
use thrift::protocol::{
    TBinaryOutputProtocol, TCompactOutputProtocol, TFieldIdentifier, TListIdentifier, TMapIdentifier,
    TMessageIdentifier, TOutputProtocol, TSetIdentifier, TStructIdentifier, TType,
};

#[derive(Clone, Debug, PartialEq)]
pub enum Val {
    Bool(bool),
    I8(i8),
    I16(i16),
    I32(i32),
    I64(i64),
    Double(u64),
    Text(Vec<u8>),
    /// Only read: the oracle's type for it is of another crate.
    Uuid(u128),
    List(Type, Vec<Val>),
    Set(Type, Vec<Val>),
    Map(Type, Type, Vec<(Val, Val)>),
    Struct(Vec<(i16, Val)>),
}

impl Val {
    pub fn ty(&self) -> Type {
        match self {
            Self::Bool(_) => Type::Bool,
            Self::I8(_) => Type::I8,
            Self::I16(_) => Type::I16,
            Self::I32(_) => Type::I32,
            Self::I64(_) => Type::I64,
            Self::Double(_) => Type::Double,
            Self::Text(_) => Type::String,
            Self::Uuid(_) => Type::Uuid,
            Self::List(..) => Type::List,
            Self::Set(..) => Type::Set,
            Self::Map(..) => Type::Map,
            Self::Struct(_) => Type::Struct,
        }
    }
}

/// Turns bytes into choices, so that shorter input gives smaller values.
pub struct Choices<'a>(pub &'a [u8]);

impl Choices<'_> {
    pub fn byte(&mut self) -> u8 {
        match self.0 {
            [first, rest @ ..] => {
                self.0 = rest;
                *first
            }
            [] => 0,
        }
    }

    fn word(&mut self) -> u64 {
        let width = usize::from(self.byte() % 9);
        (0..width).fold(0, |word, _| word << 8 | u64::from(self.byte()))
    }

    fn ty(&mut self, depth: usize) -> Type {
        const ALL: [Type; 11] = [
            Type::Bool,
            Type::I8,
            Type::I16,
            Type::I32,
            Type::I64,
            Type::Double,
            Type::String,
            Type::Struct,
            Type::Map,
            Type::Set,
            Type::List,
        ];
        let all = if depth == 0 { &ALL[..7] } else { &ALL[..] };
        all[usize::from(self.byte()) % all.len()]
    }

    fn value(&mut self, ty: Type, depth: usize) -> Val {
        let inner = depth.saturating_sub(1);
        match ty {
            Type::Bool => Val::Bool(self.byte() % 2 == 1),
            Type::I8 => Val::I8(self.byte() as i8),
            Type::I16 => Val::I16(self.word() as i16),
            Type::I32 => Val::I32(self.word() as i32),
            Type::I64 | Type::Uuid => Val::I64(self.word() as i64),
            Type::Double => Val::Double(self.word()),
            Type::String => Val::Text((0..self.byte() % 24).map(|_| self.byte()).collect()),
            Type::Struct => self.fields(inner),
            Type::List | Type::Set => {
                let element = self.ty(inner);
                let all = (0..self.byte() % 20).map(|_| self.value(element, inner)).collect();
                if ty == Type::List { Val::List(element, all) } else { Val::Set(element, all) }
            }
            Type::Map => {
                let (key, value) = (self.ty(inner), self.ty(inner));
                let count = self.byte() % 5;
                if count == 0 {
                    // Compact does not write the types of an empty map.
                    return Val::Map(Type::I8, Type::I8, Vec::new());
                }
                Val::Map(
                    key,
                    value,
                    (0..count).map(|_| (self.value(key, inner), self.value(value, inner))).collect(),
                )
            }
        }
    }

    /// A struct with ids in any order, also negative and far apart; but not more than the oracle can subtract: its
    /// compact writer panics (in debug builds) when two ids are over 32767 apart.
    pub fn fields(&mut self, depth: usize) -> Val {
        let mut last = 0i16;
        let fields = (0..self.byte() % 6).map(|_| {
            let choice = self.byte();
            let far = self.word() as i16 / 2;
            let id = if choice < 200 { last.saturating_add(i16::from(choice % 20)) } else { far };
            // A difference of 15 fits the short form; the oracle writes the long one, which means the same.
            last = if id - last == 15 { id + 1 } else { id };
            let ty = self.ty(depth);
            (last, self.value(ty, depth))
        });
        Val::Struct(fields.collect())
    }
}

/// Writes with our writers.
pub fn write(writer: &mut impl Write, value: &Val) {
    match value {
        Val::Bool(value) => writer.bool(*value),
        Val::I8(value) => writer.i8(*value),
        Val::I16(value) => writer.i16(*value),
        Val::I32(value) => writer.i32(*value),
        Val::I64(value) => writer.i64(*value),
        Val::Double(bits) => writer.double(*bits),
        Val::Text(text) => writer.string(text),
        Val::Uuid(value) => writer.uuid(*value),
        Val::List(ty, all) | Val::Set(ty, all) => {
            writer.items(Items { ty: *ty, count: all.len() as u32 });
            all.iter().for_each(|value| write(writer, value));
        }
        Val::Map(key, value, all) => {
            writer.entries(Entries { key: *key, value: *value, count: all.len() as u32 });
            for (key, value) in all {
                write(writer, key);
                write(writer, value);
            }
        }
        Val::Struct(fields) => {
            let mut last = 0;
            for (id, value) in fields {
                match value {
                    Val::Bool(value) => writer.bool_field(last, *id, *value),
                    other => {
                        writer.field(last, *id, other.ty());
                        write(writer, other);
                    }
                }
                last = *id;
            }
            writer.stop();
        }
    }
}

pub fn to_bytes(protocol: Protocol, value: &Val) -> Vec<u8> {
    let mut out = BytesMut::new();
    match protocol {
        Protocol::Binary => write(&mut binary::Writer(&mut out), value),
        Protocol::Compact => write(&mut compact::Writer(&mut out), value),
    }
    out.to_vec()
}

/// Reads with our readers.
pub fn read<'a, R: Read<'a>>(reader: &mut R, ty: Type, inline: Option<bool>) -> Result<Val, ThriftError> {
    Ok(match ty {
        Type::Bool => Val::Bool(reader.bool(inline)?),
        Type::I8 => Val::I8(reader.i8()?),
        Type::I16 => Val::I16(reader.i16()?),
        Type::I32 => Val::I32(reader.i32()?),
        Type::I64 => Val::I64(reader.i64()?),
        Type::Double => Val::Double(reader.double()?),
        Type::Uuid => Val::Uuid(reader.uuid()?),
        Type::String => {
            let range = reader.string()?;
            Val::Text(reader.cursor().slice(range).to_vec())
        }
        Type::List | Type::Set => {
            let items = reader.items()?;
            let all: Result<Vec<_>, _> = (0..items.count).map(|_| read(reader, items.ty, None)).collect();
            if ty == Type::List { Val::List(items.ty, all?) } else { Val::Set(items.ty, all?) }
        }
        Type::Map => {
            let Entries { key, value, count } = reader.entries()?;
            let all: Result<Vec<_>, ThriftError> =
                (0..count).map(|_| Ok((read(reader, key, None)?, read(reader, value, None)?))).collect();
            Val::Map(key, value, all?)
        }
        Type::Struct => {
            let mut fields = Vec::new();
            let mut last = 0;
            while let Some(Field { id, ty, inline }) = reader.field(last)? {
                fields.push((id, read(reader, ty, inline)?));
                last = id;
            }
            Val::Struct(fields)
        }
    })
}

/// Reads a struct and says how long it was.
pub fn from_bytes(protocol: Protocol, bytes: &[u8]) -> Result<(Val, usize), ThriftError> {
    let cursor = Cursor::whole(bytes);
    match protocol {
        Protocol::Binary => {
            let mut reader = binary::Reader(cursor);
            read(&mut reader, Type::Struct, None).map(|value| (value, reader.0.at()))
        }
        Protocol::Compact => {
            let mut reader = compact::Reader(cursor);
            read(&mut reader, Type::Struct, None).map(|value| (value, reader.0.at()))
        }
    }
}

fn ttype(ty: Type) -> TType {
    match ty {
        Type::Bool => TType::Bool,
        Type::I8 => TType::I08,
        Type::Double => TType::Double,
        Type::I16 => TType::I16,
        Type::I32 => TType::I32,
        Type::I64 => TType::I64,
        Type::String => TType::String,
        Type::Struct => TType::Struct,
        Type::Map => TType::Map,
        Type::Set => TType::Set,
        Type::List => TType::List,
        Type::Uuid => TType::Uuid,
    }
}

fn oracle_value(out: &mut dyn TOutputProtocol, value: &Val) -> thrift::Result<()> {
    match value {
        Val::Bool(value) => out.write_bool(*value),
        Val::I8(value) => out.write_i8(*value),
        Val::I16(value) => out.write_i16(*value),
        Val::I32(value) => out.write_i32(*value),
        Val::I64(value) => out.write_i64(*value),
        Val::Double(bits) => out.write_double(f64::from_bits(*bits)),
        Val::Text(text) => out.write_bytes(text),
        Val::Uuid(_) => unreachable!("never made for the oracle"),
        Val::List(ty, all) => {
            out.write_list_begin(&TListIdentifier::new(ttype(*ty), all.len() as i32))?;
            all.iter().try_for_each(|value| oracle_value(out, value))?;
            out.write_list_end()
        }
        Val::Set(ty, all) => {
            out.write_set_begin(&TSetIdentifier::new(ttype(*ty), all.len() as i32))?;
            all.iter().try_for_each(|value| oracle_value(out, value))?;
            out.write_set_end()
        }
        Val::Map(key, value, all) => {
            out.write_map_begin(&TMapIdentifier::new(ttype(*key), ttype(*value), all.len() as i32))?;
            for (key, value) in all {
                oracle_value(out, key)?;
                oracle_value(out, value)?;
            }
            out.write_map_end()
        }
        Val::Struct(fields) => {
            out.write_struct_begin(&TStructIdentifier::new("S"))?;
            for (id, value) in fields {
                out.write_field_begin(&TFieldIdentifier::new("f", ttype(value.ty()), *id))?;
                oracle_value(out, value)?;
                out.write_field_end()?;
            }
            out.write_field_stop()?;
            out.write_struct_end()
        }
    }
}

/// What the `thrift` crate writes with a protocol; `strict` is for binary.
pub fn with_oracle(
    protocol: Protocol,
    strict: bool,
    write: impl FnOnce(&mut dyn TOutputProtocol) -> thrift::Result<()>,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    match protocol {
        Protocol::Binary => write(&mut TBinaryOutputProtocol::new(&mut bytes, strict)),
        Protocol::Compact => write(&mut TCompactOutputProtocol::new(&mut bytes)),
    }
    .unwrap();
    bytes
}

/// A message as the `thrift` crate writes it.
pub fn oracle_message(protocol: Protocol, strict: bool, head: &TMessageIdentifier, body: &Val) -> Vec<u8> {
    with_oracle(protocol, strict, |out| {
        out.write_message_begin(head)?;
        oracle_value(out, body)?;
        out.write_message_end()
    })
}
