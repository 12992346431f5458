//! A connection whose byte stream may change in the middle: right behind the handshake TLS begins, or compression, or
//! both, compressed bytes inside TLS (mux spec, section 18).
//!
//! A connection that stays as it is pays one branch a read or write.

mod lz4;
#[cfg(test)]
mod tests;

use crate::Link;
use crate::io::{Io, Prefixed};
use crate::tls::{ClientTls, Identity, ServerTls};
use bytes::{Bytes, BytesMut};
use lz4::Lz4;
use muxgate_wire::mux::handshake::Agreed;
use std::fmt;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection whatever it is made of.
pub type BoxIo = Box<dyn Io>;

/// The handshake by which a connection becomes another one.
pub type Securing = Pin<Box<dyn Future<Output = io::Result<Secured>> + Send>>;

/// What that gives.
pub struct Secured {
    /// The encrypted connection.
    pub io: BoxIo,
    /// Who the peer is, if it showed a certificate.
    pub identity: Option<Identity>,
}

/// Begins TLS on a connection that has been used in clear.
pub trait Upgrade: fmt::Debug + Send + Sync + 'static {
    /// Makes the handshake on `io`.
    fn upgrade(&self, io: BoxIo) -> Securing;
}

impl Upgrade for ServerTls {
    fn upgrade(&self, io: BoxIo) -> Securing {
        let tls = self.clone();
        Box::pin(async move {
            let (link, identity) = Link::accept(io, Bytes::new(), &tls).await.map_err(io::Error::other)?;
            Ok(Secured { io: Box::new(link), identity })
        })
    }
}

impl Upgrade for ClientTls {
    fn upgrade(&self, io: BoxIo) -> Securing {
        let tls = self.clone();
        Box::pin(async move {
            let link = Link::connect(io, &tls).await.map_err(io::Error::other)?;
            Ok(Secured { io: Box::new(link), identity: None })
        })
    }
}

/// How far a session's stream is in its change.
#[derive(Clone, Copy, Debug)]
pub(super) enum Switch {
    /// There is none to come.
    No,
    /// It is due once everything is written.
    Agreed(Agreed),
    /// It is being made.
    Changing,
}

impl Switch {
    /// Whether the session has to wait for it.
    pub(super) fn is_due(self) -> bool {
        !matches!(self, Self::No)
    }
}

/// What becomes of a stream.
pub(super) struct Change {
    /// Begins TLS on it.
    pub tls: Option<Arc<dyn Upgrade>>,
    /// Whether what we read is `lz4` from now on.
    pub decompress: bool,
    /// Whether what we write is.
    pub compress: bool,
}

/// See the module's text.
pub(super) enum Stream<T> {
    /// As it came.
    Plain(T),
    /// Changed.
    Other(BoxIo),
    /// In its TLS handshake.
    Changing(Securing),
    /// It could not be changed.
    Broken,
}

impl<T: Io> Stream<T> {
    /// Begins the change: nothing is written or read in clear any more. `read` is what was read already beyond the last
    /// message in clear. [`Self::poll_changed`] tells when it is done.
    pub(super) fn change(&mut self, read: BytesMut, change: Change) {
        let io: BoxIo = match std::mem::replace(self, Self::Broken) {
            Self::Plain(io) => Box::new(io),
            Self::Other(io) => io,
            Self::Changing(_) | Self::Broken => return,
        };
        let Change { tls, decompress, compress } = change;
        let io: BoxIo = Box::new(Prefixed::new(read.freeze(), io));
        let pack = move |io| -> BoxIo {
            if decompress || compress { Box::new(Lz4::new(io, decompress, compress)) } else { io }
        };
        *self = match tls {
            None => Self::Other(pack(io)),
            Some(tls) => {
                let securing = tls.upgrade(io);
                Self::Changing(Box::pin(async move {
                    let Secured { io, identity } = securing.await?;
                    Ok(Secured { io: pack(io), identity })
                }))
            }
        };
    }

    /// Ready once the stream is one that can be read and written; with the peer's identity if it has just shown one.
    ///
    /// # Errors
    /// Those of the TLS handshake.
    pub(super) fn poll_changed(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Identity>>> {
        let Self::Changing(securing) = self else { return Poll::Ready(Ok(None)) };
        let secured = ready!(securing.as_mut().poll(cx));
        let (next, told) = match secured {
            Ok(Secured { io, identity }) => (Self::Other(io), Ok(identity)),
            Err(error) => (Self::Broken, Err(error)),
        };
        *self = next;
        Poll::Ready(told)
    }
}

fn broken<T>() -> Poll<io::Result<T>> {
    Poll::Ready(Err(io::ErrorKind::NotConnected.into()))
}

impl<T: Io> AsyncRead for Stream<T> {
    #[inline]
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_read(cx, buf),
            Self::Other(io) => Pin::new(io).poll_read(cx, buf),
            Self::Changing(_) | Self::Broken => broken(),
        }
    }
}

impl<T: Io> AsyncWrite for Stream<T> {
    #[inline]
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_write(cx, buf),
            Self::Other(io) => Pin::new(io).poll_write(cx, buf),
            Self::Changing(_) | Self::Broken => broken(),
        }
    }

    #[inline]
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_write_vectored(cx, bufs),
            Self::Other(io) => Pin::new(io).poll_write_vectored(cx, bufs),
            Self::Changing(_) | Self::Broken => broken(),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(io) => io.is_write_vectored(),
            Self::Other(io) => io.is_write_vectored(),
            Self::Changing(_) | Self::Broken => false,
        }
    }

    #[inline]
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_flush(cx),
            Self::Other(io) => Pin::new(io).poll_flush(cx),
            Self::Changing(_) | Self::Broken => broken(),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_shutdown(cx),
            Self::Other(io) => Pin::new(io).poll_shutdown(cx),
            Self::Changing(_) | Self::Broken => broken(),
        }
    }
}
