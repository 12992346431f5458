//! Reading and writing a socket: what both protocols share.

use bytes::buf::Chain;
use bytes::{Buf, Bytes, BytesMut};
use socket2::{SockRef, TcpKeepalive};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_util::io::{poll_read_buf, poll_write_buf};

/// A connection's byte stream: TCP, TLS over TCP, or memory in tests.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Io for T {}

/// Bytes that the kernel takes from us before it could send them. What lies there is in order: a small message waits until
/// all of it is sent, however finely it is woven before.
const UNSENT: u32 = 64 << 10;

/// Keeps short what waits in the kernel of a connection that carries many calls at once. How much may be on its way is left
/// to the kernel, which knows how long the way is.
pub fn keep_short(io: &TcpStream) {
    // Without it calls are slower to pass each other, and that is all.
    let _ = SockRef::from(io).set_tcp_notsent_lowat(UNSENT);
}

/// A connection on which nothing moves is probed after so long, and again so often.
const PROBED_AFTER: Duration = Duration::from_secs(60);
const PROBED_EVERY: Duration = Duration::from_secs(10);
/// Probes without an answer that end it.
const PROBES: u32 = 3;

/// Lets the kernel find out about peers that are gone without a word, or whose last word we do not read because too much of
/// what came before it waits.
pub fn keep_alive(io: &TcpStream) {
    let probes = TcpKeepalive::new().with_time(PROBED_AFTER).with_interval(PROBED_EVERY).with_retries(PROBES);
    // Without it only their silence lasts longer.
    let _ = SockRef::from(io).set_tcp_keepalive(&probes);
}

/// Room below which a new read buffer is made rather than the tail of the old one used.
const LEAST_ROOM: usize = 2048;

/// Bytes that a read asks for until it is seen that more come at once.
const FIRST_CHUNK: usize = 4 << 10;

/// Bytes read and not yet taken as frames. Holds no memory while its connection is idle, and grows with what comes: a
/// read that was filled to the brim makes the next one twice as large.
#[derive(Debug)]
pub struct ReadBuffer {
    bytes: BytesMut,
    chunk: usize,
    largest: usize,
}

impl ReadBuffer {
    /// A buffer that asks for at most `largest` bytes a read.
    pub fn new(largest: usize) -> Self {
        Self { bytes: BytesMut::new(), chunk: FIRST_CHUNK.min(largest), largest }
    }

    /// Changes how many bytes a read asks for at most: the protocol is known now.
    pub fn set_largest(&mut self, largest: usize) {
        self.largest = largest;
    }

    /// What was read and not yet taken; frames are split off its front.
    pub fn bytes_mut(&mut self) -> &mut BytesMut {
        &mut self.bytes
    }

    /// What was read and not yet taken.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Takes all that was read and not yet taken: it belongs to another stream.
    pub fn take(&mut self) -> BytesMut {
        std::mem::take(&mut self.bytes)
    }

    /// Gives memory back if nothing is waiting in it. Called when a connection has no call in flight: with calls in
    /// flight the tail of the buffer is still good for the next read.
    pub fn release(&mut self) {
        if self.bytes.is_empty() {
            self.bytes = BytesMut::new();
        }
    }

    /// Reads once; `missing` is how many bytes the frame that has begun still needs. Ready(0) is the end of input.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn poll_fill(
        &mut self,
        io: &mut (impl AsyncRead + Unpin),
        cx: &mut Context<'_>,
        missing: usize,
    ) -> Poll<io::Result<usize>> {
        let room = self.bytes.capacity() - self.bytes.len();
        if room < LEAST_ROOM || room < missing.min(MOST_RESERVED) {
            self.bytes.reserve(missing.clamp(self.chunk, MOST_RESERVED.max(self.chunk)));
        }
        let read = poll_read_buf(Pin::new(io), cx, &mut self.bytes);
        if self.bytes.len() == self.bytes.capacity() {
            self.chunk = (self.chunk * 2).min(self.largest);
        }
        read
    }
}

/// A connection of which some bytes have been read already: they come first, again.
#[derive(Debug)]
pub struct Prefixed<T> {
    first: Bytes,
    io: T,
}

impl<T: Io> Prefixed<T> {
    /// `first`, and then what `io` brings.
    pub fn new(first: Bytes, io: T) -> Self {
        Self { first, io }
    }

    /// What brings the rest.
    pub fn get_ref(&self) -> &T {
        &self.io
    }
}

impl<T: Io> AsyncRead for Prefixed<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.first.is_empty() {
            return Pin::new(&mut self.io).poll_read(cx, buf);
        }
        let count = self.first.len().min(buf.remaining());
        buf.put_slice(&self.first.split_to(count));
        if self.first.is_empty() {
            // Gives the memory back that it was part of.
            self.first = Bytes::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: Io> AsyncWrite for Prefixed<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

/// Most that a declared frame length makes us reserve before its bytes are there: a length is never believed.
const MOST_RESERVED: usize = 256 << 10;

/// Writes all of `buf`, in vectored writes, and flushes: TLS may hold bytes back that it has taken.
///
/// # Errors
/// Those of the socket; a peer that takes nothing more is `WriteZero`.
pub async fn write_all(io: &mut (impl AsyncWrite + Unpin), buf: &mut impl Buf) -> io::Result<()> {
    poll_fn(|cx| poll_write_all(io, cx, buf)).await
}

/// Writes all of `buf`, in vectored writes, and flushes; Pending when the socket takes no more now.
///
/// # Errors
/// Those of the socket; a peer that takes nothing more is `WriteZero`.
pub fn poll_write_all(
    io: &mut (impl AsyncWrite + Unpin),
    cx: &mut Context<'_>,
    buf: &mut impl Buf,
) -> Poll<io::Result<()>> {
    while buf.has_remaining() {
        if ready!(poll_write(io, cx, buf))? == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
    }
    Pin::new(io).poll_flush(cx)
}

/// Writes once: plainly what lies in one piece, which is cheaper, and else vectored.
///
/// # Errors
/// Those of the socket.
pub fn poll_write(
    io: &mut (impl AsyncWrite + Unpin),
    cx: &mut Context<'_>,
    buf: &mut impl Buf,
) -> Poll<io::Result<usize>> {
    let piece = buf.chunk();
    if piece.len() < buf.remaining() {
        return poll_write_buf(Pin::new(io), cx, buf);
    }
    let count = ready!(Pin::new(io).poll_write(cx, piece))?;
    buf.advance(count);
    Poll::Ready(Ok(count))
}

/// Bodies below this are copied behind their header, so that both leave in one piece: cheaper than a vectored write.
const COPIED: usize = 1024;

/// A frame for [`poll_write_all`]: the parts of its header, and its body behind them or apart.
pub fn frame(header: &[&[u8]], body: Bytes) -> Chain<BytesMut, Bytes> {
    let copied = if body.len() < COPIED { body.len() } else { 0 };
    let room = header.iter().map(|part| part.len()).sum::<usize>() + copied;
    let mut front = BytesMut::with_capacity(room);
    header.iter().for_each(|part| front.extend_from_slice(part));
    if copied == body.len() {
        front.extend_from_slice(&body);
        return front.chain(Bytes::new());
    }
    front.chain(body)
}
