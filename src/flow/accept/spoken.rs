//! Whether a connection speaks what its listener takes.

use super::Protocol;
use muxgate_rpc::thrift::Framing;
use muxgate_wire::detect::{Detected, detect_within};
use muxgate_wire::thrift::MAX_NAME;

/// How to serve a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Mux,
    Thrift(Framing),
}

/// What the first bytes of a connection lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// There are too few of them.
    More,
    Serve(How),
    /// It begins with a TLS handshake.
    Tls,
    /// The cause, for counting.
    Refuse(&'static str),
}

const MUX: Verdict = Verdict::Serve(How::Mux);
const FRAMED: Verdict = Verdict::Serve(How::Thrift(Framing::Framed));
const UNFRAMED: Verdict = Verdict::Serve(How::Thrift(Framing::Buffered));
const THEADER: Verdict = Verdict::Serve(How::Thrift(Framing::Header));

/// Judges the first bytes of a connection. Where the listener's protocol is set, bytes are read as that one as soon as they
/// surely are no other.
pub(super) fn judge(protocol: Protocol, bytes: &[u8], max_frame: usize) -> Verdict {
    let detected = detect_within(bytes, max_frame);
    match (protocol, detected) {
        (_, Detected::Tls) => Verdict::Tls,
        (Protocol::Buffered, _) => buffered(bytes, detected),
        (_, Detected::NeedMore(_)) => Verdict::More,
        (Protocol::Detect | Protocol::ThriftMux, Detected::Mux) => MUX,
        (Protocol::Detect | Protocol::Framed, Detected::FramedBinary | Detected::FramedCompact) => FRAMED,
        (Protocol::Detect | Protocol::Header, Detected::THeader) => THEADER,
        (Protocol::Detect, Detected::UnframedBinary | Detected::UnframedCompact) => UNFRAMED,
        (Protocol::ThriftMux, Detected::Unknown(_)) => MUX,
        (Protocol::Framed, Detected::Unknown(_)) => FRAMED,
        (_, other) => Verdict::Refuse(name(other)),
    }
}

/// Unframed messages in the old binary form begin with the length of the method's name, which alone could be that of a
/// frame: the name tells them apart.
fn buffered(bytes: &[u8], detected: Detected) -> Verdict {
    match (detected, bytes) {
        (Detected::UnframedBinary | Detected::UnframedCompact, _) => UNFRAMED,
        (Detected::Http, _) => Verdict::Refuse(name(detected)),
        (_, [a, b, c, d, name @ ..]) => {
            let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
            match name.get(..length.min(4)) {
                None => Verdict::More,
                Some(start) if length <= MAX_NAME && is_name(start) => UNFRAMED,
                Some(_) => match detected {
                    Detected::NeedMore(_) => Verdict::More,
                    other => Verdict::Refuse(self::name(other)),
                },
            }
        }
        _ => Verdict::More,
    }
}

/// Neither a byte that begins a message of another kind nor one that no name has.
fn is_name(start: &[u8]) -> bool {
    !matches!(start.first(), Some(0x80..=0xbf)) && start.iter().all(|byte| *byte > 0x20 && *byte != 0x7f)
}

fn name(detected: Detected) -> &'static str {
    match detected {
        Detected::Mux => "mux",
        Detected::FramedBinary | Detected::FramedCompact => "framed",
        Detected::THeader => "theader",
        Detected::UnframedBinary | Detected::UnframedCompact => "unframed",
        Detected::Tls => "tls",
        Detected::Http => "http",
        Detected::NeedMore(_) | Detected::Unknown(_) => "unknown_protocol",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::Refuse;

    const MARKER: &[u8] = b"\0\0\0\x0f\x7f\0\0\x01tinit check";
    const TINIT: &[u8] = b"\0\0\0\x06\x44\0\0\x01\0\x01";
    const STRICT: &[u8] = b"\0\0\0\x1e\x80\x01\0\x01\0\0\0\x04ping";
    const OLD: &[u8] = b"\0\0\0\x0e\0\0\0\x04ping\x01";
    const COMPACT: &[u8] = b"\0\0\0\x0e\x82\x21\0\x04ping";
    const HEADER: &[u8] = b"\0\0\0\x40\x0f\xff\0\0";
    const BARE: &[u8] = b"\x80\x01\0\x01\0\0\0\x04ping";
    const BARE_COMPACT: &[u8] = b"\x82\x21\0\x04ping";
    const BARE_OLD: &[u8] = b"\0\0\0\x04ping\x01";
    const TLS: &[u8] = b"\x16\x03\x01\0\xc8";
    const HTTP: &[u8] = b"GET / HTTP/1.1";
    const NOISE: &[u8] = b"\0\0\0\x04\xde\xad\xbe\xef";

    #[test]
    fn a_listener_takes_what_it_speaks_and_names_the_rest() {
        let inputs = [MARKER, TINIT, STRICT, OLD, COMPACT, HEADER, BARE, BARE_COMPACT, TLS, HTTP, NOISE];
        let [mux, framed, header, bare] = ["mux", "framed", "theader", "unframed"].map(Refuse);
        let (tls, http, noise) = (Verdict::Tls, Refuse("http"), Refuse("unknown_protocol"));
        for (protocol, want) in [
            (
                Protocol::Detect,
                [MUX, MUX, FRAMED, FRAMED, FRAMED, THEADER, UNFRAMED, UNFRAMED, tls, http, noise],
            ),
            (Protocol::ThriftMux, [MUX, MUX, framed, framed, framed, header, bare, bare, tls, http, MUX]),
            (Protocol::Framed, [mux, mux, FRAMED, FRAMED, FRAMED, header, bare, bare, tls, http, FRAMED]),
            (
                Protocol::Buffered,
                [mux, mux, framed, framed, framed, header, UNFRAMED, UNFRAMED, tls, http, UNFRAMED],
            ),
            (Protocol::Header, [mux, mux, framed, framed, framed, THEADER, bare, bare, tls, http, noise]),
        ] {
            for (input, want) in inputs.into_iter().zip(want) {
                let text = input.escape_ascii();
                assert_eq!(judge(protocol, input, 16_384_000), want, "{protocol:?}: {text}");
                // Whatever comes in pieces is judged alike, or not yet.
                for end in 0..input.len() {
                    let early = judge(protocol, &input[..end], 16_384_000);
                    assert!(
                        early == Verdict::More || early == want,
                        "{protocol:?}: {end} bytes of {text}: {early:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn old_messages_without_frames_are_told_by_their_name() {
        for name in ["a", "ping", "Begin", "Dispatch", "Abcd", "x:y", "\u{e9}t\u{e9}"] {
            let length = (name.len() as u32).to_be_bytes();
            let message = [&length[..], name.as_bytes(), b"\x01\0\0\0\0\0"].concat();
            assert_eq!(judge(Protocol::Buffered, &message, 16_384_000), UNFRAMED, "{name}");
        }
        assert_eq!(judge(Protocol::Buffered, BARE_OLD, 16_384_000), UNFRAMED);
        assert_eq!(judge(Protocol::Buffered, b"\0\0\x10\0name", 16_384_000), Refuse("unknown_protocol"));
        assert_ne!(judge(Protocol::Detect, BARE_OLD, 16_384_000), UNFRAMED);
    }
}
