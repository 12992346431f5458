//! What a session accepts at most: one place, so that bounds can be reviewed together (mux spec, section 20).

use std::time::Duration;

/// Largest frame length accepted by default, in bytes (type, tag and body).
pub const MAX_FRAME: u32 = 16 << 20;
/// Window announced in the handshake by default: peers cut longer messages, so that a small one waits for no more than so
/// many bytes of a large one. As much as two reads bring; larger pieces are hardly faster.
pub const WINDOW: u32 = 128 << 10;
/// Largest reassembled message, in bytes: in pieces or not, the limit is the same.
pub const MAX_MESSAGE: usize = 16 << 20;
/// Bytes of all partial messages of one session together.
pub const MAX_PARTIAL_BYTES: usize = 16 << 20;
/// Partial messages of one session.
pub const MAX_PARTIALS: usize = 1024;
/// A partial message that does not grow for this long ends the session.
pub const PARTIAL_IDLE: Duration = Duration::from_secs(10);
/// Contexts of one message.
pub const MAX_CONTEXTS: usize = 128;
/// Bytes of all contexts of one message together.
pub const MAX_CONTEXT_BYTES: usize = 64 << 10;
/// Entries of one dtab.
pub const MAX_DTAB: usize = 128;
/// Bytes of a destination: room for any name of a person, and a stranger's longest is still told that there is none.
pub const MAX_DST: usize = 8 << 10;
/// Dispatches in flight on one connection.
pub const MAX_IN_FLIGHT: usize = 16384;
/// Dispatches that a client session holds back until its handshake is over.
pub const MAX_HELD: usize = 1024;
/// Bytes waiting to be written beyond which a session takes no new dispatch.
pub const MAX_QUEUED_BYTES: usize = 64 << 20;
/// Small answers (pings, nacks, errors) that may wait to be written; a peer that lets more pile up is flooding us.
pub const MAX_QUEUED_CONTROL: usize = 65536;
/// Tags that a client session may lose to half-sent, cancelled requests before it retires itself.
pub const MAX_LOST_TAGS: usize = 1024;
/// From connect to the end of the handshake.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Headers of a Tinit or Rinit.
pub const MAX_INIT_HEADERS: usize = 64;
/// Bytes of all headers of a Tinit or Rinit together.
pub const MAX_INIT_BYTES: usize = 64 << 10;
/// Bytes of text written into an Rerr, a Tdiscarded or an ERROR; the rest is cut off.
pub const MAX_TEXT: usize = 4 << 10;
/// Time between two pings, as Finagle clients have it.
pub const PING_INTERVAL: Duration = Duration::from_secs(5);
/// A ping that is not answered for this long ends the session, as with Finagle clients.
pub const PING_TIMEOUT: Duration = Duration::from_secs(4);

/// The bounds of one session that depend on where it stands, to be set; the constants above are their defaults. What is
/// announced (the window) and what is counted for both sides (calls in flight, bytes queued) stand beside it in the
/// session's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Contexts of one message.
    pub contexts: usize,
    /// Bytes of all contexts of one message together, lengths included.
    pub context_bytes: usize,
    /// Entries of one dtab.
    pub dtab_entries: usize,
    /// Bytes of a destination.
    pub destination_bytes: usize,
    /// Largest message body, in pieces or not, in bytes.
    pub message_bytes: usize,
    /// Partial messages of one session.
    pub partials: usize,
    /// Bytes of all partial messages of one session together.
    pub partial_bytes: usize,
    /// A partial message that does not grow for this long ends the session.
    pub partial_idle: Duration,
    /// Headers of a Tinit or Rinit.
    pub init_headers: usize,
    /// Bytes of all headers of a Tinit or Rinit together.
    pub init_bytes: usize,
    /// Of what a call says beside its body only the destination is read. Contexts and delegations are stepped over, however
    /// many there are, and are empty.
    pub destination_only: bool,
}

impl Limits {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        contexts: MAX_CONTEXTS,
        context_bytes: MAX_CONTEXT_BYTES,
        dtab_entries: MAX_DTAB,
        destination_bytes: MAX_DST,
        message_bytes: MAX_MESSAGE,
        partials: MAX_PARTIALS,
        partial_bytes: MAX_PARTIAL_BYTES,
        partial_idle: PARTIAL_IDLE,
        init_headers: MAX_INIT_HEADERS,
        init_bytes: MAX_INIT_BYTES,
        destination_only: false,
    };

    /// The same limits, for messages of at most `bytes`: one such message in pieces always finds room.
    #[must_use]
    pub fn with_message_bytes(self, bytes: usize) -> Self {
        Self { message_bytes: bytes, partial_bytes: self.partial_bytes.max(bytes), ..self }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The front of `text` that may be written, cut where a UTF-8 character starts.
pub fn cut_text(text: &[u8]) -> usize {
    if text.len() <= MAX_TEXT {
        return text.len();
    }
    // A character has at most three continuation bytes; text that is not UTF-8 is simply cut.
    (MAX_TEXT - 3..=MAX_TEXT)
        .rev()
        .find(|&at| text.get(at).is_none_or(|b| b & 0xc0 != 0x80))
        .unwrap_or(MAX_TEXT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(cut_text(b"short"), 5);
        let text = "é".repeat(MAX_TEXT);
        assert_eq!(cut_text(text.as_bytes()), MAX_TEXT);
        let text = format!("x{text}");
        assert_eq!(cut_text(text.as_bytes()), MAX_TEXT - 1);
        assert_eq!(cut_text(&[0x80; MAX_TEXT * 2]), MAX_TEXT);
    }
}
