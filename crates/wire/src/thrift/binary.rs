//! The binary protocol: big-endian, fixed widths (spec section 12).

use super::cursor::Cursor;
use super::error::{ThriftError, Why};
use super::types::{Entries, Field, Items, Read, Type, Write};
use bytes::{BufMut, BytesMut};
use std::ops::Range;

/// Reads values of the binary protocol.
#[derive(Clone, Debug)]
pub struct Reader<'a>(pub Cursor<'a>);

impl Reader<'_> {
    fn size(&mut self) -> Result<u32, ThriftError> {
        let size = self.0.u32()?;
        if size > i32::MAX as u32 {
            return Err(ThriftError::new(self.0.at() - 4, Why::Negative(size as i32)));
        }
        Ok(size)
    }

    fn element(&self, code: u8, count: u32) -> Result<Type, ThriftError> {
        match Type::from_binary(code) {
            Some(ty) => Ok(ty),
            None if count == 0 => Ok(Type::I8),
            None => Err(self.0.error(Why::UnknownType(code))),
        }
    }
}

impl<'a> Read<'a> for Reader<'a> {
    #[inline]
    fn cursor(&mut self) -> &mut Cursor<'a> {
        &mut self.0
    }

    #[inline]
    fn field(&mut self, _last: i16) -> Result<Option<Field>, ThriftError> {
        let code = self.0.u8()?;
        if code == 0 {
            return Ok(None);
        }
        let ty = Type::from_binary(code)
            .ok_or_else(|| ThriftError::new(self.0.at() - 1, Why::UnknownType(code)))?;
        Ok(Some(Field { id: self.0.u16()? as i16, ty, inline: None }))
    }

    fn items(&mut self) -> Result<Items, ThriftError> {
        let code = self.0.u8()?;
        let count = self.size()?;
        let ty = self.element(code, count)?;
        Ok(Items { ty, count: self.bound(count, Self::least(ty))? })
    }

    fn entries(&mut self) -> Result<Entries, ThriftError> {
        let (key, value) = (self.0.u8()?, self.0.u8()?);
        let count = self.size()?;
        let (key, value) = (self.element(key, count)?, self.element(value, count)?);
        Ok(Entries { key, value, count: self.bound(count, Self::least(key) + Self::least(value))? })
    }

    fn bool(&mut self, _inline: Option<bool>) -> Result<bool, ThriftError> {
        Ok(self.0.u8()? != 0)
    }

    fn i16(&mut self) -> Result<i16, ThriftError> {
        self.0.u16().map(|bits| bits as i16)
    }

    fn i32(&mut self) -> Result<i32, ThriftError> {
        self.0.u32().map(|bits| bits as i32)
    }

    fn i64(&mut self) -> Result<i64, ThriftError> {
        self.0.u64().map(|bits| bits as i64)
    }

    fn double(&mut self) -> Result<u64, ThriftError> {
        self.0.u64()
    }

    #[inline]
    fn string(&mut self) -> Result<Range<usize>, ThriftError> {
        let len = self.size()?;
        self.0.take(len as usize)
    }

    #[inline]
    fn fixed(ty: Type) -> Option<usize> {
        match ty {
            Type::Bool | Type::I8 => Some(1),
            Type::I16 => Some(2),
            Type::I32 => Some(4),
            Type::I64 | Type::Double => Some(8),
            Type::Uuid => Some(16),
            Type::String | Type::Struct | Type::Map | Type::Set | Type::List => None,
        }
    }

    #[inline]
    fn least(ty: Type) -> usize {
        match ty {
            Type::Struct => 1,
            Type::String => 4,
            Type::Set | Type::List => 5,
            Type::Map => 6,
            _ => Self::fixed(ty).unwrap_or(1),
        }
    }
}

/// Writes values of the binary protocol.
#[derive(Debug)]
pub struct Writer<'a>(pub &'a mut BytesMut);

impl Write for Writer<'_> {
    fn out(&mut self) -> &mut BytesMut {
        self.0
    }

    fn field(&mut self, _last: i16, id: i16, ty: Type) {
        self.0.put_u8(ty.binary());
        self.0.put_i16(id);
    }

    fn bool_field(&mut self, last: i16, id: i16, value: bool) {
        self.field(last, id, Type::Bool);
        self.bool(value);
    }

    fn stop(&mut self) {
        self.0.put_u8(0);
    }

    fn items(&mut self, items: Items) {
        self.0.put_u8(items.ty.binary());
        self.0.put_u32(items.count);
    }

    fn entries(&mut self, entries: Entries) {
        self.0.put_u8(entries.key.binary());
        self.0.put_u8(entries.value.binary());
        self.0.put_u32(entries.count);
    }

    fn bool(&mut self, value: bool) {
        self.0.put_u8(u8::from(value));
    }

    fn i8(&mut self, value: i8) {
        self.0.put_i8(value);
    }

    fn i16(&mut self, value: i16) {
        self.0.put_i16(value);
    }

    fn i32(&mut self, value: i32) {
        self.0.put_i32(value);
    }

    fn i64(&mut self, value: i64) {
        self.0.put_i64(value);
    }

    fn double(&mut self, bits: u64) {
        self.0.put_u64(bits);
    }

    fn string(&mut self, value: &[u8]) {
        self.0.put_u32(value.len() as u32);
        self.0.put_slice(value);
    }

    fn uuid(&mut self, value: u128) {
        self.0.put_u128(value);
    }
}
