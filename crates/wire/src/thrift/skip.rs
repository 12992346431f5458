//! Steps over values without looking at them: no recursion, no allocation, every count bounded (spec section 16).

use super::cursor::Cursor;
use super::error::{ThriftError, Why};
use super::types::{Field, Read, Type};
use super::{Protocol, binary, compact};

/// Deepest nesting of structs, lists, sets and maps: Apache's default.
pub const MAX_DEPTH: usize = 64;

/// A container that is not finished.
#[derive(Clone, Copy, Debug)]
enum Open {
    /// Fields, until a stop; the id of the last one.
    Struct { last: i16 },
    /// So many elements are left.
    Items { ty: Type, left: u32 },
    /// So many keys and values are left; even means that a key is next.
    Entries { key: Type, value: Type, left: u32 },
}

/// A walk over one value that can be continued when more bytes have come.
///
/// After [`Why::Incomplete`] the reader stands where the walk can go on: make a new reader over more bytes, seek it
/// there, and call [`Skipper::run`] again. Nothing is read twice but the one step that did not fit.
#[derive(Clone, Debug)]
pub struct Skipper {
    stack: [Open; MAX_DEPTH],
    depth: usize,
    deepest: usize,
}

impl Skipper {
    /// Ready to skip the fields of a struct, up to and with its stop.
    pub fn of_struct() -> Self {
        Self::of_struct_within(MAX_DEPTH)
    }

    /// The same, with at most `deepest` levels; [`MAX_DEPTH`] at most.
    pub fn of_struct_within(deepest: usize) -> Self {
        let deepest = deepest.min(MAX_DEPTH);
        Self { stack: [Open::Struct { last: 0 }; MAX_DEPTH], depth: 1, deepest }
    }

    /// Walks on until the value ends; the reader then stands behind it.
    ///
    /// # Errors
    /// What [`Why`] lists. The reader then stands before the step that failed.
    pub fn run<'a, R: Read<'a>>(&mut self, reader: &mut R) -> Result<(), ThriftError> {
        while self.depth > 0 {
            self.step(reader)?;
        }
        Ok(())
    }

    /// One container entered or left, and the scalars before it. What was not all there is neither counted nor passed.
    fn step<'a, R: Read<'a>>(&mut self, reader: &mut R) -> Result<(), ThriftError> {
        let top = self.depth.wrapping_sub(1);
        let Some(open) = self.stack.get(top).copied() else { return Ok(()) };
        let mark = reader.cursor().at();
        let (after, ty, mark) = match open {
            Open::Struct { last } => match self.fields(reader, top, last)? {
                None => return self.close(),
                Some((field, mark)) => (Open::Struct { last: field.id }, field.ty, mark),
            },
            Open::Items { left: 0, .. } | Open::Entries { left: 0, .. } => return self.close(),
            Open::Items { ty, left } => {
                if let Some(size) = R::fixed(ty) {
                    reader.cursor().take((left as usize).saturating_mul(size))?;
                    return self.close();
                }
                (Open::Items { ty, left: left - 1 }, ty, mark)
            }
            Open::Entries { key, value, left } => {
                let after = Open::Entries { key, value, left: left - 1 };
                (after, if left % 2 == 0 { key } else { value }, mark)
            }
        };
        match self.enter(reader, ty) {
            Ok(inner) => {
                self.put(top, after);
                if let Some(inner) = inner {
                    self.put(self.depth, inner);
                    self.depth += 1;
                }
                Ok(())
            }
            Err(error) => {
                reader.cursor().seek(mark);
                Err(error)
            }
        }
    }

    /// Skips fields up to the end of the struct, which is `None`, or to one that is a container, of which the header is
    /// read; with it comes where that header began.
    #[inline]
    fn fields<'a, R: Read<'a>>(
        &mut self,
        reader: &mut R,
        top: usize,
        mut last: i16,
    ) -> Result<Option<(Field, usize)>, ThriftError> {
        loop {
            let mark = reader.cursor().at();
            let skipped = match reader.field(last) {
                Ok(None) => return Ok(None),
                Ok(Some(field)) if field.inline.is_some() => Ok(field.id),
                Ok(Some(field)) if !field.ty.is_container() => {
                    skip_scalar(reader, field.ty).map(|()| field.id)
                }
                Ok(Some(field)) => {
                    // The struct may be left here for more bytes.
                    self.put(top, Open::Struct { last });
                    return Ok(Some((field, mark)));
                }
                Err(error) => Err(error),
            };
            match skipped {
                Ok(id) => last = id,
                Err(error) => {
                    self.put(top, Open::Struct { last });
                    reader.cursor().seek(mark);
                    return Err(error);
                }
            }
        }
    }

    fn close(&mut self) -> Result<(), ThriftError> {
        self.depth = self.depth.saturating_sub(1);
        Ok(())
    }

    fn put(&mut self, at: usize, open: Open) {
        if let Some(slot) = self.stack.get_mut(at) {
            *slot = open;
        }
    }

    /// Skips a scalar, or reads the header of a container.
    fn enter<'a, R: Read<'a>>(&self, reader: &mut R, ty: Type) -> Result<Option<Open>, ThriftError> {
        if ty.is_container() && self.depth >= self.deepest {
            return Err(reader.cursor().error(Why::TooDeep { most: self.deepest }));
        }
        match ty {
            Type::Struct => Ok(Some(Open::Struct { last: 0 })),
            Type::List | Type::Set => {
                let items = reader.items()?;
                Ok(Some(Open::Items { ty: items.ty, left: items.count }))
            }
            Type::Map => {
                let entries = reader.entries()?;
                // A count is at most i32::MAX, so twice as much fits.
                let left = entries.count.saturating_mul(2);
                Ok(Some(Open::Entries { key: entries.key, value: entries.value, left }))
            }
            _ => skip_scalar(reader, ty).map(|()| None),
        }
    }
}

fn skip_scalar<'a, R: Read<'a>>(reader: &mut R, ty: Type) -> Result<(), ThriftError> {
    if let Some(size) = R::fixed(ty) {
        return reader.cursor().take(size).map(drop);
    }
    match ty {
        Type::String => reader.string().map(drop),
        Type::I16 => reader.i16().map(drop),
        Type::I32 => reader.i32().map(drop),
        _ => reader.i64().map(drop),
    }
}

/// Steps over one value. For a field pass its `inline`: then nothing follows the header. `around` is the number of
/// containers that the value is in, which count towards [`MAX_DEPTH`].
///
/// # Errors
/// What [`Why`] lists.
pub fn skip_value<'a, R: Read<'a>>(
    reader: &mut R,
    ty: Type,
    inline: Option<bool>,
    around: usize,
) -> Result<(), ThriftError> {
    if inline.is_some() {
        return Ok(());
    }
    if !ty.is_container() {
        return skip_scalar(reader, ty);
    }
    // Those around have nothing more for this walk.
    let ended = Open::Items { ty: Type::I8, left: 0 };
    let mut skipper = Skipper { stack: [ended; MAX_DEPTH], depth: around, deepest: MAX_DEPTH };
    if let Some(open) = skipper.enter(reader, ty)? {
        skipper.put(around, open);
        skipper.depth += 1;
    }
    skipper.run(reader)
}

/// Steps over one struct that starts at the cursor; leaves the cursor behind it.
///
/// # Errors
/// What [`Why`] lists.
pub fn skip_struct(protocol: Protocol, cursor: &mut Cursor<'_>) -> Result<(), ThriftError> {
    let mut skipper = Skipper::of_struct();
    skipper.advance(protocol, cursor)
}

impl Skipper {
    /// As [`Skipper::run`], with the protocol known only at run time.
    ///
    /// # Errors
    /// As [`Skipper::run`].
    pub fn advance(&mut self, protocol: Protocol, cursor: &mut Cursor<'_>) -> Result<(), ThriftError> {
        match protocol {
            Protocol::Binary => {
                let mut reader = binary::Reader(cursor.clone());
                let done = self.run(&mut reader);
                cursor.seek(reader.0.at());
                done
            }
            Protocol::Compact => {
                let mut reader = compact::Reader(cursor.clone());
                let done = self.run(&mut reader);
                cursor.seek(reader.0.at());
                done
            }
        }
    }
}
