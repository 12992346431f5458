//! Finds the end of a message that has no frame around it, as its bytes come in.

use super::cursor::Cursor;
use super::error::ThriftError;
use super::head::{MessageHead, peek_partial};
use super::skip::{MAX_DEPTH, Skipper};

/// Longest message without a frame, in bytes.
pub const MAX_MESSAGE: usize = 100 * 1024 * 1024;

/// The walk over one unframed message. Call [`Walk::advance`] with all bytes from the message's start each time
/// more have come; what was walked already is not walked again.
#[derive(Clone, Debug)]
pub struct Walk {
    limit: usize,
    nesting: usize,
    body: Option<Body>,
}

#[derive(Clone, Debug)]
struct Body {
    head: MessageHead,
    skipper: Skipper,
    at: usize,
}

impl Walk {
    /// For one message of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self::within(limit, MAX_DEPTH)
    }

    /// The same, for a message of at most `nesting` levels; [`MAX_DEPTH`] at most.
    pub fn within(limit: usize, nesting: usize) -> Self {
        Self { limit, nesting, body: None }
    }

    /// The head and the length of the message, once all of it is there.
    ///
    /// # Errors
    /// [`Why::Incomplete`](super::Why::Incomplete) asks for more bytes; after any other the stream is lost.
    pub fn advance(&mut self, bytes: &[u8]) -> Result<(MessageHead, usize), ThriftError> {
        let body = match &mut self.body {
            Some(body) => body,
            none => {
                let head = peek_partial(bytes, self.limit)?;
                let at = head.body_at;
                none.insert(Body { head, skipper: Skipper::of_struct_within(self.nesting), at })
            }
        };
        let mut cursor = Cursor::partial(bytes, self.limit);
        cursor.seek(body.at);
        let done = body.skipper.advance(body.head.protocol, &mut cursor);
        body.at = cursor.at();
        done.map(|()| (body.head.clone(), body.at))
    }
}
