//! Certificates made on the spot, handshakes over memory.

mod files;
mod handshake;
mod reload;

use super::*;
use muxgate_testkit::certs::{Authority, Files};
use rustls::pki_types::ServerName;
use std::path::PathBuf;
use tempfile::TempDir;
use tokio::io::DuplexStream;

/// An authority, a folder, and a server's certificate in it.
struct World {
    folder: TempDir,
    authority: Authority,
    bundle: PathBuf,
    server: Files,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new("Test Authority");
        let bundle = authority.write(folder.path(), "ca");
        let server = authority.issue("web", &["web.example.org", "127.0.0.1"]).write(folder.path(), "server");
        Self { folder, authority, bundle, server }
    }

    fn server_files(&self) -> ServerFiles {
        ServerFiles {
            certificate: self.server.certificate.clone(),
            key: self.server.key.clone(),
            intermediates: None,
            clients: ClientAuth::Off,
            versions: Versions::All,
        }
    }

    fn client_files(&self) -> ClientFiles {
        ClientFiles {
            trust: Trust::Authorities(self.bundle.clone()),
            certificate: None,
            versions: Versions::All,
        }
    }

    fn client_showing(&self, files: Files) -> ClientFiles {
        ClientFiles { certificate: Some((files.certificate, files.key)), ..self.client_files() }
    }
}

fn server(files: ServerFiles) -> ServerTls {
    ServerTls::start(files, LOOK_EVERY, Arc::new(())).unwrap()
}

fn client(files: ClientFiles, name: &str) -> ClientTls {
    ClientTls::start(files, LOOK_EVERY, Arc::new(())).unwrap().named(name)
}

type Accepted = Result<(ServerStream<DuplexStream>, Option<Identity>), TlsError>;
type Connected = Result<ClientStream<DuplexStream>, TlsError>;

/// A handshake between the two.
async fn meet(server: &ServerTls, client: &ClientTls) -> (Accepted, Connected) {
    let (left, right) = tokio::io::duplex(64 << 10);
    tokio::join!(server.accept(left), client.connect(right))
}

/// A named pipe that nobody writes into.
fn pipe(folder: &std::path::Path) -> PathBuf {
    let path = folder.join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    path
}
