//! As much of Mux as a test service needs, written from the protocol's text and not from the gateway's code.

use bytes::{BufMut, Bytes, BytesMut};
use std::collections::HashMap;

/// A call with contexts, destination and dtab.
pub const TDISPATCH: i8 = 2;
/// Its answer.
pub const RDISPATCH: i8 = -2;
/// A call without any of that.
pub const TREQ: i8 = 1;
/// Its answer.
pub const RREQ: i8 = -1;
/// "Send no more calls."
pub const TDRAIN: i8 = 64;
/// The answer to it.
pub const RDRAIN: i8 = -64;
/// A ping.
pub const TPING: i8 = 65;
/// Its answer.
pub const RPING: i8 = -65;
/// "The answer to this call is not wanted any more."
pub const TDISCARDED: i8 = 66;
/// The answer to it.
pub const RDISCARDED: i8 = -66;
/// "You may send for so long."
pub const TLEASE: i8 = 67;
/// The handshake.
pub const TINIT: i8 = 68;
/// Its answer.
pub const RINIT: i8 = -68;
/// An error.
pub const RERR: i8 = -128;
/// What Finagle sends in place of [`RERR`].
pub const OLD_RERR: i8 = 127;
/// What Finagle sends in place of [`TDISCARDED`].
pub const OLD_TDISCARDED: i8 = -62;
/// The text by which a client asks whether the handshake is known.
pub const TINIT_CHECK: &[u8] = b"tinit check";

/// The handshake's header that tells how large the pieces may be that its sender receives.
pub const FRAMER: &str = "mux-framer";

/// Rdispatch statuses.
pub const OK: u8 = 0;
/// The call failed.
pub const ERROR: u8 = 1;
/// The call was not tried.
pub const NACK: u8 = 2;

/// A list of keys and values.
pub type Pairs = Vec<(Bytes, Bytes)>;

/// A message with its length in front.
pub fn frame(kind: i8, tag: u32, body: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(8 + body.len());
    out.put_u32(4 + body.len() as u32);
    out.put_i8(kind);
    out.put_uint(u64::from(tag), 3);
    out.put_slice(body);
    out.freeze()
}

/// The bit that says that more pieces follow.
const MORE: u32 = 1 << 23;

/// A message in pieces of at most `window` bytes of body, each with its length in front.
pub fn pieces(kind: i8, tag: u32, body: &[u8], window: usize) -> Bytes {
    let mut out = BytesMut::new();
    let mut chunks = body.chunks(window).peekable();
    while let Some(chunk) = chunks.next() {
        let tag = if chunks.peek().is_some() { tag | MORE } else { tag };
        out.put_slice(&frame(kind, tag, chunk));
    }
    out.freeze()
}

/// Whether a frame, without its length, keeps to a window. Only messages that can be cut need to.
pub fn fits(frame: &Bytes, window: usize) -> bool {
    split(frame).is_none_or(|(kind, _, body)| body.len() <= window || !matches!(kind, TDISPATCH | RDISPATCH))
}

/// Pieces of messages, by tag.
#[derive(Default)]
pub struct Pieces(HashMap<u32, BytesMut>);

impl Pieces {
    /// Takes a frame's content: the message that is whole with it, without its length; `None` if more pieces follow.
    pub fn join(&mut self, frame: Bytes) -> Option<Bytes> {
        let Some((_, tag, body)) = split(&frame) else { return Some(frame) };
        if tag & MORE != 0 {
            self.0.entry(tag & !MORE).or_default().put_slice(&body);
            return None;
        }
        let Some(mut whole) = self.0.remove(&tag) else { return Some(frame) };
        whole.put_slice(&body);
        Some(Bytes::from([&frame[..4], &whole].concat()))
    }

    /// Forgets the pieces of a message that will not be whole.
    pub fn forget(&mut self, tag: u32) {
        self.0.remove(&tag);
    }
}

/// Type, tag (with its fragment bit) and body of a message without its length.
pub fn split(message: &Bytes) -> Option<(i8, u32, Bytes)> {
    let head = message.get(..4)?;
    Some((head[0] as i8, u32::from_be_bytes([0, head[1], head[2], head[3]]), message.slice(4..)))
}

/// What a Tdispatch holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dispatch {
    /// Contexts, in order.
    pub contexts: Pairs,
    /// The destination's text.
    pub dest: Bytes,
    /// Prefixes and trees, in order.
    pub dtab: Pairs,
    /// The Thrift message.
    pub body: Bytes,
}

impl Dispatch {
    /// Reads a Tdispatch's body.
    pub fn parse(body: &Bytes) -> Option<Self> {
        let mut at = 0;
        let contexts = pairs(body, &mut at)?;
        let dest = short(body, &mut at)?;
        let dtab = pairs(body, &mut at)?;
        Some(Self { contexts, dest, dtab, body: body.slice(at..) })
    }

    /// Writes a Tdispatch's body.
    pub fn to_bytes(&self) -> Bytes {
        let mut out = BytesMut::new();
        put_pairs(&mut out, &self.contexts);
        out.put_u16(self.dest.len() as u16);
        out.put_slice(&self.dest);
        put_pairs(&mut out, &self.dtab);
        out.put_slice(&self.body);
        out.freeze()
    }

    /// The first context called `key`.
    pub fn context(&self, key: &str) -> Option<&Bytes> {
        self.contexts.iter().find(|(k, _)| k == key).map(|(_, v)| v)
    }
}

/// The body of a Tinit or Rinit.
pub fn init(headers: &[(&str, &[u8])]) -> Bytes {
    let mut out = BytesMut::new();
    out.put_u16(1);
    for text in headers.iter().flat_map(|(key, value)| [key.as_bytes(), value]) {
        out.put_u32(text.len() as u32);
        out.put_slice(text);
    }
    out.freeze()
}

/// The window that the headers of a Tinit or Rinit tell.
pub fn window(headers: &Pairs) -> Option<usize> {
    let (_, value) = headers.iter().find(|(key, _)| key == FRAMER)?;
    Some(u32::from_be_bytes(value[..].try_into().ok()?) as usize)
}

/// The headers of a Tinit or Rinit.
pub fn parse_init(body: &Bytes) -> Option<Pairs> {
    let mut at = 2;
    let mut text = || {
        let head = body.get(at..at + 4)?;
        let start = at + 4;
        at = start.checked_add(u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize)?;
        body.get(start..at)?;
        Some(body.slice(start..at))
    };
    let mut headers = Pairs::new();
    while let Some(key) = text() {
        headers.push((key, text()?));
    }
    (body.get(..2)? == [0, 1]).then_some(headers)
}

/// An Rdispatch's body.
pub fn rdispatch(status: u8, contexts: &Pairs, body: &[u8]) -> Bytes {
    let mut out = BytesMut::new();
    out.put_u8(status);
    put_pairs(&mut out, contexts);
    out.put_slice(body);
    out.freeze()
}

/// Status, contexts and rest of an Rdispatch's body.
pub fn parse_rdispatch(body: &Bytes) -> Option<(u8, Pairs, Bytes)> {
    let mut at = 1;
    let contexts = pairs(body, &mut at)?;
    Some((*body.first()?, contexts, body.slice(at..)))
}

fn pairs(bytes: &Bytes, at: &mut usize) -> Option<Pairs> {
    let head = bytes.get(*at..*at + 2)?;
    let n = u16::from_be_bytes([head[0], head[1]]);
    *at += 2;
    (0..n).map(|_| Some((short(bytes, at)?, short(bytes, at)?))).collect()
}

fn short(bytes: &Bytes, at: &mut usize) -> Option<Bytes> {
    let head = bytes.get(*at..*at + 2)?;
    let start = *at + 2;
    let end = start + usize::from(u16::from_be_bytes([head[0], head[1]]));
    bytes.get(start..end)?;
    *at = end;
    Some(bytes.slice(start..end))
}

fn put_pairs(out: &mut BytesMut, pairs: &Pairs) {
    out.put_u16(pairs.len() as u16);
    for text in pairs.iter().flat_map(|(k, v)| [k, v]) {
        out.put_u16(text.len() as u16);
        out.put_slice(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hex;

    #[test]
    fn a_dispatch_is_read_and_written() {
        // bc-05, without the length.
        let text = "02000002000000082f732f70726f62650000800100010000000361646400000008080001000000010800020000000200";
        let (kind, tag, body) = split(&Bytes::from(hex::decode(text))).unwrap();
        let dispatch = Dispatch::parse(&body).unwrap();
        assert_eq!((kind, tag, &dispatch.dest[..]), (TDISPATCH, 2, &b"/s/probe"[..]));
        assert_eq!(hex::encode(&frame(kind, tag, &dispatch.to_bytes())), format!("00000030{text}"));
        let pair = vec![(Bytes::from_static(b"k"), Bytes::from_static(b"vv"))];
        let body = rdispatch(NACK, &pair, b"rest");
        assert_eq!(parse_rdispatch(&body).unwrap(), (NACK, pair, Bytes::from_static(b"rest")));
    }
}
