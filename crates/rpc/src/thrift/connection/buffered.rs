//! Messages with nothing around them: where one ends is found by walking it (thriftmux spec, section 10).

use super::{Connection, bad_reply, lost};
use crate::io::Io;
use crate::{Failure, Payload, Why};
use bytes::BytesMut;
use muxgate_wire::thrift::{self, Cursor, ThriftError, Walk, skip};
use std::future::poll_fn;

/// Refuses a call that does not end where its caller's frame did: on a stream without frames the rest would be read as
/// another call, and a call cut short would take the next one's bytes.
pub(super) fn check_end(call: &Payload) -> Result<(), Failure> {
    let Some(head) = call.head() else { return Ok(()) };
    let mut cursor = Cursor::whole(call.bytes());
    cursor.seek(head.body_at);
    let bad = |text| Failure::new(Why::BadRequest, text);
    skip::skip_struct(head.protocol, &mut cursor)
        .map_err(|error| bad(format!("the call's arguments cannot be read: {error}")))?;
    match cursor.left() {
        0 => Ok(()),
        more => {
            Err(bad(format!("{more} bytes stand behind the call, and the service's transport has no frames")))
        }
    }
}

impl<T: Io> Connection<T> {
    /// The next message: read as it comes, and walked once.
    pub(super) async fn buffered_reply(&mut self) -> Result<BytesMut, Failure> {
        let mut walk = Walk::new(self.max_frame);
        loop {
            let missing = match walk.advance(self.read.bytes()) {
                Ok((_, len)) => return Ok(self.read.bytes_mut().split_to(len)),
                Err(ThriftError { why: thrift::Why::Incomplete { more }, .. }) => more,
                Err(error) => return Err(bad_reply(format!("the service's reply cannot be read: {error}"))),
            };
            match poll_fn(|cx| self.read.poll_fill(&mut self.io, cx, missing)).await {
                Ok(0) if self.read.bytes().is_empty() => {
                    return Err(lost("the service closed the connection before it answered"));
                }
                Ok(0) => return Err(lost("the service closed the connection amid its answer")),
                Ok(_) => {}
                Err(error) => return Err(lost(format!("the connection broke before the answer: {error}"))),
            }
        }
    }
}
