//! TLS around any test peer, in both directions: a port that encrypts what comes, and one that decrypts it. So every
//! caller and every backend of this crate speaks TLS without knowing.

use crate::certs::Issued;
use parking_lot::Mutex;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// A port in front of a peer. Dropped, it closes all its connections.
pub struct Tunnel {
    addr: SocketAddr,
    seen: Arc<Seen>,
    _tasks: JoinSet<()>,
}

/// What tests want to know.
struct Seen {
    /// Names that callers asked for (SNI); empty for none.
    names: Mutex<Vec<String>>,
    /// Certificates that were shown, in DER: the first of each chain.
    shown: Mutex<Vec<Vec<u8>>>,
    /// Errors of handshakes and connections.
    errors: watch::Sender<Vec<String>>,
}

/// How to encrypt.
#[derive(Clone, Debug)]
pub struct ClientSide {
    /// Authorities that are believed, in PEM.
    pub trust: String,
    /// The name that is asked for, and that the certificate must have.
    pub name: String,
    /// The certificate to show.
    pub shows: Option<Issued>,
    /// Versions that are offered.
    pub versions: &'static [&'static SupportedProtocolVersion],
}

impl ClientSide {
    /// Believes an authority, asks for a name, shows nothing.
    pub fn new(trust: &str, name: &str) -> Self {
        Self { trust: trust.into(), name: name.into(), shows: None, versions: rustls::ALL_VERSIONS }
    }

    /// Shows a certificate.
    #[must_use]
    pub fn showing(mut self, issued: &Issued) -> Self {
        self.shows = Some(issued.clone());
        self
    }

    /// What connects so.
    ///
    /// # Panics
    /// If what was given is no PEM.
    pub fn connector(&self) -> TlsConnector {
        TlsConnector::from(self.config())
    }

    /// The same for who makes connections by itself.
    ///
    /// # Panics
    /// If what was given is no PEM.
    pub fn config(&self) -> Arc<ClientConfig> {
        let verifier = WebPkiServerVerifier::builder_with_provider(roots(&self.trust), provider());
        let verifier: Arc<dyn ServerCertVerifier> = verifier.build().expect("authorities");
        let builder = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(self.versions)
            .expect("versions")
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        Arc::new(match &self.shows {
            None => builder.with_no_client_auth(),
            Some(issued) => {
                let (chain, key) = pair(issued);
                builder.with_client_auth_cert(chain, key).expect("a pair")
            }
        })
    }
}

/// How to decrypt.
#[derive(Clone, Debug)]
pub struct ServerSide {
    /// The certificate that is shown.
    pub shows: Issued,
    /// Authorities of whom callers must show a certificate, in PEM.
    pub clients: Option<String>,
}

impl ServerSide {
    /// Shows a certificate, asks for none.
    pub fn new(issued: &Issued) -> Self {
        Self { shows: issued.clone(), clients: None }
    }

    /// Callers must show a certificate of this authority.
    #[must_use]
    pub fn for_clients_of(mut self, pem: &str) -> Self {
        self.clients = Some(pem.into());
        self
    }

    /// The same for who takes connections by itself.
    ///
    /// # Panics
    /// If what was given is no PEM.
    pub fn config(&self) -> Arc<ServerConfig> {
        let builder = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(rustls::ALL_VERSIONS)
            .expect("versions");
        let builder = match &self.clients {
            None => builder.with_no_client_auth(),
            Some(pem) => builder.with_client_cert_verifier(
                WebPkiClientVerifier::builder_with_provider(roots(pem), provider())
                    .build()
                    .expect("authorities"),
            ),
        };
        let (chain, key) = pair(&self.shows);
        Arc::new(builder.with_single_cert(chain, key).expect("a pair"))
    }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn roots(pem: &str) -> Arc<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        roots.add(certificate.expect("PEM")).expect("an authority");
    }
    Arc::new(roots)
}

fn pair(issued: &Issued) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let chain =
        CertificateDer::pem_slice_iter(issued.certificate.as_bytes()).map(|c| c.expect("PEM")).collect();
    (chain, PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).expect("a key"))
}

impl Tunnel {
    /// A port for plain callers in front of a server that speaks TLS.
    ///
    /// # Panics
    /// If there is no free port.
    pub async fn encrypt(to: SocketAddr, side: &ClientSide) -> Self {
        let connector = side.connector();
        let name = ServerName::try_from(side.name.clone()).expect("a name");
        Self::open(move |mut plain, seen| {
            let (connector, name) = (connector.clone(), name.clone());
            async move {
                let Ok(io) = TcpStream::connect(to).await else { return };
                let _ = io.set_nodelay(true);
                match connector.connect(name, io).await {
                    Ok(mut tls) => {
                        seen.note(tls.get_ref().1.peer_certificates());
                        seen.pass(&mut plain, &mut tls).await;
                    }
                    Err(error) => seen.failed(error),
                }
            }
        })
        .await
    }

    /// A port for callers that speak TLS in front of a plain server.
    ///
    /// # Panics
    /// If there is no free port.
    pub async fn decrypt(to: SocketAddr, side: &ServerSide) -> Self {
        let acceptor = TlsAcceptor::from(side.config());
        Self::open(move |io, seen| {
            let acceptor = acceptor.clone();
            async move {
                match acceptor.accept(io).await {
                    Ok(mut tls) => {
                        seen.note(tls.get_ref().1.peer_certificates());
                        seen.names.lock().push(tls.get_ref().1.server_name().unwrap_or_default().into());
                        let Ok(mut plain) = TcpStream::connect(to).await else { return };
                        let _ = plain.set_nodelay(true);
                        seen.pass(&mut plain, &mut tls).await;
                    }
                    Err(error) => seen.failed(error),
                }
            }
        })
        .await
    }

    async fn open<F>(serve: impl Fn(TcpStream, Arc<Seen>) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let addr = listener.local_addr().expect("an address");
        let seen = Arc::new(Seen {
            names: Mutex::default(),
            shown: Mutex::default(),
            errors: watch::Sender::default(),
        });
        let mut tasks = JoinSet::new();
        let shared = Arc::clone(&seen);
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((io, _)) = listener.accept().await {
                let _ = io.set_nodelay(true);
                connections.spawn(serve(io, Arc::clone(&shared)));
            }
        });
        Self { addr, seen, _tasks: tasks }
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The names that callers have asked for, in order.
    pub fn names(&self) -> Vec<String> {
        self.seen.names.lock().clone()
    }

    /// The certificates that peers have shown, in DER.
    pub fn shown(&self) -> Vec<Vec<u8>> {
        self.seen.shown.lock().clone()
    }

    /// Waits for the first error of a handshake or a connection.
    pub async fn error(&self) -> String {
        let mut errors = self.seen.errors.subscribe();
        let found = errors.wait_for(|errors| !errors.is_empty()).await.expect("it is held");
        found[0].clone()
    }
}

impl Seen {
    fn note(&self, chain: Option<&[CertificateDer<'_>]>) {
        self.shown.lock().extend(chain.and_then(|chain| chain.first()).map(|first| first.to_vec()));
    }

    fn failed(&self, error: std::io::Error) {
        self.errors.send_modify(|errors| errors.push(error.to_string()));
    }

    async fn pass<T: AsyncRead + AsyncWrite + Unpin>(&self, plain: &mut TcpStream, tls: &mut T) {
        if let Err(error) = copy_bidirectional(plain, tls).await {
            self.failed(error);
        }
    }
}
