//! Thrift messages.
use std::ops::Range;
/// Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Binary.
    Binary,
    /// Compact.
    Compact,
}
/// Kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Call.
    Call = 1,
    /// Oneway.
    Oneway = 4,
}
/// Header.
#[derive(Clone, Debug)]
pub struct MessageHead {
    /// Protocol.
    pub protocol: Protocol,
    /// Kind.
    pub kind: Kind,
    /// Name.
    pub name: Range<usize>,
    /// Sequence id.
    pub seqid: i32,
    /// Where the struct begins.
    pub body_at: usize,
}
/// Error.
#[derive(Clone, Debug)]
pub struct ThriftError;
/// Peeks.
pub fn peek(_: &[u8]) -> Result<MessageHead, ThriftError> {
    Err(ThriftError)
}
/// Class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyClass {
    /// Result.
    Result,
    /// Void.
    Void,
    /// Declared.
    Declared(i16),
    /// Application.
    Application(ApplicationExceptionType),
}
/// Type of a TApplicationException.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApplicationExceptionType(pub i32);
impl ApplicationExceptionType {
    /// Whether the caller is at fault.
    pub fn is_callers_fault(self) -> bool {
        matches!(self.0, 1 | 2 | 7 | 8 | 9 | 10)
    }
}
/// Classifies.
pub fn classify(_: &[u8]) -> Result<ReplyClass, ThriftError> {
    Err(ThriftError)
}
