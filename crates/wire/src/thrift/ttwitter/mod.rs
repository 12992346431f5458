//! TTwitter: framed Thrift after an upgrade, where a header struct stands before every message (spec section 6).
//!
//! The upgrade is an ordinary call of a method with a magic name, so a server that does not know it refuses it
//! harmlessly. After it each request frame is a [`RequestHeader`] and a message, each reply frame a
//! [`ResponseHeader`] and a message, in the protocol of the connection.

mod context;
mod request;
mod response;

pub use context::{CLIENT_ID_KEY, TRACE_KEY, TraceValue};
pub use request::{Excess, RequestHeader};
pub use response::ResponseHeader;

use super::error::ThriftError;
use super::head::{MessageHead, peek, write_head};
use super::{Form, Kind};
use bytes::{BufMut, BytesMut};

/// The method whose call asks for the upgrade.
pub const UPGRADE_METHOD: &[u8] = b"__can__finagle__trace__v3__";

/// Whether a message asks for the upgrade. It must be a CALL, and a server honours it only as the first message of a
/// connection; what its struct holds does not matter.
pub fn is_upgrade_call(head: &MessageHead, message: &[u8]) -> bool {
    head.kind == Kind::Call && head.name_in(message) == UPGRADE_METHOD
}

/// Writes the upgrade call, without a frame length.
pub fn write_upgrade_call(form: impl Into<Form>, out: &mut BytesMut) {
    write_upgrade(form, Kind::Call, out);
}

/// Writes the answer that accepts the upgrade, without a frame length. Its sequence id is 0 whatever the call had.
pub fn write_upgrade_reply(form: impl Into<Form>, out: &mut BytesMut) {
    write_upgrade(form, Kind::Reply, out);
}

/// The options and the reply are both empty structs: one stop byte in either protocol.
fn write_upgrade(form: impl Into<Form>, kind: Kind, out: &mut BytesMut) {
    write_head(form, kind, UPGRADE_METHOD, 0, out);
    out.put_u8(0);
}

/// Whether the answer to our upgrade call accepts it. As Finagle's client: any reply but an EXCEPTION does, and name
/// and sequence id are not looked at. After a refusal the connection goes on as plain Thrift.
///
/// # Errors
/// Bytes that have no message header.
pub fn upgrade_accepted(reply: &[u8]) -> Result<bool, ThriftError> {
    peek(reply).map(|head| head.kind != Kind::Exception)
}
