//! Binary to compact and back, without the IDL: one walk over the bytes (spec sections 12, 13 and 18).
//!
//! The types of both protocols are the same, only their codes and the form of numbers differ, so a struct is rewritten
//! step by step while it is read: no tree is built, nothing recurses, and every count was compared with the bytes at
//! hand before its elements are looked at. Two things are not kept: the element types of an empty map, which compact
//! does not write, and bools other than 0 and 1.

use super::cursor::Cursor;
use super::error::{ThriftError, Why};
use super::types::{Read, Type, Write};
use super::{Form, MAX_DEPTH, MAX_NAME, MessageHead, Protocol, binary, compact, write_head};
use bytes::{BufMut, BytesMut};

/// Room for a message header beside its name.
const HEAD_ROOM: usize = 16;

/// The same message in another form. Between the two headers of binary only the header is written anew and the rest
/// copied, whatever it is.
///
/// `head` is what [`peek`](super::peek) found in `message`; `limit` is the most bytes that the result may have.
///
/// # Errors
/// What no reader takes, bytes behind the struct, more than [`MAX_DEPTH`] levels, and a result over the limit.
pub fn message(message: &[u8], head: &MessageHead, to: Form, limit: usize) -> Result<BytesMut, ThriftError> {
    renamed(message, head, to, head.name_in(message), limit)
}

/// As [`message`], with another method name. In the same protocol the body is copied and not looked at.
///
/// # Errors
/// As [`message`], and a name over [`MAX_NAME`].
pub fn renamed(
    message: &[u8],
    head: &MessageHead,
    to: Form,
    name: &[u8],
    limit: usize,
) -> Result<BytesMut, ThriftError> {
    if name.len() > MAX_NAME {
        return Err(ThriftError::new(head.name.start, Why::NameTooLong(name.len())));
    }
    let mut cursor = Cursor::whole(message);
    cursor.take(head.body_at)?;
    let body = message.get(head.body_at..).unwrap_or_default();
    let mut out = BytesMut::with_capacity((body.len() + name.len() + HEAD_ROOM).min(limit));
    write_head(to, head.kind, name, head.seqid, &mut out);
    match (head.protocol, to.protocol()) {
        (Protocol::Binary, Protocol::Compact) => {
            Translation::new(binary::Reader(cursor), compact::Writer(&mut out), limit).run()?;
        }
        (Protocol::Compact, Protocol::Binary) => {
            Translation::new(compact::Reader(cursor), binary::Writer(&mut out), limit).run()?;
        }
        (Protocol::Binary, Protocol::Binary) | (Protocol::Compact, Protocol::Compact) => {
            if out.len().saturating_add(body.len()) > limit {
                return Err(cursor.error(Why::OverLimit { most: limit }));
            }
            out.put_slice(body);
        }
    }
    Ok(out)
}

/// A container that is not finished.
#[derive(Clone, Copy)]
enum Open {
    /// Fields, until a stop; the id of the last one.
    Struct { last: i16 },
    /// So many elements are left.
    Items { ty: Type, left: u32 },
    /// So many keys and values are left; even means that a key is next.
    Entries { key: Type, value: Type, left: u32 },
}

/// What a piece of the walk came to.
enum Next {
    /// A container begins inside the one at hand.
    Into(Open),
    /// The container at hand has ended.
    Out,
}

struct Translation<R, W> {
    reader: R,
    writer: W,
    limit: usize,
    /// The containers around the one at hand, the outermost first.
    around: [Open; MAX_DEPTH - 1],
    depth: usize,
}

impl<'a, R: Read<'a>, W: Write> Translation<R, W> {
    fn new(reader: R, writer: W, limit: usize) -> Self {
        Self { reader, writer, limit, around: [Open::Struct { last: 0 }; MAX_DEPTH - 1], depth: 0 }
    }

    /// Rewrites the struct at the reader's position, which must be all that is left.
    fn run(mut self) -> Result<(), ThriftError> {
        let mut open = Open::Struct { last: 0 };
        loop {
            let next = match &mut open {
                Open::Struct { last } => self.fields(last)?,
                Open::Items { ty, left } => self.items(*ty, left)?,
                Open::Entries { key, value, left } => self.entries(*key, *value, left)?,
            };
            match (next, self.depth.checked_sub(1)) {
                (Next::Into(inner), _) => {
                    if let Some(slot) = self.around.get_mut(self.depth) {
                        *slot = open;
                    }
                    self.depth += 1;
                    open = inner;
                }
                (Next::Out, Some(outer)) => {
                    self.depth = outer;
                    open = self.around.get(outer).copied().unwrap_or(open);
                }
                (Next::Out, None) => break,
            }
        }
        self.fits(0)?;
        match self.reader.cursor().left() {
            0 => Ok(()),
            left => Err(self.reader.cursor().error(Why::Trailing { left })),
        }
    }

    /// Whether so many bytes more are within the limit. What one scalar takes may be written before it is asked.
    #[inline]
    fn fits(&mut self, more: usize) -> Result<(), ThriftError> {
        if self.writer.out().len().saturating_add(more) > self.limit {
            return Err(self.reader.cursor().error(Why::OverLimit { most: self.limit }));
        }
        Ok(())
    }

    fn fields(&mut self, last: &mut i16) -> Result<Next, ThriftError> {
        while let Some(field) = self.reader.field(*last)? {
            let before = std::mem::replace(last, field.id);
            if field.ty == Type::Bool {
                let value = self.reader.bool(field.inline)?;
                self.writer.bool_field(before, field.id, value);
            } else {
                self.writer.field(before, field.id, field.ty);
                if let Some(inner) = self.value(field.ty)? {
                    return Ok(Next::Into(inner));
                }
            }
            self.fits(0)?;
        }
        self.writer.stop();
        Ok(Next::Out)
    }

    fn items(&mut self, ty: Type, left: &mut u32) -> Result<Next, ThriftError> {
        if matches!(ty, Type::I8 | Type::Uuid) {
            self.same(ty, std::mem::take(left))?;
        }
        while *left > 0 {
            *left -= 1;
            if let Some(inner) = self.value(ty)? {
                return Ok(Next::Into(inner));
            }
            self.fits(0)?;
        }
        Ok(Next::Out)
    }

    fn entries(&mut self, key: Type, value: Type, left: &mut u32) -> Result<Next, ThriftError> {
        while *left > 0 {
            let ty = if left.is_multiple_of(2) { key } else { value };
            *left -= 1;
            if let Some(inner) = self.value(ty)? {
                return Ok(Next::Into(inner));
            }
            self.fits(0)?;
        }
        Ok(Next::Out)
    }

    /// Elements that are the same bytes in both protocols.
    fn same(&mut self, ty: Type, count: u32) -> Result<(), ThriftError> {
        let len = (count as usize).saturating_mul(R::least(ty));
        self.fits(len)?;
        let range = self.reader.cursor().take(len)?;
        let bytes = self.reader.cursor().slice(range);
        self.writer.out().put_slice(bytes);
        Ok(())
    }

    /// Rewrites a scalar, or the header of a container.
    #[inline]
    fn value(&mut self, ty: Type) -> Result<Option<Open>, ThriftError> {
        match ty {
            Type::Bool => self.reader.bool(None).map(|value| self.writer.bool(value))?,
            Type::I8 => self.reader.i8().map(|value| self.writer.i8(value))?,
            Type::I16 => self.reader.i16().map(|value| self.writer.i16(value))?,
            Type::I32 => self.reader.i32().map(|value| self.writer.i32(value))?,
            Type::I64 => self.reader.i64().map(|value| self.writer.i64(value))?,
            Type::Double => self.reader.double().map(|bits| self.writer.double(bits))?,
            Type::Uuid => self.reader.uuid().map(|value| self.writer.uuid(value))?,
            Type::String => {
                let range = self.reader.string()?;
                self.fits(range.len())?;
                let bytes = self.reader.cursor().slice(range);
                self.writer.string(bytes);
            }
            Type::Struct | Type::Map | Type::Set | Type::List => return self.enter(ty).map(Some),
        }
        Ok(None)
    }

    fn enter(&mut self, ty: Type) -> Result<Open, ThriftError> {
        if self.depth + 1 >= MAX_DEPTH {
            return Err(self.reader.cursor().error(Why::TooDeep { most: MAX_DEPTH }));
        }
        Ok(match ty {
            Type::Struct => Open::Struct { last: 0 },
            Type::Map => {
                let entries = self.reader.entries()?;
                self.writer.entries(entries);
                // A count is at most i32::MAX, so twice as much fits.
                Open::Entries {
                    key: entries.key,
                    value: entries.value,
                    left: entries.count.saturating_mul(2),
                }
            }
            _ => {
                let items = self.reader.items()?;
                self.writer.items(items);
                Open::Items { ty: items.ty, left: items.count }
            }
        })
    }
}
