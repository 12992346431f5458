//! A connection of which one direction or both are `lz4` blocks.

use bytes::{Buf, BytesMut};
use muxgate_wire::mux::lz4::{BLOCK, Encoder, MAX_BLOCK, Next, next_block, put_end};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::io::poll_read_buf;

/// Bytes that a read asks for at least.
const LEAST_READ: usize = 4 << 10;
/// Most that a declared length makes us reserve before its bytes are there: a length is never believed.
const MOST_RESERVED: usize = 64 << 10;

/// See the module's text. Holds no buffers while nothing is on its way.
pub(super) struct Lz4<T> {
    io: T,
    reading: Option<Reading>,
    writing: Option<Writing>,
}

#[derive(Default)]
struct Reading {
    /// Blocks, the first one not whole.
    blocks: BytesMut,
    /// What the last block held and nobody has read yet: bounded by the size of a block.
    plain: BytesMut,
    /// The stream has said that it ends.
    ended: bool,
}

#[derive(Default)]
struct Writing {
    encoder: Encoder,
    /// A block on its way out.
    block: BytesMut,
    /// The end of the stream is on its way out, or is written.
    ended: bool,
}

impl<T> Lz4<T> {
    /// Decompresses what is read from `io`, or compresses what is written to it, or both.
    pub(super) fn new(io: T, decompress: bool, compress: bool) -> Self {
        Self { io, reading: decompress.then(Reading::default), writing: compress.then(Writing::default) }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Lz4<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Self { io, reading, .. } = self.get_mut();
        match reading {
            None => Pin::new(io).poll_read(cx, buf),
            Some(reading) => reading.poll_read(io, cx, buf),
        }
    }
}

impl Reading {
    fn poll_read(
        &mut self,
        io: &mut (impl AsyncRead + Unpin),
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.plain.is_empty() && !self.ended {
            match next_block(&mut self.blocks, &mut self.plain, MAX_BLOCK).map_err(invalid)? {
                Next::Block => {}
                Next::End => self.ended = true,
                Next::Missing(count) => {
                    self.blocks.reserve(count.clamp(LEAST_READ, MOST_RESERVED));
                    let read = poll_read_buf(Pin::new(&mut *io), cx, &mut self.blocks);
                    if read.is_pending() && self.blocks.is_empty() {
                        self.blocks = BytesMut::new();
                    }
                    if ready!(read)? == 0 {
                        let whole = self.blocks.is_empty();
                        self.ended = true;
                        return Poll::Ready(match whole {
                            true => Ok(()),
                            false => Err(io::ErrorKind::UnexpectedEof.into()),
                        });
                    }
                }
            }
        }
        let count = self.plain.len().min(buf.remaining());
        buf.put_slice(self.plain.get(..count).unwrap_or_default());
        self.plain.advance(count);
        if self.plain.is_empty() {
            self.plain = BytesMut::new();
        }
        Poll::Ready(Ok(()))
    }
}

fn invalid(error: muxgate_wire::mux::lz4::Lz4Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl Writing {
    /// Writes the block that is on its way.
    fn poll_block(
        &mut self,
        io: &mut (impl AsyncWrite + Unpin),
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while !self.block.is_empty() {
            match ready!(Pin::new(&mut *io).poll_write(cx, &self.block))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.block.advance(count),
            }
        }
        self.block = BytesMut::new();
        Poll::Ready(Ok(()))
    }

    /// Takes up to a block's worth of bytes, once the block before is written.
    fn poll_write(
        &mut self,
        io: &mut (impl AsyncWrite + Unpin),
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_block(io, cx))?;
        let count = match slices.iter().find(|slice| !slice.is_empty()) {
            None => return Poll::Ready(Ok(0)),
            Some(slice) if slice.len() >= BLOCK || slices.len() == 1 => {
                let count = slice.len().min(BLOCK);
                self.encoder.encode(slice.get(..count).unwrap_or_default(), &mut self.block);
                count
            }
            Some(_) => {
                let mut gathered = BytesMut::new();
                for slice in slices {
                    let room = BLOCK - gathered.len();
                    gathered.extend_from_slice(slice.get(..room.min(slice.len())).unwrap_or_default());
                }
                self.encoder.encode(&gathered, &mut self.block);
                gathered.len()
            }
        };
        // The bytes are ours now; what the socket does not take at once is written by the next write or flush.
        match self.poll_block(io, cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Ready(Ok(count)),
        }
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Lz4<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let Self { io, writing, .. } = self.get_mut();
        match writing {
            None => Pin::new(io).poll_write(cx, buf),
            Some(writing) => writing.poll_write(io, cx, &[IoSlice::new(buf)]),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Self { io, writing, .. } = self.get_mut();
        match writing {
            None => Pin::new(io).poll_write_vectored(cx, bufs),
            Some(writing) => writing.poll_write(io, cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.writing.is_some() || self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { io, writing, .. } = self.get_mut();
        if let Some(writing) = writing {
            ready!(writing.poll_block(io, cx))?;
        }
        Pin::new(io).poll_flush(cx)
    }

    /// Says that the stream ends, then ends the one below.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { io, writing, .. } = self.get_mut();
        if let Some(writing) = writing {
            ready!(writing.poll_block(io, cx))?;
            if !writing.ended {
                writing.ended = true;
                put_end(&mut writing.block);
                ready!(writing.poll_block(io, cx))?;
            }
        }
        Pin::new(io).poll_shutdown(cx)
    }
}
