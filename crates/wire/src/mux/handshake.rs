//! The handshake: probe, Tinit, Rinit (mux spec, section 7).

mod compression;

pub use compression::{Compressed, Compression, CompressionLevel};

use super::frame::{Frame, Tag, kind};
use super::limits;
use super::message::Init;
use bytes::Bytes;
use std::fmt;

/// Text of the Rerr by which a client finds out whether its server knows the handshake.
pub const PROBE: &[u8] = b"tinit check";
/// The only version.
pub const VERSION: u16 = 1;
/// Window of a peer that announces none: nothing is cut.
pub const UNLIMITED: u32 = i32::MAX as u32;

const FRAMER: &[u8] = b"mux-framer";
const TLS: &[u8] = b"tls";
const OFFER_COMPRESSION: &[u8] = b"accept-compress";
const COMPRESSION: &[u8] = b"compress";

/// Whether this is the probe, or the answer to it.
pub fn is_probe(frame: &Frame) -> bool {
    matches!(frame.kind, kind::RERR | kind::RERR_OLD)
        && !frame.fragment
        && frame.tag == Tag::SESSION
        && frame.body == PROBE
}

/// How much a side wants TLS to begin right after the handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsLevel {
    /// Not at all.
    #[default]
    Off,
    /// If the other side wants it too.
    Desired,
    /// Or else no session.
    Required,
}

impl TlsLevel {
    fn text(self) -> &'static [u8] {
        match self {
            Self::Off => b"off",
            Self::Desired => b"desired",
            Self::Required => b"required",
        }
    }

    /// Reads a header's value; what is not exactly one of the three words counts as off.
    pub fn parse(value: &[u8]) -> Self {
        [Self::Desired, Self::Required].into_iter().find(|level| level.text() == value).unwrap_or(Self::Off)
    }

    /// Whether two levels mean TLS; `None` when they cannot agree.
    pub fn agree(self, other: Self) -> Option<bool> {
        match (self, other) {
            (Self::Off, Self::Required) | (Self::Required, Self::Off) => None,
            (Self::Off, _) | (_, Self::Off) => Some(false),
            _ => Some(true),
        }
    }
}

/// What one side announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Largest number of body bytes per frame that it wants to receive.
    pub window: u32,
    /// How much it wants TLS.
    pub tls: TlsLevel,
    /// How much it wants compression.
    pub compression: Compression,
}

impl Default for Offer {
    fn default() -> Self {
        Self { window: limits::WINDOW, tls: TlsLevel::Off, compression: Compression::default() }
    }
}

/// What the two sides agreed upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// Whether there was a handshake at all.
    pub handshake: bool,
    /// Window of the peer: we cut what is longer.
    pub window: u32,
    /// Whether TLS begins now, right behind the last byte of the Rinit.
    pub tls: bool,
    /// What is compressed from there on, inside TLS.
    pub compressed: Compressed,
}

impl Agreed {
    /// A session without handshake.
    pub const NOTHING: Agreed = Agreed {
        handshake: false,
        window: UNLIMITED,
        tls: false,
        compressed: Compressed { requests: false, responses: false },
    };

    /// Whether the byte stream is another one from right behind the Rinit.
    pub fn switches(self) -> bool {
        self.tls || self.compressed.any()
    }
}

/// Why the two sides cannot agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandshakeError {
    /// The peer has another version.
    Version(u16),
    /// One side requires TLS, the other does not want it.
    Tls,
    /// The server chose a compression that was not offered: its `compress` header.
    Compression(String),
    /// A window that is not a positive number of four bytes.
    Window,
    /// The peer answered the Tinit with this error.
    Refused(String),
    /// The peer answered the Tinit with something else.
    Unexpected(i8),
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => write!(f, "Unsupported Mux version: {}", *version as i16),
            Self::Tls => f.write_str("the two sides cannot agree whether to use TLS"),
            Self::Compression(answer) => write!(f, "compress: `{answer}` was not offered"),
            Self::Window => f.write_str("mux-framer is not a positive 32-bit number"),
            Self::Refused(text) => write!(f, "refused: {text}"),
            Self::Unexpected(kind) => write!(f, "answered by a message of type {kind}"),
        }
    }
}

impl std::error::Error for HandshakeError {}

impl Offer {
    /// The body of the Tinit that says this.
    pub fn to_tinit(self) -> Init {
        self.init(OFFER_COMPRESSION, self.compression.to_offer())
    }

    /// The body of the Rinit that says this in answer to a client's Tinit.
    pub fn to_rinit(self, tinit: &Init) -> Init {
        self.init(COMPRESSION, self.choose(tinit).to_answer())
    }

    fn init(self, key: &'static [u8], compression: Option<Bytes>) -> Init {
        let mut headers = vec![
            (Bytes::from_static(FRAMER), Bytes::copy_from_slice(&self.window.min(UNLIMITED).to_be_bytes())),
            (Bytes::from_static(TLS), Bytes::from_static(self.tls.text())),
        ];
        headers.extend(compression.map(|value| (Bytes::from_static(key), value)));
        Init { version: VERSION, headers }
    }

    fn choose(self, tinit: &Init) -> Compressed {
        tinit.header(OFFER_COMPRESSION).map_or(Compressed::default(), |offer| self.compression.choose(offer))
    }

    /// What this offer of ours, the server, and the client's Tinit come to.
    ///
    /// # Errors
    /// [`HandshakeError`], by which the session ends.
    pub fn agree_with_client(self, tinit: &Init) -> Result<Agreed, HandshakeError> {
        self.agree(tinit, self.choose(tinit))
    }

    /// What this offer of ours, the client, and the server's Rinit come to.
    ///
    /// # Errors
    /// [`HandshakeError`], by which the session ends.
    pub fn agree_with_server(self, rinit: &Init) -> Result<Agreed, HandshakeError> {
        let agreed = self.agree(rinit, Compressed::default())?;
        match rinit.header(COMPRESSION) {
            Some(answer) => Ok(Agreed { compressed: self.compression.accept(answer)?, ..agreed }),
            None => Ok(agreed),
        }
    }

    fn agree(self, peer: &Init, compressed: Compressed) -> Result<Agreed, HandshakeError> {
        if peer.version != VERSION {
            return Err(HandshakeError::Version(peer.version));
        }
        let level = peer.header(TLS).map_or(TlsLevel::Off, |value| TlsLevel::parse(value));
        let tls = self.tls.agree(level).ok_or(HandshakeError::Tls)?;
        let window = match peer.header(FRAMER) {
            None => UNLIMITED,
            // A longer value is read by its first four bytes.
            Some(value) => value
                .first_chunk()
                .map(|bytes| u32::from_be_bytes(*bytes))
                .filter(|window| (1..=UNLIMITED).contains(window))
                .ok_or(HandshakeError::Window)?,
        };
        Ok(Agreed { handshake: true, window, tls, compressed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_levels_agree_as_in_the_table() {
        use TlsLevel::{Desired, Off, Required};
        let table = [
            (Off, Off, Some(false)),
            (Off, Desired, Some(false)),
            (Off, Required, None),
            (Desired, Desired, Some(true)),
            (Desired, Required, Some(true)),
            (Required, Required, Some(true)),
        ];
        for (one, other, outcome) in table {
            assert_eq!((one.agree(other), other.agree(one)), (outcome, outcome));
        }
        assert_eq!(TlsLevel::parse(b"REQUIRED"), Off);
    }

    #[test]
    fn windows() {
        let agree = |value: &'static [u8]| {
            let headers = vec![(Bytes::from_static(FRAMER), Bytes::from_static(value))];
            Offer::default().agree_with_client(&Init { version: 1, headers }).map(|agreed| agreed.window)
        };
        assert_eq!(agree(b"\0\0\0\x10"), Ok(16));
        assert_eq!(agree(b"\0\0\0\x10\xff"), Ok(16));
        for bad in [&b"\0\0\0\0"[..], b"\xff\xff\xff\xff", b"\0\0\x10", b""] {
            assert_eq!(agree(bad), Err(HandshakeError::Window));
        }
        let none = Init { version: 1, headers: vec![] };
        assert_eq!(Offer::default().agree_with_server(&none).map(|agreed| agreed.window), Ok(UNLIMITED));
        let compression = Compression::both(CompressionLevel::Desired);
        let offer = Offer { window: 7, tls: TlsLevel::Desired, compression };
        let compressed = Compressed { requests: true, responses: true };
        let agreed = Agreed { handshake: true, window: 7, tls: true, compressed };
        assert_eq!(offer.agree_with_client(&offer.to_tinit()), Ok(agreed));
        assert_eq!(offer.agree_with_server(&offer.to_rinit(&offer.to_tinit())), Ok(agreed));
        assert!(agreed.switches() && !Agreed::NOTHING.switches());
    }
}
