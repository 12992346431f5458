//! An authority for tests, and what it has signed: one certificate, for every name that a test may ask for.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig, crypto::ring};
use std::path::Path;
use std::sync::Arc;

/// The names of the certificate.
pub const NAMES: [&str; 3] = ["localhost", "gateway.test", "service.test"];

/// An authority with one certificate.
pub struct Authority {
    ca: CertifiedIssuer<'static, KeyPair>,
    cert: rcgen::Certificate,
    key: KeyPair,
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Authority {
    /// A new one.
    ///
    /// # Panics
    /// If keys cannot be made.
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key"));
        let ca = ca.expect("an authority");
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(NAMES.map(str::to_owned)).expect("names");
        let cert = params.signed_by(&key, &ca).expect("a certificate");
        Self { ca, cert, key }
    }

    /// Writes `ca.pem`, `cert.pem` and `key.pem`.
    ///
    /// # Panics
    /// If that fails.
    pub fn write(&self, folder: &Path) {
        for (name, text) in
            [("ca.pem", self.ca.pem()), ("cert.pem", self.cert.pem()), ("key.pem", self.key.serialize_pem())]
        {
            std::fs::write(folder.join(name), text).expect("a file");
        }
    }

    /// A server that shows the certificate.
    ///
    /// # Panics
    /// If the certificate cannot be used.
    pub fn server(&self) -> Arc<ServerConfig> {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![self.cert.der().clone()], key);
        Arc::new(config.expect("a certificate and its key"))
    }

    /// A client that trusts the authority.
    ///
    /// # Panics
    /// If the certificate cannot be used.
    pub fn client(&self) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.ca.der().clone()).expect("an authority");
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Arc::new(config)
    }
}

/// The first of [`NAMES`], as a client asks for it.
///
/// # Panics
/// Never: it is a name.
pub fn name() -> ServerName<'static> {
    ServerName::try_from(NAMES[0]).expect("a name")
}
