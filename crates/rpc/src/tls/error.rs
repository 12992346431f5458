//! Why a handshake failed, in words that lead to the mistake.

use super::verify::Seen;
use rustls::{AlertDescription as Alert, CertificateError, Error, InvalidMessage, PeerIncompatible};
use std::fmt;
use std::io;
use std::path::PathBuf;

/// The check that failed: a closed list, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The peer does not speak TLS.
    NotTls,
    /// The peer closed the connection, or it broke, before the handshake was done.
    Closed,
    /// No issuer of the peer's certificate is among the authorities.
    UnknownIssuer,
    /// The peer's certificate has expired.
    Expired,
    /// The peer's certificate does not hold yet.
    NotYetValid,
    /// The peer's certificate is for other names.
    Name,
    /// The peer's certificate is not good for another reason.
    BadCertificate,
    /// The peer showed no certificate.
    NoCertificate,
    /// There is no version, cipher or signature that both sides have.
    NothingInCommon,
    /// The peer did not like ours, and said so.
    Refused,
    /// The peer broke the protocol.
    Protocol,
    /// The handshake took too long.
    Slow,
    /// The peer spoke in clear where it must not.
    Plain,
    /// One side must encrypt, and the other will not.
    NotAgreed,
}

impl Cause {
    /// The cause as a label.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotTls => "not_tls",
            Self::Closed => "closed",
            Self::UnknownIssuer => "unknown_issuer",
            Self::Expired => "expired",
            Self::NotYetValid => "not_yet_valid",
            Self::Name => "name_mismatch",
            Self::BadCertificate => "bad_certificate",
            Self::NoCertificate => "no_certificate",
            Self::NothingInCommon => "nothing_in_common",
            Self::Refused => "refused_by_peer",
            Self::Protocol => "protocol",
            Self::Slow => "slow_handshake",
            Self::Plain => "plain_on_tls",
            Self::NotAgreed => "not_agreed",
        }
    }
}

/// A handshake that failed.
#[derive(Debug)]
pub struct TlsError(Box<Told>);

#[derive(Debug)]
struct Told {
    cause: Cause,
    text: String,
    subject: Option<String>,
    file: Option<PathBuf>,
}

impl TlsError {
    /// The check that failed.
    pub fn cause(&self) -> Cause {
        self.0.cause
    }

    /// Whose certificate the peer showed, if it showed one and that was what failed.
    pub fn subject(&self) -> Option<&str> {
        self.0.subject.as_deref()
    }

    /// The file of ours against which the peer was checked.
    pub fn file(&self) -> Option<&std::path::Path> {
        self.0.file.as_deref()
    }

    /// A handshake that was given up after too long a time.
    pub fn slow() -> Self {
        Self::new(Cause::Slow, "the TLS handshake took too long")
    }

    pub(super) fn no_name(text: &str) -> Self {
        Self::new(Cause::Name, format!("`{text}` cannot be the name of a server"))
    }

    /// A peer that spoke in clear where it must not.
    pub fn plain() -> Self {
        Self::new(Cause::Plain, "the peer speaks in clear, and must encrypt")
    }

    /// A handshake of Mux whose sides do not agree whether to encrypt.
    pub fn not_agreed() -> Self {
        Self::new(Cause::NotAgreed, "one side must encrypt, and the other will not")
    }

    fn new(cause: Cause, text: impl Into<String>) -> Self {
        Self(Box::new(Told { cause, text: text.into(), subject: None, file: None }))
    }

    /// From what the handshake ended with, the certificate that was seen, and the file with the authorities.
    pub(super) fn of(error: &io::Error, seen: Option<Seen>, authorities: Option<PathBuf>) -> Self {
        let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
        let Some(tls) = tls else { return Self::of_socket(error) };
        let mut told = Self::of_tls(tls, seen.as_ref());
        let checked = matches!(
            told.0.cause,
            Cause::UnknownIssuer | Cause::Expired | Cause::NotYetValid | Cause::Name | Cause::BadCertificate
        );
        if checked {
            told.0.subject = seen.map(|seen| seen.identity.to_string());
        }
        if told.0.cause == Cause::UnknownIssuer {
            told.0.file = authorities;
        }
        told
    }

    fn of_socket(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                Self::new(Cause::Closed, "the peer closed the connection during the TLS handshake")
            }
            _ => Self::new(Cause::Closed, format!("the connection broke during the TLS handshake: {error}")),
        }
    }

    /// Also for errors after the handshake: with TLS 1.3 a client learns only then that its certificate was refused.
    pub(crate) fn of_tls(error: &Error, seen: Option<&Seen>) -> Self {
        match error {
            Error::InvalidCertificate(error) => Self::of_certificate(error, seen),
            Error::NoCertificatesPresented => {
                Self::new(Cause::NoCertificate, "the peer showed no certificate, and must")
            }
            Error::AlertReceived(alert) => {
                Self::new(Cause::Refused, format!("the peer refused the TLS handshake: {}", said(*alert)))
            }
            Error::PeerIncompatible(what) => Self::new(Cause::NothingInCommon, incompatible(what)),
            Error::InvalidMessage(
                InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion,
            ) => Self::new(Cause::NotTls, "the peer does not speak TLS"),
            other => Self::new(Cause::Protocol, format!("the peer broke the TLS protocol: {other}")),
        }
    }

    fn of_certificate(error: &CertificateError, seen: Option<&Seen>) -> Self {
        use CertificateError as C;
        let until = seen.map_or_else(String::new, |seen| {
            format!(" (it holds from {} to {})", seen.not_before, seen.not_after)
        });
        match error {
            C::UnknownIssuer => {
                let issuer = seen.map_or("somebody", |seen| seen.issuer.as_str());
                Self::new(
                    Cause::UnknownIssuer,
                    format!("unknown issuer: it was issued by {issuer}, which is not among the authorities"),
                )
            }
            C::Expired | C::ExpiredContext { .. } => {
                Self::new(Cause::Expired, format!("it has expired{until}"))
            }
            C::NotValidYet | C::NotValidYetContext { .. } => {
                Self::new(Cause::NotYetValid, format!("it does not hold yet{until}"))
            }
            C::NotValidForNameContext { expected, .. } => {
                let names = seen.map_or(&[][..], |seen| &seen.identity.names);
                let names = match names.is_empty() {
                    true => "no names (alternative names count, not the common name)".to_string(),
                    false => names.join(", "),
                };
                let expected = expected.to_str();
                Self::new(Cause::Name, format!("it is not for {expected}, it has {names}"))
            }
            C::NotValidForName => Self::new(Cause::Name, "it is for other names"),
            C::InvalidPurpose | C::InvalidPurposeContext { .. } => {
                Self::new(Cause::BadCertificate, "it is for another purpose (extended key usage)")
            }
            C::Revoked => Self::new(Cause::BadCertificate, "it was revoked"),
            C::BadSignature => Self::new(
                Cause::BadCertificate,
                "its signature is wrong: an authority of the same name has another key",
            ),
            other => Self::new(Cause::BadCertificate, in_words(other)),
        }
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Told { text, subject, file, .. } = &*self.0;
        match subject {
            Some(subject) => write!(f, "the certificate of {subject} is refused: {text}")?,
            None => f.write_str(text)?,
        }
        match file {
            Some(file) => write!(f, " in {}", file.display()),
            None => Ok(()),
        }
    }
}

impl std::error::Error for TlsError {}

/// A failed handshake inside of a socket's error.
pub(crate) fn tls_error(error: &io::Error) -> Option<&TlsError> {
    error.get_ref()?.downcast_ref()
}

fn said(alert: Alert) -> String {
    let words = match alert {
        Alert::CertificateRequired => "it wants a certificate from us",
        Alert::UnknownCA => "it does not know the issuer of our certificate",
        Alert::CertificateExpired => "our certificate has expired",
        Alert::BadCertificate | Alert::CertificateUnknown | Alert::UnsupportedCertificate => {
            "it does not take our certificate"
        }
        Alert::CertificateRevoked => "our certificate was revoked",
        Alert::AccessDenied => "our certificate is good, but gives no access",
        Alert::UnrecognisedName => "it has no certificate for the name that was asked for",
        Alert::ProtocolVersion => "it speaks no version of TLS that we do",
        Alert::HandshakeFailure => "it found nothing that both sides have, or wants a certificate",
        Alert::InsufficientSecurity => "it wants stronger ciphers",
        Alert::DecryptError => "a signature was wrong",
        other => return format!("{other:?}"),
    };
    format!("{words} ({alert:?})")
}

fn incompatible(what: &PeerIncompatible) -> String {
    use PeerIncompatible as P;
    let words = match what {
        P::ServerDoesNotSupportTls12Or13
        | P::ServerTlsVersionIsDisabledByOurConfig
        | P::SupportedVersionsExtensionRequired
        | P::Tls12NotOffered
        | P::Tls12NotOfferedOrEnabled => "no common version of TLS",
        P::NoCipherSuitesInCommon => "no common cipher",
        P::NoKxGroupsInCommon | P::NamedGroupsExtensionRequired => "no common key exchange",
        P::NoSignatureSchemesInCommon | P::NoCertificateRequestSignatureSchemesInCommon => {
            "no common signature scheme"
        }
        other => return format!("the peer's TLS does not fit ours: {other:?}"),
    };
    format!("{words} ({what:?})")
}

/// An error about one of our own files, without what rustls puts in front.
pub(super) fn why(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(error) => in_words(error),
        other => other.to_string(),
    }
}

/// What is wrong with a certificate, where rustls has but a name for it.
pub(super) fn in_words(error: &CertificateError) -> String {
    let name = match error {
        CertificateError::Other(other) => other.to_string(),
        other => format!("{other:?}"),
    };
    // What follows the name are details in Rust's own notation.
    let end = name.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(name.len());
    match name.get(..end).unwrap_or_default() {
        "CaUsedAsEndEntity" => {
            "it is the certificate of an authority (basicConstraints CA:TRUE) and cannot stand for a peer".into()
        }
        "UnsupportedCertVersion" => {
            "it is not X.509 version 3 (version 1 has no subjectAltName; openssl makes version 3 if it signs with \
             -extfile)"
                .into()
        }
        "" => name,
        name => format!("it is no good: {}", spelled(name.trim_end_matches("Context"))),
    }
}

/// `UnsupportedCriticalExtension` as `unsupported critical extension`.
fn spelled(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 8);
    for (at, c) in name.chars().enumerate() {
        if at > 0 && c.is_ascii_uppercase() {
            words.push(' ');
        }
        words.push(c.to_ascii_lowercase());
    }
    words
}
