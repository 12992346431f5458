//! Who a certificate says that a peer is.

use rustls::pki_types::CertificateDer;
use std::net::{Ipv4Addr, Ipv6Addr};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// Names of a certificate that are kept, at most.
const MAX_NAMES: usize = 100;

/// Characters of a subject or of one name that are kept, at most.
const MAX_TEXT: usize = 512;

/// Who a peer is, from a certificate that was verified. Without such a certificate there is no identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The distinguished name, such as `CN=web, O=Example`.
    pub subject: String,
    /// Alternative names, as they stand in the certificate: DNS names, URIs (SPIFFE ids), mail and IP addresses.
    pub names: Vec<String>,
}

impl Identity {
    /// Reads a certificate; none if it is not one.
    pub fn read(certificate: &CertificateDer<'_>) -> Option<Self> {
        let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
        Some(Self::of(&parsed))
    }

    pub(super) fn of(certificate: &X509Certificate<'_>) -> Self {
        let names = certificate.subject_alternative_name().ok().flatten();
        let names = names.map_or_else(Vec::new, |names| {
            names.value.general_names.iter().filter_map(name).take(MAX_NAMES).collect()
        });
        Self { subject: cut(&certificate.subject().to_string()), names }
    }
}

impl std::fmt::Display for Identity {
    /// The subject, or the first name of a certificate without one.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.subject.is_empty(), self.names.first()) {
            (false, _) => f.write_str(&self.subject),
            (true, Some(name)) => f.write_str(name),
            (true, None) => f.write_str("a certificate without any name"),
        }
    }
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(text) | GeneralName::URI(text) | GeneralName::RFC822Name(text) => {
            Some(cut(text))
        }
        GeneralName::IPAddress(bytes) => ip(bytes),
        _ => None,
    }
}

fn ip(bytes: &[u8]) -> Option<String> {
    let four = <[u8; 4]>::try_from(bytes).map(|bytes| Ipv4Addr::from(bytes).to_string());
    four.or_else(|_| <[u8; 16]>::try_from(bytes).map(|bytes| Ipv6Addr::from(bytes).to_string())).ok()
}

/// A peer's text, fit for a line of a log.
fn cut(text: &str) -> String {
    text.chars().take(MAX_TEXT).map(|c| if c.is_control() { '?' } else { c }).collect()
}
