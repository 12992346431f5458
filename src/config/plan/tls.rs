//! Certificates in a plan.

use crate::names::namers::pattern::{Captures, Pattern};
use muxgate_rpc::tls::{ClientFiles, ServerFiles, ServerName};
use muxgate_wire::mux::handshake::TlsLevel;

/// TLS of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerTls {
    /// The files.
    pub files: ServerFiles,
    /// Whether connections may begin in clear.
    pub opportunistic: TlsLevel,
}

/// TLS towards the services of some bound ids.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientTls {
    /// The files.
    pub files: ClientFiles,
    /// Whom the certificate must be for; none if nobody looks.
    pub name: Option<CommonName>,
    /// Whether connections begin in clear.
    pub opportunistic: TlsLevel,
}

/// The name of a server, with parts of the bound id in it: `{service}.example.org`.
#[derive(Clone, Debug, PartialEq)]
pub struct CommonName(Pattern);

impl CommonName {
    /// Reads a name; `prefix` has the captures that it may use.
    ///
    /// # Errors
    /// A text that says what is wrong.
    pub fn parse(text: &str, prefix: Option<&Pattern>) -> Result<Self, String> {
        if text.contains(['/', '*']) {
            return Err(format!("`{text}` cannot be the name of a server"));
        }
        let name =
            Self(Pattern::parse(&format!("/{text}")).map_err(|_| format!("`{text}` has a brace too many"))?);
        let known: Vec<_> = prefix.into_iter().flat_map(Pattern::names).collect();
        if let Some(unknown) = name.0.names().find(|name| !known.contains(name)) {
            return Err(format!("`prefix` has no {{{unknown}}}"));
        }
        // What will stand in the place of a capture is not known: a letter fits into names, a digit into addresses.
        let fits = [b"x", b"1"].into_iter().any(|example| {
            let kept = known.iter().map(|name| ((*name).to_string(), example.to_vec())).collect();
            ServerName::try_from(name.fill(&kept)).is_ok()
        });
        if fits { Ok(name) } else { Err(format!("`{text}` cannot be the name of a server")) }
    }

    /// The name, with what was captured. If that makes no name, the handshake will say so.
    pub fn fill(&self, captures: &Captures) -> String {
        let path = self.0.fill(captures).unwrap_or_default();
        let name = path.raw_elements().next();
        name.map_or_else(String::new, |name| String::from_utf8_lossy(&name).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muxgate_wire::name::Path;

    #[test]
    fn names_take_parts_of_the_bound_id() {
        let prefix = Pattern::parse("/#/io.l5d.fs/{zone}-{service}").unwrap();
        let id = Path::parse("/#/io.l5d.fs/eu-users").unwrap();
        let kept = prefix.matches(&id).unwrap();
        let filled = |text| CommonName::parse(text, Some(&prefix)).map(|name| name.fill(&kept));
        assert_eq!(filled("{service}.{zone}.example.org"), Ok("users.eu.example.org".into()));
        assert_eq!(filled("10.0.0.1"), Ok("10.0.0.1".into()));
        assert_eq!(filled("{service}"), Ok("users".into()));
        assert_eq!(filled("{zone}{zone}"), Ok("eueu".into()));
        let (prefix, id) =
            (Pattern::parse("/$/inet/{h}").unwrap(), Path::parse("/$/inet/10.0.0.1/80").unwrap());
        for text in ["{h}", "10.0.0.{h}", "fe80::{h}"] {
            assert!(CommonName::parse(text, Some(&prefix)).is_ok(), "{text}");
        }
        let host = CommonName::parse("{h}", Some(&prefix)).unwrap();
        assert_eq!(host.fill(&prefix.matches(&id).unwrap()), "10.0.0.1");
        assert_eq!(filled("{host}.example.org"), Err("`prefix` has no {host}".into()));
        assert_eq!(CommonName::parse("{x}.org", None), Err("`prefix` has no {x}".into()));
        for odd in ["a b", "a/b", "*.example.org", "a..b"] {
            assert_eq!(filled(odd), Err(format!("`{odd}` cannot be the name of a server")));
        }
        assert_eq!(filled("a{"), Err("`a{` has a brace too many".into()));
    }
}
