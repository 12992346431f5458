//! Which service is meant: data centre, tag, name. Consul matches all of them whatever their case; here they are in lower
//! case, so that one service is not watched twice.

use muxgate_wire::name::Path;
use std::fmt::Write;

/// The data centre of the agent that is asked.
const LOCAL: &str = ".local";

/// Longest data centre, tag or service, in bytes: room for all that DNS would allow.
const MAX_WORD: usize = 255;

/// A service, as it is asked for.
pub(super) struct Place {
    /// None: that of the agent.
    pub dc: Option<String>,
    pub tag: Option<String>,
    pub service: String,
}

impl Place {
    /// Elements of a name.
    pub fn used(include_tag: bool) -> usize {
        2 + usize::from(include_tag)
    }

    /// The beginning of a path; none if Consul can have no such service.
    pub fn read(path: &Path, include_tag: bool) -> Option<Self> {
        let mut words = path.raw_elements().map(|raw| {
            let word = std::str::from_utf8(&raw).ok()?.to_lowercase();
            let odd = word.is_empty() || word.len() > MAX_WORD || word == "." || word == "..";
            let plain = !odd && !word.contains(|c: char| c == '/' || c.is_control());
            plain.then_some(word)
        });
        let dc = words.next()??;
        let dc_byte = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let dc = match dc.as_str() {
            LOCAL => None,
            name if name.bytes().all(dc_byte) => Some(dc),
            _ => return None,
        };
        let tag = if include_tag { Some(words.next()??) } else { None };
        Some(Self { dc, tag, service: words.next()?? })
    }

    /// The subject.
    pub fn subject(&self) -> Option<Path> {
        let dc = self.dc.as_deref().unwrap_or(LOCAL);
        let words = [Some(dc), self.tag.as_deref(), Some(&self.service)];
        Path::from_elements(words.into_iter().flatten().map(str::as_bytes)).ok()
    }

    /// What is asked for, up to the index.
    pub fn query(&self) -> String {
        let mut query = format!("/v1/health/service/{}?", encoded(&self.service));
        for (key, value) in [("dc", &self.dc), ("tag", &self.tag)] {
            if let Some(value) = value {
                // Writing to a text cannot fail.
                let _ = write!(query, "{key}={}&", encoded(value));
            }
        }
        query
    }
}

/// As it stands in a URL, be it in its path or its query.
pub(super) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            _ => {
                // Writing to a text cannot fail.
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}
