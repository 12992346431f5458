//! Versions, and the tags that stand for them.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use std::fmt;

/// Counts the changes of a namespace: each change has a greater one than those before it, also over deletes. Gaps say
/// nothing. Embedded: a counter; ZooKeeper: the id of the transaction; etcd: the revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

impl Version {
    /// Reads a tag as it is written by `Display`, in either alphabet of base64, with or without padding. Where the tag went
    /// through a query unescaped, `+` is a blank by now: that is taken, too.
    pub fn parse(tag: &str) -> Option<Self> {
        let tag = tag.replace(' ', "+");
        let read = [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD];
        let bytes = read.iter().find_map(|alphabet| alphabet.decode(&tag).ok())?;
        bytes.try_into().ok().map(|bytes| Self(u64::from_be_bytes(bytes)))
    }
}

/// The tag: base64 of the eight bytes, the greatest first, without quotes.
impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(self.0.to_be_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_comes_back_in_every_form() {
        for version in [0, 1, 62, 63, 255, u64::MAX, 0xfbff_fbff_fbff_fbff].map(Version) {
            let tag = version.to_string();
            assert_eq!(tag.len(), 12);
            let forms = [
                tag.clone(),
                tag.trim_end_matches('=').to_owned(),
                tag.replace('+', "-").replace('/', "_"),
                tag.replace('+', " "),
            ];
            for form in forms {
                assert_eq!(Version::parse(&form), Some(version), "{form}");
            }
        }
        for wrong in ["", "AAAA", "\"AAAAAAAAAAE=\"", "1", "AAAAAAAAAAEAAAA=", "é"] {
            assert_eq!(Version::parse(wrong), None, "{wrong}");
        }
    }
}
