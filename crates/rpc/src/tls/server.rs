//! TLS towards callers.

use super::files::{Content, FileError, Role};
use super::own::{self, Whose};
use super::reload::{Live, Reloading, Source};
use super::verify::{Remembering, remembering};
use super::{Identity, TlsError, Versions, provider};
use crate::io::Io;
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Whether callers show certificates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum ClientAuth {
    /// They are not asked.
    #[default]
    Off,
    /// They are asked; one that is shown must be of these authorities.
    Offered(PathBuf),
    /// They must show one of these authorities.
    Required(PathBuf),
}

impl ClientAuth {
    fn authorities(&self) -> Option<&PathBuf> {
        match self {
            Self::Off => None,
            Self::Offered(path) | Self::Required(path) => Some(path),
        }
    }
}

/// What a listener's TLS is made of. All files are PEM.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServerFiles {
    /// Our certificate; those of its issuers may follow it.
    pub certificate: PathBuf,
    /// Its key: PKCS#8, PKCS#1 or SEC1, not encrypted.
    pub key: PathBuf,
    /// Certificates of its issuers, if they are in a file of their own.
    pub intermediates: Option<PathBuf>,
    /// Whether callers show certificates.
    pub clients: ClientAuth,
    /// Versions that may be agreed on.
    pub versions: Versions,
}

impl ServerFiles {
    /// Reads the files and checks them.
    ///
    /// # Errors
    /// The first file that cannot be used.
    pub fn check(&self) -> Result<(), FileError> {
        self.load().map(|_| ())
    }
}

impl Source for ServerFiles {
    type Made = ServerConfig;

    fn files(&self) -> Vec<(Role, PathBuf)> {
        let mut files = vec![(Role::Certificate, self.certificate.clone()), (Role::Key, self.key.clone())];
        files.extend(self.intermediates.clone().map(|path| (Role::Intermediates, path)));
        files.extend(self.clients.authorities().cloned().map(|path| (Role::Authorities, path)));
        files
    }

    fn make(&self, contents: &[Content]) -> Result<ServerConfig, FileError> {
        let pair = Pair::read(contents)?;
        let whose = pair.whose;
        let builder = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(self.versions.list())
            .map_err(|error| whose.wrong(&error))?;
        let builder = match contents.iter().find(|content| content.role == Role::Authorities) {
            None => builder.with_no_client_auth(),
            Some(content) => {
                let roots = Arc::new(content.authorities()?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider());
                let verifier = match self.clients {
                    ClientAuth::Required(_) => verifier,
                    ClientAuth::Off | ClientAuth::Offered(_) => verifier.allow_unauthenticated(),
                };
                let verifier = verifier.build().map_err(|error| content.wrong(error.to_string()))?;
                builder
                    .with_client_cert_verifier(Arc::new(Remembering(verifier as Arc<dyn ClientCertVerifier>)))
            }
        };
        builder.with_single_cert(pair.chain, pair.key).map_err(|error| whose.wrong(&error))
    }
}

/// A certificate with its key, for either side.
pub(super) struct Pair<'a> {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
    pub(super) whose: Whose<'a>,
}

impl<'a> Pair<'a> {
    /// From the files that [`Source::files`] begins with: certificate, key, and perhaps intermediates.
    pub(super) fn read(contents: &'a [Content]) -> Result<Self, FileError> {
        let [certificate, key_file, others @ ..] = contents else {
            return Err(FileError {
                role: Role::Certificate,
                path: PathBuf::new(),
                text: "there is no certificate with a key".into(),
            });
        };
        let mut chain = certificate.certificates()?;
        let mut kind = String::new();
        if let Some(first) = chain.first() {
            own::check(certificate, first)?;
            kind = own::kind(first);
        }
        for content in others.iter().filter(|content| content.role == Role::Intermediates) {
            chain.extend(content.certificates()?);
        }
        Ok(Self { chain, key: key_file.key()?, whose: Whose { certificate, key: key_file, kind } })
    }
}

/// TLS towards callers. Cheap to clone; follows its files until the last clone is dropped.
#[derive(Clone)]
pub struct ServerTls(Arc<Live<ServerFiles>>);

impl ServerTls {
    /// Reads the files, and looks at them again every `look_every`. Must be called on a runtime.
    ///
    /// # Errors
    /// The first file that cannot be used.
    pub fn start(
        files: ServerFiles,
        look_every: Duration,
        events: Arc<dyn Reloading>,
    ) -> Result<Self, FileError> {
        Live::start(files, look_every, events).map(Self)
    }

    /// Does the handshake as the server. The identity is that of a certificate which was verified; none if the caller
    /// showed none. The time that it takes is for the caller to bound.
    ///
    /// # Errors
    /// Says which check failed, and whose certificate it was.
    pub async fn accept<T: Io>(&self, io: T) -> Result<(TlsStream<T>, Option<Identity>), TlsError> {
        let acceptor = TlsAcceptor::from(self.0.now());
        let (accepted, seen) = remembering(acceptor.accept(io)).await;
        let stream = accepted
            .map_err(|error| TlsError::of(&error, seen, self.0.source().clients.authorities().cloned()))?;
        let (_, connection) = stream.get_ref();
        let shown = connection.peer_certificates().and_then(|chain| chain.first());
        let identity = shown.and_then(Identity::read);
        Ok((stream, identity))
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ServerTls").field(self.0.source()).finish()
    }
}

/// Equal if they are made of the same files.
impl PartialEq for ServerTls {
    fn eq(&self, other: &Self) -> bool {
        self.0.source() == other.0.source()
    }
}
