//! Type codes of both protocols, and the trait that their readers share.

use super::cursor::Cursor;
use super::error::{ThriftError, Why};
use bytes::BytesMut;
use std::ops::Range;

/// A type of a field or element. `void` is left out: it is never valid on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// One bit.
    Bool,
    /// 8 bits, signed.
    I8,
    /// IEEE 754, 64 bits.
    Double,
    /// 16 bits, signed.
    I16,
    /// 32 bits, signed; also enums.
    I32,
    /// 64 bits, signed.
    I64,
    /// A length and bytes: `string` and `binary`.
    String,
    /// Fields and a stop; also unions and exceptions.
    Struct,
    /// Pairs.
    Map,
    /// Elements, each once.
    Set,
    /// Elements.
    List,
    /// 16 bytes; only the newest Thrift writes it.
    Uuid,
}

impl Type {
    /// From a binary protocol code.
    #[inline]
    pub fn from_binary(code: u8) -> Option<Self> {
        Some(match code {
            2 => Self::Bool,
            3 => Self::I8,
            4 => Self::Double,
            6 => Self::I16,
            8 => Self::I32,
            10 => Self::I64,
            11 => Self::String,
            12 => Self::Struct,
            13 => Self::Map,
            14 => Self::Set,
            15 => Self::List,
            16 => Self::Uuid,
            _ => return None,
        })
    }

    /// The binary protocol's code.
    pub fn binary(self) -> u8 {
        match self {
            Self::Bool => 2,
            Self::I8 => 3,
            Self::Double => 4,
            Self::I16 => 6,
            Self::I32 => 8,
            Self::I64 => 10,
            Self::String => 11,
            Self::Struct => 12,
            Self::Map => 13,
            Self::Set => 14,
            Self::List => 15,
            Self::Uuid => 16,
        }
    }

    /// From a compact protocol code. 1 and 2 are both bool: as an element both are in use.
    #[inline]
    pub fn from_compact(code: u8) -> Option<Self> {
        Some(match code {
            1 | 2 => Self::Bool,
            3 => Self::I8,
            4 => Self::I16,
            5 => Self::I32,
            6 => Self::I64,
            7 => Self::Double,
            8 => Self::String,
            9 => Self::List,
            10 => Self::Set,
            11 => Self::Map,
            12 => Self::Struct,
            13 => Self::Uuid,
            _ => return None,
        })
    }

    /// The compact protocol's code; bool as an element, which is written as 1.
    pub fn compact(self) -> u8 {
        match self {
            Self::Bool => 1,
            Self::I8 => 3,
            Self::I16 => 4,
            Self::I32 => 5,
            Self::I64 => 6,
            Self::Double => 7,
            Self::String => 8,
            Self::List => 9,
            Self::Set => 10,
            Self::Map => 11,
            Self::Struct => 12,
            Self::Uuid => 13,
        }
    }

    /// Whether a value of this type holds other values.
    #[inline]
    pub fn is_container(self) -> bool {
        matches!(self, Self::Struct | Self::Map | Self::Set | Self::List)
    }
}

/// The header of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its number.
    pub id: i16,
    /// The type of the value that follows.
    pub ty: Type,
    /// In the compact protocol a bool field's value is part of the header and nothing follows.
    pub inline: Option<bool>,
}

/// The header of a list or set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Items {
    /// Type of each element. Of an empty list the code is not checked: one that is not assigned reads as `I8`.
    pub ty: Type,
    /// Number of elements; the bytes that are left can hold them.
    pub count: u32,
}

/// The header of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entries {
    /// Type of each key. As with [`Items`], an empty map may have any; compact does not even write one.
    pub key: Type,
    /// Type of each value.
    pub value: Type,
    /// Number of pairs; the bytes that are left can hold them.
    pub count: u32,
}

/// What both protocols can read. Each method leaves the position alone or past the value if it fails: remember
/// [`Cursor::at`] before a step that may have to be taken again.
pub trait Read<'a> {
    /// The position.
    fn cursor(&mut self) -> &mut Cursor<'a>;

    /// The next field header of a struct; `None` is its end. `last` is the id of the field before, 0 at the start.
    ///
    /// # Errors
    /// What [`Why`] lists, here and below.
    fn field(&mut self, last: i16) -> Result<Option<Field>, ThriftError>;

    /// A list or set header.
    ///
    /// # Errors
    /// Also a count that the bytes left cannot hold.
    fn items(&mut self) -> Result<Items, ThriftError>;

    /// A map header.
    ///
    /// # Errors
    /// Also a count that the bytes left cannot hold.
    fn entries(&mut self) -> Result<Entries, ThriftError>;

    /// A bool element, or a bool field's value: pass the field's `inline`.
    ///
    /// # Errors
    /// See [`Read::field`].
    fn bool(&mut self, inline: Option<bool>) -> Result<bool, ThriftError>;

    /// 16 bits.
    ///
    /// # Errors
    /// See [`Read::field`].
    fn i16(&mut self) -> Result<i16, ThriftError>;

    /// 32 bits.
    ///
    /// # Errors
    /// See [`Read::field`].
    fn i32(&mut self) -> Result<i32, ThriftError>;

    /// 64 bits.
    ///
    /// # Errors
    /// See [`Read::field`].
    fn i64(&mut self) -> Result<i64, ThriftError>;

    /// The bits of a double: it is never computed with, and a NaN keeps its payload.
    ///
    /// # Errors
    /// See [`Read::field`].
    fn double(&mut self) -> Result<u64, ThriftError>;

    /// Where the bytes of a string are.
    ///
    /// # Errors
    /// See [`Read::field`].
    fn string(&mut self) -> Result<Range<usize>, ThriftError>;

    /// Size of an element of this type if it is always the same.
    fn fixed(ty: Type) -> Option<usize>;

    /// Fewest bytes an element of this type can have. Never 0, so a count is always bounded by the bytes left.
    fn least(ty: Type) -> usize;

    /// 8 bits.
    ///
    /// # Errors
    /// See [`Read::field`].
    fn i8(&mut self) -> Result<i8, ThriftError> {
        self.cursor().u8().map(|byte| byte as i8)
    }

    /// 16 bytes.
    ///
    /// # Errors
    /// See [`Read::field`].
    fn uuid(&mut self) -> Result<u128, ThriftError> {
        self.cursor().u128()
    }

    /// Refuses a count whose elements cannot all fit into what the message may still have.
    ///
    /// # Errors
    /// [`Why::TooMany`].
    fn bound(&mut self, count: u32, least: usize) -> Result<u32, ThriftError> {
        let most = self.cursor().left() / least;
        if count as usize > most {
            return Err(self.cursor().error(Why::TooMany { count: count as usize, most }));
        }
        Ok(count)
    }
}

/// What both protocols can write.
pub trait Write {
    /// All that was written.
    fn out(&mut self) -> &mut BytesMut;

    /// A field header; a bool goes through [`Write::bool_field`]. `last` as in [`Read::field`].
    fn field(&mut self, last: i16, id: i16, ty: Type);
    /// A bool field, header and value.
    fn bool_field(&mut self, last: i16, id: i16, value: bool);
    /// The end of a struct.
    fn stop(&mut self);
    /// A list or set header.
    fn items(&mut self, items: Items);
    /// A map header.
    fn entries(&mut self, entries: Entries);
    /// A bool element.
    fn bool(&mut self, value: bool);
    /// 8 bits.
    fn i8(&mut self, value: i8);
    /// 16 bits.
    fn i16(&mut self, value: i16);
    /// 32 bits.
    fn i32(&mut self, value: i32);
    /// 64 bits.
    fn i64(&mut self, value: i64);
    /// The bits of a double.
    fn double(&mut self, bits: u64);
    /// A length and bytes.
    fn string(&mut self, value: &[u8]);
    /// 16 bytes.
    fn uuid(&mut self, value: u128);
}
