//! MuxFailure: what a failed reply says about repeating the request.

use crate::pairs::Pairs;
use bytes::Bytes;

/// A bit set, in the numbering of the wire (Finagle's texts print other numbers).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MuxFailure(pub u64);

/// `MuxFailure` as the only pair of a list, up to the eight bytes of the value.
const PREFIX: &[u8; 14] = b"\x00\x0aMuxFailure\x00\x08";

impl MuxFailure {
    /// Safe to send again.
    pub const RETRYABLE: MuxFailure = MuxFailure(1);
    /// Refused without trying.
    pub const REJECTED: MuxFailure = MuxFailure(2);
    /// Refused without trying and safe to send again: how a server sheds load.
    pub const RETRYABLE_REJECTED: MuxFailure = MuxFailure(3);
    /// Not to be repeated at any level.
    pub const NON_RETRYABLE: MuxFailure = MuxFailure(4);

    /// Reads a value of eight bytes or more; those beyond the eighth are ignored.
    pub fn decode(value: &[u8]) -> Option<Self> {
        value.first_chunk().map(|bytes| Self(u64::from_be_bytes(*bytes)))
    }

    /// The first usable one among the contexts of a reply.
    pub fn find(contexts: &Pairs) -> Option<Self> {
        if contexts.is_empty() {
            return None;
        }
        contexts
            .iter()
            .filter(|(key, _)| key == super::MUX_FAILURE)
            .find_map(|(_, value)| Self::decode(&value))
    }

    /// The value.
    pub fn encode(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }

    /// A list of contexts with just this one.
    pub fn to_pairs(self) -> Pairs {
        let mut region = Bytes::from([&PREFIX[..], &self.encode()].concat());
        Pairs::take(1, &mut region).unwrap_or_default()
    }

    /// Whether the request may be sent again. A contradictory "do not repeat" wins.
    pub fn is_retryable(self) -> bool {
        self.0 & 1 != 0 && !self.is_non_retryable()
    }

    /// Whether the server refused without trying.
    pub fn is_rejected(self) -> bool {
        self.0 & 2 != 0
    }

    /// Whether the request must not be repeated at any level.
    pub fn is_non_retryable(self) -> bool {
        self.0 & 4 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn found_among_contexts() {
        assert_eq!(MuxFailure::find(&MuxFailure(6).to_pairs()), Some(MuxFailure(6)));
        let key = super::super::MUX_FAILURE;
        let two = Pairs::build([(key, &[0; 4][..]), (key, &[0, 0, 0, 0, 0, 0, 0, 2, 9]), (key, &[255; 8])]);
        assert_eq!(MuxFailure::find(&two.unwrap()), Some(MuxFailure::REJECTED));
        assert_eq!(MuxFailure::find(&Pairs::default()), None);
    }

    #[test]
    fn do_not_repeat_wins() {
        let both = MuxFailure(5);
        assert!(both.is_non_retryable() && !both.is_retryable() && !both.is_rejected());
        assert!(MuxFailure::RETRYABLE_REJECTED.is_retryable());
    }
}
