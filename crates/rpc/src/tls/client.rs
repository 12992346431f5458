//! TLS towards services.

use super::files::{Content, FileError, Role};
use super::reload::{Live, Reloading, Source};
use super::server::Pair;
use super::verify::{Remembering, Unchecked, remembering};
use super::{TlsError, Versions, provider};
use crate::io::Io;
use rustls::ClientConfig;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::ServerName;
use std::fmt;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Whom we believe.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Trust {
    /// Certificates of these authorities, for the service's name.
    Authorities(PathBuf),
    /// Everybody: the connection is encrypted, to whomever it leads.
    Anybody,
}

/// What TLS to a service is made of. All files are PEM.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClientFiles {
    /// Whom we believe.
    pub trust: Trust,
    /// Our certificate and its key, for services that want one.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// Versions that may be agreed on.
    pub versions: Versions,
}

impl ClientFiles {
    /// Reads the files and checks them.
    ///
    /// # Errors
    /// The first file that cannot be used.
    pub fn check(&self) -> Result<(), FileError> {
        self.load().map(|_| ())
    }

    fn authorities(&self) -> Option<&PathBuf> {
        match &self.trust {
            Trust::Authorities(path) => Some(path),
            Trust::Anybody => None,
        }
    }
}

impl Source for ClientFiles {
    type Made = ClientConfig;

    fn files(&self) -> Vec<(Role, PathBuf)> {
        let mut files = Vec::new();
        if let Some((certificate, key)) = &self.certificate {
            files.extend([(Role::Certificate, certificate.clone()), (Role::Key, key.clone())]);
        }
        files.extend(self.authorities().cloned().map(|path| (Role::Authorities, path)));
        files
    }

    fn make(&self, contents: &[Content]) -> Result<ClientConfig, FileError> {
        let verifier: Arc<dyn ServerCertVerifier> =
            match contents.iter().find(|content| content.role == Role::Authorities) {
                None => Arc::new(Unchecked(provider())),
                Some(content) => {
                    let roots = Arc::new(content.authorities()?);
                    let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider())
                        .build()
                        .map_err(|error| content.wrong(error.to_string()))?;
                    Arc::new(Remembering(verifier as Arc<dyn ServerCertVerifier>))
                }
            };
        let no_versions = |error: rustls::Error| FileError {
            role: Role::Authorities,
            path: PathBuf::new(),
            text: error.to_string(),
        };
        let builder = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(self.versions.list())
            .map_err(no_versions)?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        if self.certificate.is_none() {
            return Ok(builder.with_no_client_auth());
        }
        let pair = Pair::read(contents)?;
        let whose = pair.whose;
        builder.with_client_auth_cert(pair.chain, pair.key).map_err(|error| whose.wrong(&error))
    }
}

/// TLS to services of one name. Cheap to clone; follows its files until the last clone is dropped.
#[derive(Clone)]
pub struct ClientTls {
    live: Arc<Live<ClientFiles>>,
    name: Name,
}

/// Whom the certificate must be for.
#[derive(Clone, Debug, PartialEq)]
enum Name {
    Nobody,
    Known(ServerName<'static>),
    /// A text that is no name: nobody can be found under it.
    Impossible(String),
}

impl ClientTls {
    /// Reads the files, and looks at them again every `look_every`. Must be called on a runtime. It has no name yet: see
    /// [`ClientTls::named`].
    ///
    /// # Errors
    /// The first file that cannot be used.
    pub fn start(
        files: ClientFiles,
        look_every: Duration,
        events: Arc<dyn Reloading>,
    ) -> Result<Self, FileError> {
        Ok(Self { live: Live::start(files, look_every, events)?, name: Name::Nobody })
    }

    /// The same files, for services of this name: it is asked for (SNI), unless it is an IP address, and what is shown
    /// must be for it. A text that is neither a host's name nor an address lets every handshake fail.
    #[must_use]
    pub fn named(&self, name: &str) -> Self {
        let known = ServerName::try_from(name.to_owned());
        let name = known.map_or_else(|_| Name::Impossible(name.to_owned()), Name::Known);
        Self { live: Arc::clone(&self.live), name }
    }

    /// Does the handshake as the client. The time that it takes is for the caller to bound.
    ///
    /// # Errors
    /// Says which check failed, and whose certificate it was.
    pub async fn connect<T: Io>(&self, io: T) -> Result<TlsStream<T>, TlsError> {
        // An address is never sent as a name, and this one is nobody's: without a name only those connect that believe
        // everybody.
        let name = match &self.name {
            Name::Nobody => ServerName::IpAddress(Ipv4Addr::UNSPECIFIED.into()),
            Name::Known(name) => name.clone(),
            Name::Impossible(text) => return Err(TlsError::no_name(text)),
        };
        let connector = TlsConnector::from(self.live.now());
        let (connected, seen) = remembering(connector.connect(name, io)).await;
        connected.map_err(|error| TlsError::of(&error, seen, self.live.source().authorities().cloned()))
    }
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTls").field("files", self.live.source()).field("name", &self.name).finish()
    }
}

/// Equal if they are made of the same files and ask for the same name.
impl PartialEq for ClientTls {
    fn eq(&self, other: &Self) -> bool {
        self.live.source() == other.live.source() && self.name == other.name
    }
}
