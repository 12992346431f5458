//! One end of a connection: plain or encrypted, packed by lz4 or not, cut into frames or into bare messages.

use crate::{lz4, walk};
use bytes::{Buf, Bytes, BytesMut};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ServerConfig};
use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

/// The name that a server's certificate must have.
pub const NAME: &str = "localhost";
/// Longest frame taken.
pub const MAX_FRAME: usize = 64 << 20;

/// How messages are carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// A length, then a message.
    Framed,
    /// Messages back to back.
    Buffered,
    /// A length, then a header section and a message.
    Header,
    /// Framed, with a header struct before each message.
    TTwitter,
    /// Mux.
    Mux,
}

/// A socket, encrypted or not.
pub enum Io {
    /// As it is.
    Tcp(TcpStream),
    /// Encrypted.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Io {
    fn tcp(&self) -> &TcpStream {
        match self {
            Self::Tcp(tcp) => tcp,
            Self::Tls(tls) => tls.get_ref().0,
        }
    }
}

impl AsyncRead for Io {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        match self.get_mut() {
            Self::Tcp(tcp) => Pin::new(tcp).poll_read(cx, buf),
            Self::Tls(tls) => Pin::new(tls).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Io {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        match self.get_mut() {
            Self::Tcp(tcp) => Pin::new(tcp).poll_write(cx, bytes),
            Self::Tls(tls) => Pin::new(tls).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        match self.get_mut() {
            Self::Tcp(tcp) => Pin::new(tcp).poll_flush(cx),
            Self::Tls(tls) => Pin::new(tls).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        match self.get_mut() {
            Self::Tcp(tcp) => Pin::new(tcp).poll_shutdown(cx),
            Self::Tls(tls) => Pin::new(tls).poll_shutdown(cx),
        }
    }
}

/// What has been read and not yet taken.
#[derive(Default)]
pub struct Inward {
    packed: BytesMut,
    plain: BytesMut,
    lz4: bool,
}

impl Inward {
    /// Reads more; an end of the stream is an error.
    ///
    /// # Errors
    /// The end of the stream, and bytes that are not packed as they should be.
    pub async fn fill(&mut self, io: &mut (impl AsyncRead + Unpin)) -> Result<()> {
        let into = if self.lz4 { &mut self.packed } else { &mut self.plain };
        if io.read_buf(into).await? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        if self.lz4 {
            lz4::decompress(&mut self.packed, &mut self.plain).ok_or_else(|| strange("no LZ4 block"))?;
        }
        Ok(())
    }

    /// What is there.
    pub fn peek(&self) -> &[u8] {
        &self.plain
    }

    /// The content of the next frame, or in [`Dialect::Buffered`] the next message; `None` while it is not all there.
    ///
    /// # Errors
    /// A frame that is too long.
    pub fn take(&mut self, dialect: Dialect) -> Result<Option<Bytes>> {
        if dialect == Dialect::Buffered {
            let end = walk::end(&Bytes::copy_from_slice(&self.plain));
            return Ok(end.map(|end| self.plain.split_to(end).freeze()));
        }
        let Some(mut head) = self.plain.get(..4) else { return Ok(None) };
        let length = head.get_u32() as usize;
        if length > MAX_FRAME {
            return Err(strange("a frame that is too long"));
        }
        if self.plain.len() < 4 + length {
            return Ok(None);
        }
        self.plain.advance(4);
        Ok(Some(self.plain.split_to(length).freeze()))
    }
}

/// One end of a connection.
pub struct Link {
    /// The socket.
    pub io: Io,
    /// What came in by it.
    pub inward: Inward,
    /// Whether what goes out is packed.
    pub packs: bool,
    /// Whether it goes out byte by byte.
    pub drips: bool,
}

impl Link {
    /// A socket that is open.
    pub fn new(tcp: TcpStream) -> Self {
        // Small frames must not wait for each other; if this fails they only do.
        let _ = tcp.set_nodelay(true);
        Self { io: Io::Tcp(tcp), inward: Inward::default(), packs: false, drips: false }
    }

    /// Connects.
    ///
    /// # Errors
    /// Those of the socket.
    pub async fn connect(addr: SocketAddr) -> Result<Self> {
        TcpStream::connect(addr).await.map(Self::new)
    }

    /// Makes a TLS handshake as a client; the server must be [`NAME`].
    ///
    /// # Errors
    /// Those of the handshake, and bytes that came before it.
    pub async fn connect_tls(self, config: &Arc<ClientConfig>) -> Result<Self> {
        let tcp = self.bare()?;
        let name = ServerName::try_from(NAME).map_err(|_| strange("no name"))?;
        let tls = TlsConnector::from(Arc::clone(config)).connect(name, tcp).await?;
        Ok(Self { io: Io::Tls(Box::new(tls.into())), inward: Inward::default(), packs: false, drips: false })
    }

    /// Makes a TLS handshake as a server.
    ///
    /// # Errors
    /// Those of the handshake, and bytes that came before it.
    pub async fn accept_tls(self, config: &Arc<ServerConfig>) -> Result<Self> {
        let tcp = self.bare()?;
        let tls = TlsAcceptor::from(Arc::clone(config)).accept(tcp).await?;
        Ok(Self { io: Io::Tls(Box::new(tls.into())), inward: Inward::default(), packs: false, drips: false })
    }

    fn bare(self) -> Result<TcpStream> {
        match self.io {
            Io::Tcp(tcp) if self.inward.plain.is_empty() => Ok(tcp),
            _ => Err(strange("bytes before the TLS handshake")),
        }
    }

    /// From now on both directions are packed.
    pub fn pack(&mut self) {
        self.packs = true;
        self.inward.lz4 = true;
        std::mem::swap(&mut self.inward.packed, &mut self.inward.plain);
    }

    /// Writes bytes.
    ///
    /// # Errors
    /// Those of the socket.
    pub async fn send(&mut self, bytes: &[u8]) -> Result<()> {
        match self.drips {
            true => drip(&mut self.io, bytes, self.packs).await,
            false => send(&mut self.io, bytes, self.packs).await,
        }
    }

    /// The next frame or message.
    ///
    /// # Errors
    /// The end of the stream, and what cannot be read.
    pub async fn next(&mut self, dialect: Dialect) -> Result<Bytes> {
        loop {
            if let Some(next) = self.inward.take(dialect)? {
                return Ok(next);
            }
            self.inward.fill(&mut self.io).await?;
        }
    }

    /// Ends the connection by a reset.
    pub fn reset(self) {
        // A connection that is gone needs none.
        let _ = self.io.tcp().set_zero_linger();
    }
}

/// Writes bytes one by one: each is a segment, and where there are any a record and a block.
///
/// # Errors
/// Those of the socket.
pub async fn drip(io: &mut (impl AsyncWrite + Unpin), bytes: &[u8], pack: bool) -> Result<()> {
    for byte in bytes {
        send(io, &[*byte], pack).await?;
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// Writes bytes, packed or not.
///
/// # Errors
/// Those of the socket.
pub async fn send(io: &mut (impl AsyncWrite + Unpin), bytes: &[u8], pack: bool) -> Result<()> {
    if pack {
        io.write_all(&lz4::compress(bytes)).await?;
    } else {
        io.write_all(bytes).await?;
    }
    io.flush().await
}

/// A fault of the peer.
pub fn strange(text: &'static str) -> Error {
    Error::new(ErrorKind::InvalidData, text)
}
