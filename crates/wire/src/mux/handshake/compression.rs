//! Whether the two directions of a session are compressed (mux spec, section 18). There is one format, `lz4`.

use super::HandshakeError;
use bytes::Bytes;

const LZ4: &[u8] = b"lz4";

/// How much a side wants one direction to be compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompressionLevel {
    /// Not at all.
    #[default]
    Off,
    /// If the other side desires it.
    Accepted,
    /// If the other side does not mind.
    Desired,
}

impl CompressionLevel {
    /// The word, as in headers.
    fn text(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Accepted => "accepted",
            Self::Desired => "desired",
        }
    }

    /// Reads a word; what is not exactly one of the three counts as off.
    fn parse(word: &[u8]) -> Self {
        let known = [Self::Accepted, Self::Desired];
        known.into_iter().find(|level| level.text().as_bytes() == word).unwrap_or(Self::Off)
    }

    /// Our half of an offer.
    fn offer(self) -> String {
        let name = if self == Self::Off { "" } else { "lz4" };
        format!("{}:{name}", self.text())
    }

    /// Whether we, as the server, take this half of a client's offer.
    fn takes(self, half: &[u8]) -> bool {
        let mut parts = half.split(|byte| *byte == b':');
        let level = Self::parse(parts.next().unwrap_or_default());
        let names = parts.next().unwrap_or_default();
        if parts.next().is_some() || !names.split(|byte| *byte == b',').any(|name| name == LZ4) {
            return false;
        }
        match (self, level) {
            (Self::Off, _) | (_, Self::Off) | (Self::Accepted, Self::Accepted) => false,
            (Self::Desired, _) | (_, Self::Desired) => true,
        }
    }
}

/// What one side wants of both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compression {
    /// From client to server.
    pub requests: CompressionLevel,
    /// From server to client.
    pub responses: CompressionLevel,
}

/// What both sides agreed upon: whether a direction is `lz4` from right behind the Rinit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compressed {
    /// From client to server.
    pub requests: bool,
    /// From server to client.
    pub responses: bool,
}

impl Compressed {
    /// Whether any direction is.
    pub fn any(self) -> bool {
        self.requests || self.responses
    }

    /// The value of the header `compress`, left out when nothing is compressed.
    pub(super) fn to_answer(self) -> Option<Bytes> {
        let name = |on| if on { "lz4" } else { "" };
        self.any().then(|| format!("{};{}", name(self.requests), name(self.responses)).into())
    }
}

/// The two halves of a value; `None` when there are not exactly two.
fn halves(value: &[u8]) -> Option<[&[u8]; 2]> {
    let mut parts = value.split(|byte| *byte == b';');
    let halves = [parts.next()?, parts.next()?];
    parts.next().is_none().then_some(halves)
}

impl Compression {
    /// The same for both directions.
    pub fn both(level: CompressionLevel) -> Self {
        Self { requests: level, responses: level }
    }

    /// The value of the header `accept-compress`, left out when nothing is offered.
    pub(super) fn to_offer(self) -> Option<Bytes> {
        (self != Self::default())
            .then(|| format!("{};{}", self.requests.offer(), self.responses.offer()).into())
    }

    /// What we, as the server, make of a client's offer.
    pub(super) fn choose(self, offer: &[u8]) -> Compressed {
        let Some([requests, responses]) = halves(offer) else { return Compressed::default() };
        Compressed { requests: self.requests.takes(requests), responses: self.responses.takes(responses) }
    }

    /// What we, as the client, make of a server's answer: it may choose only what we offered.
    pub(super) fn accept(self, answer: &[u8]) -> Result<Compressed, HandshakeError> {
        let wrong = || HandshakeError::Compression(String::from_utf8_lossy(answer).into_owned());
        let [requests, responses] = halves(answer).ok_or_else(wrong)?;
        let chosen = |name: &[u8], level| match name {
            b"" => Ok(false),
            LZ4 if level != CompressionLevel::Off => Ok(true),
            _ => Err(wrong()),
        };
        Ok(Compressed {
            requests: chosen(requests, self.requests)?,
            responses: chosen(responses, self.responses)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::CompressionLevel::{Accepted, Desired, Off};
    use super::*;

    #[test]
    fn a_direction_is_compressed_when_one_side_desires_it_and_the_other_does_not_mind() {
        for (ours, theirs, on) in [
            (Off, Off, false),
            (Off, Desired, false),
            (Accepted, Off, false),
            (Accepted, Accepted, false),
            (Accepted, Desired, true),
            (Desired, Accepted, true),
            (Desired, Desired, true),
        ] {
            let offer = Compression { requests: theirs, responses: Off }.to_offer().unwrap_or_default();
            let chosen = Compression::both(ours).choose(&offer);
            assert_eq!(chosen, Compressed { requests: on, responses: false }, "{ours:?} {theirs:?}");
            let answer = chosen.to_answer();
            assert_eq!(answer.is_some(), on);
            if let Some(answer) = answer {
                assert_eq!(Compression::both(theirs).accept(&answer), Ok(chosen));
            }
        }
    }

    #[test]
    fn odd_offers_mean_nothing() {
        let chosen = |offer: &str| Compression::both(Desired).choose(offer.as_bytes());
        for odd in
            ["", "desired:lz4", "desired:lz4;desired:lz4;x", "desired:LZ4;desired", ";", "desired:lz4:x;:"]
        {
            assert_eq!(chosen(odd), Compressed::default(), "{odd}");
        }
        let one = chosen("Desired:lz4;accepted:foo,lz4");
        assert_eq!(one, Compressed { requests: false, responses: true });
    }

    #[test]
    fn an_answer_to_what_was_not_offered_is_refused() {
        let ours = Compression { requests: Off, responses: Desired };
        assert_eq!(ours.to_offer().unwrap(), "off:;desired:lz4");
        assert_eq!(ours.accept(b";"), Ok(Compressed::default()));
        for wrong in ["lz4", "lz4;lz4", ";zip", ";lz4;", "", ";LZ4"] {
            assert_eq!(ours.accept(wrong.as_bytes()), Err(HandshakeError::Compression(wrong.into())));
        }
    }
}
