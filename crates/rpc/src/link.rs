//! A TCP connection, encrypted or not: one type for sessions that may be either, or become the other one in between.

use crate::events::Events;
use crate::io::{Io, Prefixed, keep_short};
use crate::tls::{ClientTls, Identity, ServerTls, TlsError, TlsStream};
use crate::{Failure, Why};
use std::fmt;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A connection. What is not encrypted costs one branch more than its socket.
pub enum Link<T: Io = TcpStream> {
    /// As it is.
    Tcp(T),
    /// Encrypted; boxed, so that plain connections do not carry the room for it.
    Tls(Box<Secured<T>>),
}

impl<T: Io> Link<T> {
    /// Encrypts a connection as its server. `first` is what has been read of it already: the beginning of the handshake.
    /// The identity is that of the caller's certificate, if it showed one.
    ///
    /// # Errors
    /// Those of the handshake; the connection is gone.
    pub async fn accept(
        io: T,
        first: bytes::Bytes,
        tls: &ServerTls,
    ) -> Result<(Self, Option<Identity>), TlsError> {
        let (stream, identity) = tls.accept(Prefixed::new(first, io)).await?;
        Ok((Self::Tls(Box::new(Secured(TlsStream::Server(stream)))), identity))
    }

    /// Encrypts a connection as its client.
    ///
    /// # Errors
    /// Those of the handshake; the connection is gone.
    pub async fn connect(io: T, tls: &ClientTls) -> Result<Self, TlsError> {
        let stream = tls.connect(Prefixed::new(bytes::Bytes::new(), io)).await?;
        Ok(Self::Tls(Box::new(Secured(TlsStream::Client(stream)))))
    }

    /// Whether it is encrypted.
    pub fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(_))
    }
}

impl Link {
    /// Connects to a service, and encrypts the connection if `tls` is there; both together take `within` at most.
    ///
    /// # Errors
    /// Why there is no connection; it is counted.
    pub async fn open(
        address: SocketAddr,
        tls: Option<&ClientTls>,
        within: Duration,
        events: &dyn Events,
    ) -> Result<Self, Failure> {
        let mut connected = false;
        let opening = async {
            let io = TcpStream::connect(address).await.map_err(|error| connect_failure(&error))?;
            io.set_nodelay(true).map_err(|error| connect_failure(&error))?;
            keep_short(&io);
            let Some(tls) = tls else { return Ok(Self::Tcp(io)) };
            connected = true;
            // Boxed, so that plain connections do not carry the room for this.
            Box::pin(Self::connect(io, tls)).await.map_err(|error| tls_failure(&error, events))
        };
        let opened = match timeout(within, opening).await {
            Ok(opened) => opened,
            Err(_) if connected => Err(tls_failure(&TlsError::slow(), events)),
            Err(_) => Err(connect_failure(&io::ErrorKind::TimedOut.into())),
        };
        opened.inspect_err(|_| events.connect_failed())
    }
}

fn connect_failure(error: &io::Error) -> Failure {
    Failure::new(Why::Connect, format!("cannot connect: {error}"))
}

fn tls_failure(error: &TlsError, events: &dyn Events) -> Failure {
    events.tls_failed(None, error);
    Failure::new(Why::Connect, format!("cannot connect by TLS: {error}"))
}

/// An encrypted connection. Dropped, it says that it ends (`close_notify`), as far as the socket takes it at once.
pub struct Secured<T: Io>(TlsStream<Prefixed<T>>);

impl<T: Io> Drop for Secured<T> {
    fn drop(&mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        let _ = Pin::new(&mut self.0).poll_shutdown(&mut cx);
    }
}

/// What TLS has to say about an error, in our words.
pub(crate) fn told(error: io::Error) -> io::Error {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match tls.map(|tls| TlsError::of_tls(tls, None)) {
        Some(told) => io::Error::new(error.kind(), told),
        None => error,
    }
}

impl<T: Io> AsyncRead for Link<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(io) => Pin::new(io).poll_read(cx, buf),
            Self::Tls(secured) => Pin::new(&mut secured.0).poll_read(cx, buf).map_err(told),
        }
    }
}

impl<T: Io> AsyncWrite for Link<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(io) => Pin::new(io).poll_write(cx, buf),
            Self::Tls(secured) => Pin::new(&mut secured.0).poll_write(cx, buf).map_err(told),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(io) => Pin::new(io).poll_write_vectored(cx, bufs),
            Self::Tls(secured) => Pin::new(&mut secured.0).poll_write_vectored(cx, bufs).map_err(told),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(io) => io.is_write_vectored(),
            Self::Tls(secured) => secured.0.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(io) => Pin::new(io).poll_flush(cx),
            Self::Tls(secured) => Pin::new(&mut secured.0).poll_flush(cx).map_err(told),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(io) => Pin::new(io).poll_shutdown(cx),
            Self::Tls(secured) => Pin::new(&mut secured.0).poll_shutdown(cx).map_err(told),
        }
    }
}

impl<T: Io> fmt::Debug for Link<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_tls() { "Link::Tls" } else { "Link::Tcp" })
    }
}
