//! The rewriting namers under `/$/io.buoyant.*`: pure functions from path to path, negative when the form does not fit.
//!
//! The `Pfx` forms take one element first, which is put in front of the result.

use super::system_prefix;
use crate::names::namer::{Answer, Lookup, Namer};
use muxgate_wire::name::Path;

/// What is done with an element.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// `host:80` to `/host/80`.
    HostPort,
    /// `host:80` to `/80/host`.
    PortHost,
    /// `shop.example.net` to `/net/example/shop`.
    Domain,
    /// `shop.example.net` to `/shop`; the domain is the element before all others.
    Subdomain,
    /// `GET` to nothing.
    Method,
    /// `shop.example.net` to nothing.
    Host,
}

/// One rewriting namer.
pub struct Rewrite {
    prefix: Path,
    form: Form,
    prefixed: bool,
}

/// All of them.
pub fn all() -> impl Iterator<Item = Rewrite> {
    let forms = [
        ("hostportPfx", Form::HostPort),
        ("porthostPfx", Form::PortHost),
        ("http.domainToPathPfx", Form::Domain),
        ("http.domainToPath", Form::Domain),
        ("http.subdomainOfPfx", Form::Subdomain),
        ("http.subdomainOf", Form::Subdomain),
        ("http.anyMethodPfx", Form::Method),
        ("http.anyMethod", Form::Method),
        ("http.anyHostPfx", Form::Host),
        ("http.anyHost", Form::Host),
    ];
    forms.into_iter().map(|(name, form)| Rewrite {
        prefix: system_prefix(&format!("io.buoyant.{name}")),
        form,
        prefixed: name.ends_with("Pfx"),
    })
}

impl Namer for Rewrite {
    fn prefix(&self) -> &Path {
        &self.prefix
    }

    fn lookup(&self, path: &Path) -> Lookup {
        Lookup::Fixed(Answer::path(self.rewrite(&path.skip(self.prefix.len()))))
    }
}

impl Rewrite {
    fn rewrite(&self, path: &Path) -> Option<Path> {
        let mut elements = path.raw_elements();
        let domain = match self.form {
            Form::Subdomain => String::from_utf8(elements.next()?.into_owned()).ok()?,
            _ => String::new(),
        };
        let before = if self.prefixed { Some(elements.next()?.into_owned()) } else { None };
        let element = String::from_utf8(elements.next()?.into_owned()).ok()?;
        let parts = self.form.parts(&element, &domain)?;
        let used = 1 + usize::from(self.prefixed) + usize::from(!domain.is_empty());
        let front = before.as_deref().into_iter().chain(parts.iter().map(|part| part.as_bytes()));
        Some(Path::from_elements(front).ok()?.concat(&path.skip(used)))
    }
}

impl Form {
    fn parts<'a>(self, element: &'a str, domain: &str) -> Option<Vec<&'a str>> {
        match self {
            Self::HostPort | Self::PortHost => {
                let (host, port) = element.split_once(':')?;
                let fits = !host.is_empty() && is_port(port);
                let in_order =
                    if matches!(self, Self::HostPort) { vec![host, port] } else { vec![port, host] };
                fits.then_some(in_order)
            }
            Self::Domain => {
                let labels: Vec<_> = element.split('.').rev().collect();
                labels.iter().all(|label| !label.is_empty()).then_some(labels)
            }
            Self::Subdomain => {
                let host = element.split_once(':').map_or(element, |(host, _)| host);
                let sub = host.strip_suffix(domain)?.strip_suffix('.')?;
                (!sub.is_empty()).then(|| vec![sub])
            }
            Self::Method => {
                let capitals = !element.is_empty() && element.bytes().all(|b| b.is_ascii_uppercase());
                capitals.then(Vec::new)
            }
            Self::Host => {
                let of_host = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b':' | b'_' | b'-');
                (!element.is_empty() && element.bytes().all(of_host)).then(Vec::new)
            }
        }
    }
}

/// A number, or a DNS label in small letters; so no second colon.
fn is_port(text: &str) -> bool {
    let inner = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    inner && !text.is_empty() && !text.starts_with('-') && !text.ends_with('-')
}
