//! What a reply says, from its header and first field, without the IDL (spec section 15).

use super::cursor::Cursor;
use super::error::{ThriftError, Why};
use super::exception::{ApplicationExceptionType, MAX_TEXT};
use super::head::{MessageHead, peek};
use super::skip::skip_value;
use super::types::{Read, Type};
use super::{Kind, Protocol, binary, compact};
use std::ops::Range;

/// The class of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyClass {
    /// A success value.
    Result,
    /// An empty result: success of a void method. (A missing result looks the same without the IDL.)
    Void,
    /// An exception that the method declares, by its field id.
    Declared(i16),
    /// A TApplicationException: the call did not reach the method or the method broke.
    Application {
        /// Its type.
        kind: ApplicationExceptionType,
        /// Where its text is in the reply, cut to [`MAX_TEXT`]; empty if there is none.
        message: Range<usize>,
    },
}

/// Classifies a whole reply message. An empty body (the answer to a oneway on Mux) is not a message: ask before.
///
/// # Errors
/// No valid header, a message that is not a reply ([`Why::WrongKind`]), a first field that cannot be read.
pub fn classify(reply: &[u8]) -> Result<ReplyClass, ThriftError> {
    classify_body(reply, &peek(reply)?)
}

/// As [`classify`] when the header was read already.
///
/// # Errors
/// As [`classify`].
pub fn classify_body(reply: &[u8], head: &MessageHead) -> Result<ReplyClass, ThriftError> {
    let mut cursor = Cursor::whole(reply);
    cursor.seek(head.body_at);
    match head.protocol {
        Protocol::Binary => class(binary::Reader(cursor), head.kind),
        Protocol::Compact => class(compact::Reader(cursor), head.kind),
    }
}

fn class<'a, R: Read<'a>>(mut reader: R, kind: Kind) -> Result<ReplyClass, ThriftError> {
    match kind {
        Kind::Reply => Ok(match reader.field(0)?.map(|field| field.id) {
            None => ReplyClass::Void,
            Some(0) => ReplyClass::Result,
            Some(id) => ReplyClass::Declared(id),
        }),
        Kind::Exception => application(reader),
        Kind::Call | Kind::Oneway => Err(ThriftError::new(0, Why::WrongKind(kind))),
    }
}

/// TApplicationException: 1 message, 2 type; both may be absent, others are skipped.
fn application<'a, R: Read<'a>>(mut reader: R) -> Result<ReplyClass, ThriftError> {
    let mut kind = 0;
    let mut message = 0..0;
    let mut last = 0;
    while let Some(field) = reader.field(last)? {
        last = field.id;
        match (field.id, field.ty) {
            (1, Type::String) => {
                let text = reader.string()?;
                message = text.start..text.end.min(text.start.saturating_add(MAX_TEXT));
            }
            (2, Type::I32) => kind = reader.i32()?,
            (_, ty) => skip_value(&mut reader, ty, field.inline, 1)?,
        }
    }
    Ok(ReplyClass::Application { kind: kind.into(), message })
}
