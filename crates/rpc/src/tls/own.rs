//! Our own certificate and its key: whether others can believe the one, and whether we can sign with the other.

use super::error::in_words;
use super::files::{Content, FileError};
use super::identity::Identity;
use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};
use x509_parser::public_key::PublicKey;
use x509_parser::time::ASN1Time;

/// Kinds of keys that ring signs with.
const KEYS: &str = "RSA of 2048 to 4096 bits, ECDSA on P-256 or P-384, and Ed25519";

/// Checks that a certificate is one that others can believe now.
///
/// # Errors
/// Names the subject, and the version or the time for which it holds.
pub(super) fn check(content: &Content, certificate: &CertificateDer<'_>) -> Result<(), FileError> {
    let Ok((_, parsed)) = X509Certificate::from_der(certificate) else {
        return Err(content.wrong("the first block is not a certificate inside"));
    };
    let who = Identity::of(&parsed);
    if parsed.version() != X509Version::V3 {
        return Err(content.wrong(format!(
            "the certificate of {who} is X.509 version {}, and must be version 3 with a subjectAltName: openssl makes \
             it so if it signs with -extfile",
            parsed.version().0.saturating_add(1)
        )));
    }
    let (validity, now) = (parsed.validity(), ASN1Time::now());
    let what = match (now < validity.not_before, now > validity.not_after) {
        (true, _) => "does not hold yet",
        (_, true) => "has expired",
        _ => return Ok(()),
    };
    Err(content.wrong(format!(
        "the certificate of {who} {what}: it holds from {} to {}",
        validity.not_before, validity.not_after
    )))
}

/// The files of a certificate and its key, for what is wrong with the pair.
pub(super) struct Whose<'a> {
    pub(super) certificate: &'a Content,
    pub(super) key: &'a Content,
    /// What kind of key the certificate is for.
    pub(super) kind: String,
}

impl Whose<'_> {
    /// Why rustls does not take the pair, and which of the files is to blame.
    pub(super) fn wrong(&self, error: &rustls::Error) -> FileError {
        match error {
            rustls::Error::InconsistentKeys(_) => {
                self.key.wrong("the key does not belong to the certificate")
            }
            rustls::Error::InvalidCertificate(error) => {
                self.certificate.wrong(format!("the certificate cannot be used: {}", in_words(error)))
            }
            // All that is said about a key that cannot be read: of another kind, or damaged.
            rustls::Error::General(_) => self.key.wrong(format!(
                "the key cannot be used: it is damaged or of a kind that is not taken (the certificate is for {}); \
                 taken are {KEYS}",
                self.kind
            )),
            other => self.key.wrong(format!("the key cannot be used: {other}")),
        }
    }
}

/// The kind of key that a certificate is for.
pub(super) fn kind(certificate: &CertificateDer<'_>) -> String {
    let Ok((_, parsed)) = X509Certificate::from_der(certificate) else { return "an unknown key".into() };
    let key = parsed.public_key();
    let curve = key.algorithm.parameters.as_ref().and_then(|curve| curve.as_oid().ok());
    match (key.parsed(), curve.map(|curve| curve.to_id_string())) {
        (Ok(PublicKey::RSA(key)), _) => format!("RSA of {} bits", key.key_size()),
        (Ok(PublicKey::EC(_)), Some(curve)) => match &*curve {
            "1.2.840.10045.3.1.7" => "ECDSA on P-256".into(),
            "1.3.132.0.34" => "ECDSA on P-384".into(),
            "1.3.132.0.35" => "ECDSA on P-521".into(),
            "1.3.132.0.10" => "ECDSA on secp256k1".into(),
            other => format!("ECDSA on the curve {other}"),
        },
        _ => match &*key.algorithm.algorithm.to_id_string() {
            "1.3.101.112" => "Ed25519".into(),
            "1.3.101.113" => "Ed448".into(),
            other => format!("a key of the kind {other}"),
        },
    }
}
