//! A service that answers at once, and large calls with a large reply that was made before.

use super::pace::Pace;
use super::{LARGE, LIMIT};
use bytes::{Buf, Bytes, BytesMut};
use muxgate_rpc::io::{ReadBuffer, keep_short};
use muxgate_wire::mux::frame::next_frame;
use muxgate_wire::mux::limits::Limits;
use muxgate_wire::mux::message::Status;
use muxgate_wire::mux::server::{Request, ServerConfig, ServerEvent, ServerSession};
use std::future::poll_fn;
use std::io;
use std::task::Poll;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

/// A Thrift message of `echo` with one string: a call with its argument, or a reply with its result.
pub fn message(reply: bool, seqid: u32, size: usize) -> Bytes {
    let (kind, field) = if reply { (2, 0) } else { (1, 1) };
    let mut out = BytesMut::with_capacity(size + 32);
    out.extend_from_slice(&[0x80, 1, 0, kind]);
    out.extend_from_slice(b"\0\0\0\x04echo");
    out.extend_from_slice(&seqid.to_be_bytes());
    out.extend_from_slice(&[11, 0, field]);
    out.extend_from_slice(&(size as u32).to_be_bytes());
    out.resize(out.len() + size, b'x');
    out.extend_from_slice(&[0]);
    out.freeze()
}

/// The sequence id of such a message.
pub fn seqid(message: &[u8]) -> u32 {
    message.get(12..16).and_then(|id| id.try_into().ok()).map_or(0, u32::from_be_bytes)
}

/// The sequence id of all large calls.
pub const LARGE_ID: u32 = u32::MAX;

/// Serves until the listener fails, writing so many million bits a second to each connection (0: no bound).
///
/// # Errors
/// Those of the listener.
pub async fn serve(listener: TcpListener, megabits: u32) -> io::Result<()> {
    let large = message(true, LARGE_ID, LARGE);
    loop {
        let (io, _) = listener.accept().await?;
        io.set_nodelay(true)?;
        keep_short(&io);
        tokio::spawn(session(io, Pace::new(megabits), large.clone()));
    }
}

async fn session(mut io: TcpStream, mut pace: Pace, large: Bytes) -> io::Result<()> {
    let limits = Limits::DEFAULT.with_message_bytes(LIMIT);
    let config = ServerConfig { limits, max_queued_bytes: 4 * LIMIT, ..ServerConfig::default() };
    let mut session = ServerSession::<()>::new(config);
    let mut read = ReadBuffer::new(64 << 10);
    loop {
        let got = poll_fn(|cx| {
            let outbox = session.outbox_mut();
            let wrote = match outbox.has_remaining() {
                true => pace.poll_write(&mut io, cx, outbox)?.is_ready(),
                false => false,
            };
            match read.poll_fill(&mut io, cx, 0) {
                Poll::Pending if wrote => Poll::Ready(Ok(None)),
                filled => filled.map_ok(Some),
            }
        });
        if got.await? == Some(0) {
            return Ok(());
        }
        while let Some(frame) = next_frame(read.bytes_mut(), LIMIT as u32).map_err(io::Error::other)? {
            let event = session.receive(frame, Duration::ZERO).map_err(io::Error::other)?;
            if let ServerEvent::Dispatch { call, request: Request::Tdispatch(request) } = event {
                let size = request.body.len();
                let reply = match size > LARGE {
                    true => large.clone(),
                    false => message(true, seqid(&request.body), size - 24),
                };
                session.reply(call, Status::Ok, |_| {}, reply);
            }
        }
    }
}
