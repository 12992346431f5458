//! Frames of a peer that may be anything: right, wrong, or out of place.

use crate::script::Script;
use bytes::{BufMut, Bytes, BytesMut};
use muxgate_wire::mux::context::{MUX_FAILURE, RETRIES};
use muxgate_wire::mux::frame::{Frame, Tag, kind};
use muxgate_wire::mux::handshake::{Compression, CompressionLevel, PROBE, VERSION};
use muxgate_wire::mux::limits::Limits;
use muxgate_wire::mux::message::{Init, Message, Rdispatch, Rreq, Status, Tdispatch, Tlease, Treq};
use muxgate_wire::pairs::Pairs;

/// What a client sends, and last what makes sense.
pub const FROM_CLIENT: [i8; 16] = [
    kind::TDISPATCH,
    kind::TDISPATCH,
    kind::TDISPATCH,
    kind::TDISPATCH,
    kind::TREQ,
    kind::TREQ,
    kind::TDISCARDED,
    kind::TDISCARDED_OLD,
    kind::TDISCARDED_OLD,
    kind::TPING,
    kind::TINIT,
    kind::TINIT,
    kind::RERR_OLD,
    kind::RDRAIN,
    kind::TDRAIN,
    3,
];

/// What a server sends.
pub const FROM_SERVER: [i8; 16] = [
    kind::RDISPATCH,
    kind::RDISPATCH,
    kind::RDISPATCH,
    kind::RDISPATCH,
    kind::RREQ,
    kind::RDISCARDED,
    kind::RDISCARDED,
    kind::RERR,
    kind::RERR_OLD,
    kind::RPING,
    kind::TPING,
    kind::TDRAIN,
    kind::TLEASE,
    kind::RINIT,
    kind::RDRAIN,
    -3,
];

/// Tags are few, so that they meet.
const TAGS: usize = 12;

/// The next frame of a peer that sends such kinds.
pub fn frame(script: &mut Script<'_>, kinds: &[i8; 16]) -> Frame {
    let choice = script.byte();
    let kind = if choice == 255 { script.byte() as i8 } else { kinds[usize::from(choice % 16)] };
    let tag = match script.byte() {
        255 => Tag::MAX,
        254 => Tag::new(u32::from(script.word()) << 4).unwrap_or_default(),
        253 => Tag::SESSION,
        small => Tag::new(u32::from(small) % TAGS as u32).unwrap_or_default(),
    };
    let form = script.byte();
    let fragment = form & 0xf0 == 0xf0;
    let body = if form & 1 == 1 { script.bytes() } else { body(script, kind) };
    Frame { kind, tag, fragment, body }
}

/// A body that is right for its kind.
fn body(script: &mut Script<'_>, kind: i8) -> Bytes {
    let message = match kind {
        kind::TDISPATCH => {
            let contexts = contexts(script);
            let dtab = Pairs::build([(&b"/s"[..], &b"/t"[..])].into_iter().take(script.below(2)));
            let dtab = dtab.unwrap_or_default();
            Message::Tdispatch(Tdispatch { contexts, dst: "/s/web".into(), dtab, body: script.bytes() })
        }
        kind::TREQ => Message::Treq(Treq { trace: None, body: script.bytes() }),
        kind::RDISPATCH => {
            let status = script.pick(&[Status::Ok, Status::Error, Status::Nack]);
            Message::Rdispatch(Rdispatch { status, contexts: contexts(script), body: script.bytes() })
        }
        kind::RREQ => Message::Rreq(Rreq { status: Status::Ok, body: script.bytes() }),
        kind::TLEASE => Message::Tlease(Tlease { unit: Tlease::MILLIS, amount: script.word().into() }),
        kind::TINIT | kind::RINIT => return encode(&Message::Tinit(init(script))),
        kind::RERR | kind::RERR_OLD => return Bytes::from_static(PROBE),
        kind::TDISCARDED | kind::TDISCARDED_OLD => {
            let which = [0, 0, script.below(TAGS) as u8];
            return [&which[..], &script.bytes()[..]].concat().into();
        }
        _ => return Bytes::new(),
    };
    encode(&message)
}

fn contexts(script: &mut Script<'_>) -> Pairs {
    let known = [(MUX_FAILURE, &[0, 0, 0, 0, 0, 0, 0, 3][..]), (RETRIES, &[0, 0, 0, 1]), (b"key", b"value")];
    Pairs::build(known.into_iter().take(script.below(4))).unwrap_or_default()
}

fn init(script: &mut Script<'_>) -> Init {
    let mut headers = Vec::new();
    if script.flag() {
        let mut window = BytesMut::new();
        window.put_u32(script.pick(&[1, 7, 100, 4000, 1 << 20, 0, u32::MAX]));
        headers.push((Bytes::from_static(b"mux-framer"), window.freeze()));
    }
    if script.flag() {
        let level = script.pick(&["off", "desired", "required", "what"]);
        headers.push((Bytes::from_static(b"tls"), level.into()));
    }
    if script.flag() {
        let key = script.pick(&["accept-compress", "compress", "other"]);
        let known = script.pick(&["lz4", "lz4:lz4", "lz4-pref:lz4", "none:lz4", ""]);
        headers.push((key.into(), if known.is_empty() { script.bytes() } else { known.into() }));
    }
    Init { version: if script.byte() == 255 { 2 } else { VERSION }, headers }
}

fn encode(message: &Message) -> Bytes {
    let mut out = BytesMut::new();
    message.encode(&mut out);
    out.freeze()
}

/// How much a side wants compression.
pub fn compression(script: &mut Script<'_>) -> Compression {
    let mut level =
        || script.pick(&[CompressionLevel::Off, CompressionLevel::Accepted, CompressionLevel::Desired]);
    Compression { requests: level(), responses: level() }
}

/// The usual limits, or some that are soon met.
pub fn limits(script: &mut Script<'_>) -> Limits {
    let small = Limits {
        contexts: 2,
        context_bytes: 40,
        message_bytes: 200,
        partials: 2,
        partial_bytes: 300,
        ..Limits::DEFAULT
    };
    script.pick(&[Limits::DEFAULT, small])
}
