//! TLS on connections, from callers and to services, by rustls with its ring provider, which is always named: what the
//! process has as its default is nobody's business here.
//!
//! [`ServerTls`] and [`ClientTls`] are made from PEM files ([`ServerFiles`], [`ClientFiles`]) and follow them: a change is
//! seen within a few seconds and holds for new connections, a change that makes no sense is logged and leaves what was.
//! Errors say which check failed, whose certificate it was, and which file is concerned.

mod client;
mod error;
mod files;
mod identity;
mod own;
mod reload;
mod server;
mod verify;

#[cfg(test)]
mod tests;

pub use client::{ClientFiles, ClientTls, Trust};
pub(crate) use error::tls_error;
pub use error::{Cause, TlsError};
pub use files::{FileError, Role};
pub use identity::Identity;
pub use reload::{LOOK_EVERY, Reloading};
pub use rustls::pki_types::ServerName;
pub use server::{ClientAuth, ServerFiles, ServerTls};
pub use tokio_rustls::{TlsStream, client::TlsStream as ClientStream, server::TlsStream as ServerStream};

use rustls::SupportedProtocolVersion;
use rustls::crypto::{CryptoProvider, ring};
use std::sync::Arc;

/// Versions of the protocol that may be agreed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Versions {
    /// TLS 1.2 and 1.3.
    #[default]
    All,
    /// TLS 1.2 alone.
    Tls12,
    /// TLS 1.3 alone.
    Tls13,
}

static TLS12: [&SupportedProtocolVersion; 1] = [&rustls::version::TLS12];
static TLS13: [&SupportedProtocolVersion; 1] = [&rustls::version::TLS13];

impl Versions {
    fn list(self) -> &'static [&'static SupportedProtocolVersion] {
        match self {
            Self::All => rustls::ALL_VERSIONS,
            Self::Tls12 => &TLS12,
            Self::Tls13 => &TLS13,
        }
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}
