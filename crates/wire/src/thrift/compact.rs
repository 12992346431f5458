//! The compact protocol: varints, and field ids as differences (spec section 13).

use super::cursor::Cursor;
use super::error::{ThriftError, Why};
use super::types::{Entries, Field, Items, Read, Type, Write};
use bytes::{BufMut, BytesMut};
use std::ops::Range;

/// Reads values of the compact protocol.
#[derive(Clone, Debug)]
pub struct Reader<'a>(pub Cursor<'a>);

impl Reader<'_> {
    fn size(&mut self) -> Result<u32, ThriftError> {
        let at = self.0.at();
        let size = self.0.varint32()?;
        if size > i32::MAX as u32 {
            return Err(ThriftError::new(at, Why::Negative(size as i32)));
        }
        Ok(size)
    }

    fn element(&self, code: u8, count: u32) -> Result<Type, ThriftError> {
        match Type::from_compact(code) {
            Some(ty) => Ok(ty),
            None if count == 0 => Ok(Type::I8),
            None => Err(self.0.error(Why::UnknownType(code))),
        }
    }

    fn narrow<T: TryFrom<i64>>(&mut self) -> Result<T, ThriftError> {
        let at = self.0.at();
        let wide = self.0.zigzag()?;
        T::try_from(wide).map_err(|_| ThriftError::new(at, Why::OutOfRange(wide)))
    }
}

impl<'a> Read<'a> for Reader<'a> {
    #[inline]
    fn cursor(&mut self) -> &mut Cursor<'a> {
        &mut self.0
    }

    #[inline]
    fn field(&mut self, last: i16) -> Result<Option<Field>, ThriftError> {
        let at = self.0.at();
        let byte = self.0.u8()?;
        if byte == 0 {
            return Ok(None);
        }
        let code = byte & 0x0f;
        let ty = Type::from_compact(code).ok_or_else(|| ThriftError::new(at, Why::UnknownType(code)))?;
        let id = match byte >> 4 {
            0 => self.narrow()?,
            delta => last
                .checked_add(i16::from(delta))
                .ok_or_else(|| ThriftError::new(at, Why::OutOfRange(i64::from(last) + i64::from(delta))))?,
        };
        Ok(Some(Field { id, ty, inline: (ty == Type::Bool).then_some(code == 1) }))
    }

    fn items(&mut self) -> Result<Items, ThriftError> {
        let byte = self.0.u8()?;
        let count = match byte >> 4 {
            15 => self.size()?,
            short => u32::from(short),
        };
        let ty = self.element(byte & 0x0f, count)?;
        Ok(Items { ty, count: self.bound(count, Self::least(ty))? })
    }

    fn entries(&mut self) -> Result<Entries, ThriftError> {
        let count = self.size()?;
        if count == 0 {
            return Ok(Entries { key: Type::I8, value: Type::I8, count });
        }
        let types = self.0.u8()?;
        let (key, value) = (self.element(types >> 4, count)?, self.element(types & 0x0f, count)?);
        Ok(Entries { key, value, count: self.bound(count, Self::least(key) + Self::least(value))? })
    }

    fn bool(&mut self, inline: Option<bool>) -> Result<bool, ThriftError> {
        match inline {
            Some(value) => Ok(value),
            None => Ok(self.0.u8()? == 1),
        }
    }

    fn i16(&mut self) -> Result<i16, ThriftError> {
        self.narrow()
    }

    fn i32(&mut self) -> Result<i32, ThriftError> {
        self.narrow()
    }

    fn i64(&mut self) -> Result<i64, ThriftError> {
        self.0.zigzag()
    }

    fn double(&mut self) -> Result<u64, ThriftError> {
        self.0.u64_le()
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
            Type::Double => Some(8),
            Type::Uuid => Some(16),
            _ => None,
        }
    }

    #[inline]
    fn least(ty: Type) -> usize {
        Self::fixed(ty).unwrap_or(1)
    }
}

/// Writes values of the compact protocol.
#[derive(Debug)]
pub struct Writer<'a>(pub &'a mut BytesMut);

/// Zigzag: small magnitudes become small numbers.
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

pub(super) fn put_varint(out: &mut BytesMut, mut value: u64) {
    while value >= 0x80 {
        out.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    out.put_u8(value as u8);
}

impl Writer<'_> {
    fn field_code(&mut self, last: i16, id: i16, code: u8) {
        match i32::from(id) - i32::from(last) {
            delta @ 1..=15 => self.0.put_u8((delta as u8) << 4 | code),
            _ => {
                self.0.put_u8(code);
                self.i16(id);
            }
        }
    }
}

impl Write for Writer<'_> {
    fn out(&mut self) -> &mut BytesMut {
        self.0
    }

    fn field(&mut self, last: i16, id: i16, ty: Type) {
        self.field_code(last, id, ty.compact());
    }

    fn bool_field(&mut self, last: i16, id: i16, value: bool) {
        self.field_code(last, id, if value { 1 } else { 2 });
    }

    fn stop(&mut self) {
        self.0.put_u8(0);
    }

    fn items(&mut self, items: Items) {
        let code = items.ty.compact();
        if items.count < 15 {
            self.0.put_u8((items.count as u8) << 4 | code);
        } else {
            self.0.put_u8(0xf0 | code);
            put_varint(self.0, u64::from(items.count));
        }
    }

    fn entries(&mut self, entries: Entries) {
        put_varint(self.0, u64::from(entries.count));
        if entries.count > 0 {
            self.0.put_u8(entries.key.compact() << 4 | entries.value.compact());
        }
    }

    fn bool(&mut self, value: bool) {
        self.0.put_u8(if value { 1 } else { 2 });
    }

    fn i8(&mut self, value: i8) {
        self.0.put_i8(value);
    }

    fn i16(&mut self, value: i16) {
        put_varint(self.0, zigzag(i64::from(value)));
    }

    fn i32(&mut self, value: i32) {
        put_varint(self.0, zigzag(i64::from(value)));
    }

    fn i64(&mut self, value: i64) {
        put_varint(self.0, zigzag(value));
    }

    fn double(&mut self, bits: u64) {
        self.0.put_u64_le(bits);
    }

    fn string(&mut self, value: &[u8]) {
        put_varint(self.0, value.len() as u64);
        self.0.put_slice(value);
    }

    fn uuid(&mut self, value: u128) {
        self.0.put_u128(value);
    }
}
