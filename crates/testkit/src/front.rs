//! A port in front of an HTTP server, which passes on, or answers every request with an error in its place.

use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How long a request may take to come.
const LIMIT: Duration = Duration::from_secs(10);

/// The port. Dropping it closes everything.
pub struct Front {
    addr: SocketAddr,
    status: watch::Sender<Option<u16>>,
    _tasks: JoinSet<()>,
}

impl Front {
    /// A free port of 127.0.0.1 in front of `to`; it passes on.
    ///
    /// # Panics
    /// If there is no free port.
    pub async fn start(to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let addr = listener.local_addr().expect("an address");
        let status = watch::Sender::new(None);
        let (mut tasks, now) = (JoinSet::new(), status.subscribe());
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((io, _)) = listener.accept().await {
                connections.spawn(serve(io, to, now.clone()));
            }
        });
        Self { addr, status, _tasks: tasks }
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Every request is answered with this status from now on; what is open is cut.
    pub fn answer(&self, status: u16) {
        self.status.send_replace(Some(status));
    }

    /// Everything is passed on again.
    pub fn pass(&self) {
        self.status.send_replace(None);
    }
}

async fn serve(mut io: TcpStream, to: SocketAddr, mut status: watch::Receiver<Option<u16>>) {
    let now = *status.borrow_and_update();
    match now {
        Some(status) => drop(timeout(LIMIT, refuse(&mut io, status)).await),
        None => {
            let Ok(mut there) = TcpStream::connect(to).await else { return };
            tokio::select! {
                _ = copy_bidirectional(&mut io, &mut there) => {}
                _ = status.changed() => {}
            }
        }
    }
}

/// Reads one request, so that its sender is not disturbed, and answers it.
async fn refuse(io: &mut TcpStream, status: u16) -> std::io::Result<()> {
    let mut read = BufReader::new(io);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if read.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let line = line.trim().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line.is_empty() {
            break;
        }
    }
    read.read_exact(&mut vec![0; length]).await?;
    let answer = format!("HTTP/1.1 {status} No\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno");
    read.get_mut().write_all(answer.as_bytes()).await
}
