//! First bytes of a connection to the protocol it speaks.
//!
//! One pure function over what has come so far, without consuming it. The order is that of the ThriftMux spec,
//! section 4: what is only Thrift is looked for before Mux, because Finagle's own order takes a compact ONEWAY or a
//! THeader frame for a piece of a Mux message and swallows it. No valid Mux frame is lost by that.

use crate::thrift::MAX_NAME;
use crate::thrift::framing::DEFAULT_MAX_FRAME;

/// What a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detected {
    /// Not known yet: ask again when so many bytes are there in all. At most [`MOST_BYTES`].
    NeedMore(usize),
    /// Mux, with or without the marker that starts its handshake.
    Mux,
    /// Framed Thrift, binary, strict or not. TTwitter begins like this too.
    FramedBinary,
    /// Framed Thrift, compact.
    FramedCompact,
    /// Thrift in THeader frames.
    THeader,
    /// Binary messages back to back, strict.
    UnframedBinary,
    /// Compact messages back to back.
    UnframedCompact,
    /// A TLS hello.
    Tls,
    /// An HTTP request.
    Http,
    /// None of these; the text says what stood out.
    Unknown(&'static str),
}

/// Bytes after which there is always an answer other than [`Detected::NeedMore`].
pub const MOST_BYTES: usize = 8 + PROBE.len();

/// The text of the marker that a Mux client sends before its handshake, as an Rerr with tag 1.
const PROBE: &[u8] = b"tinit check";

/// Fewest bytes of a non-strict binary message beside its name: length, type, sequence id, stop.
const OLD_LEAST: usize = 10;

/// Tells the protocol, with the default frame limit.
pub fn detect(first_bytes: &[u8]) -> Detected {
    detect_within(first_bytes, DEFAULT_MAX_FRAME)
}

/// Tells the protocol; a first frame over `max_frame` bytes is none, unless it is Thrift.
pub fn detect_within(first_bytes: &[u8], max_frame: usize) -> Detected {
    let Some((first, rest)) = first_bytes.split_first_chunk::<4>() else { return Detected::NeedMore(4) };
    match *first {
        [0x80, 0x01, ..] => return Detected::UnframedBinary,
        [0x82, second, ..] if second & 0x1f == 1 => return Detected::UnframedCompact,
        [0x16, 0x03, ..] => return Detected::Tls,
        [a, b, c, d] if is_text([a, b, c]) && (d == b' ' || d.is_ascii_alphabetic()) => {
            return Detected::Http;
        }
        _ => {}
    }
    let Ok(len) = usize::try_from(i32::from_be_bytes(*first)) else {
        return Detected::Unknown("negative frame length");
    };
    if len < 4 {
        return Detected::Unknown("first frame too short for any message");
    }
    match rest.split_first_chunk::<4>() {
        None => Detected::NeedMore(8),
        Some((second, rest)) => match framed(len, *second, rest) {
            // Nobody will take the frame, but who speaks Thrift is told so in Thrift.
            spoken @ (Detected::THeader | Detected::FramedCompact | Detected::FramedBinary) => spoken,
            _ if len > max_frame => Detected::Unknown("frame longer than the limit"),
            detected => detected,
        },
    }
}

fn is_text(bytes: [u8; 3]) -> bool {
    bytes.iter().all(u8::is_ascii_alphabetic)
}

/// By the first word of the first frame's content.
fn framed(len: usize, word: [u8; 4], rest: &[u8]) -> Detected {
    match word {
        [0x0f, 0xff, ..] => Detected::THeader,
        [0x82, second, ..] if second & 0x1f == 1 => Detected::FramedCompact,
        [0x80, 0x01, _, 1 | 4] => Detected::FramedBinary,
        [0x80, 0x01, _, 2 | 3] => Detected::Unknown("a Thrift reply cannot open a connection"),
        [0, ..] => {
            let name = u32::from_be_bytes(word) as usize;
            if name <= MAX_NAME && name + OLD_LEAST <= len {
                Detected::FramedBinary
            } else {
                Detected::Unknown("no plausible method name length")
            }
        }
        [kind, a, b, c] => mux(len, kind, u32::from_be_bytes([0, a, b, c]), rest),
    }
}

/// By type and tag of a Mux message that a client may send first: the marker, a T message, or a piece of one.
fn mux(len: usize, kind: u8, tag: u32, rest: &[u8]) -> Detected {
    let fragment = tag & 0x80_0000 != 0;
    let body = len - 4;
    match kind {
        0x7f | 0x80 if tag == 1 && body == PROBE.len() => match rest.get(..body) {
            Some(text) if text == PROBE => Detected::Mux,
            Some(_) => Detected::Unknown("a Mux error that is not the marker"),
            None => Detected::NeedMore(MOST_BYTES),
        },
        0x7f | 0x80 => Detected::Unknown("a Mux error that is not the marker"),
        // Treq, Tdispatch: any tag; only these are worth cutting into pieces.
        0x01 | 0x02 => Detected::Mux,
        _ if fragment => Detected::Unknown("a piece of a Mux message that is never cut"),
        // Tping is empty.
        0x41 if body == 0 => Detected::Mux,
        // Tdiscarded, by either number: three bytes name a tag.
        0x42 | 0xc2 if body >= 3 => Detected::Mux,
        // Tinit has a version.
        0x44 if body >= 2 => Detected::Mux,
        0x41 | 0x42 | 0xc2 | 0x44 => Detected::Unknown("a Mux message of the wrong size"),
        _ => Detected::Unknown("no known first message"),
    }
}
