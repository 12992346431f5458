//! Services that answer `echo(1: string)` as fast as can be.

use super::{ARGUMENT, CALL, FIELD_ID, Proto};
use bytes::BytesMut;
use muxgate_rpc::io::{ReadBuffer, poll_write_all};
use muxgate_wire::mux::frame::next_frame;
use muxgate_wire::mux::limits::MAX_FRAME;
use muxgate_wire::mux::message::Status;
use muxgate_wire::mux::server::{Request, ServerConfig, ServerEvent, ServerSession};
use muxgate_wire::thrift::framing;
use std::future::poll_fn;
use std::io;
use std::task::Poll;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

/// Bytes asked for by one read.
const CHUNK: usize = 64 << 10;

/// Serves until the listener fails.
///
/// # Errors
/// Those of the listener.
pub async fn serve(listener: TcpListener, proto: Proto) -> io::Result<()> {
    loop {
        let (io, _) = listener.accept().await?;
        io.set_nodelay(true)?;
        tokio::spawn(async move {
            let served = match proto {
                Proto::Framed => framed(io).await,
                Proto::Mux => mux(io).await,
            };
            // A caller that is gone is no error; it is the caller that looks at what it got.
            if let Err(error) = served
                && error.kind() == io::ErrorKind::InvalidData
            {
                eprintln!("backend: {error}");
            }
        });
    }
}

async fn framed(mut io: TcpStream) -> io::Result<()> {
    let mut read = ReadBuffer::new(CHUNK);
    loop {
        // The answer is the call with two bytes changed, so it is written from where it was read.
        while framing::needed(read.bytes(), framing::DEFAULT_MAX_FRAME) == 0 {
            let whole = read.bytes().first_chunk().map_or(0, |len| u32::from_be_bytes(*len) as usize);
            let mut frame = read.bytes_mut().split_to(framing::LENGTH_BYTES + whole);
            answer(&mut frame[framing::LENGTH_BYTES..])?;
            io.write_all(&frame).await?;
        }
        let missing = framing::needed(read.bytes(), framing::DEFAULT_MAX_FRAME);
        if poll_fn(|cx| read.poll_fill(&mut io, cx, missing)).await? == 0 {
            return Ok(());
        }
    }
}

async fn mux(mut io: TcpStream) -> io::Result<()> {
    let mut session = ServerSession::<()>::new(ServerConfig::default());
    let mut read = ReadBuffer::new(CHUNK);
    loop {
        let got = poll_fn(|cx| {
            if let Poll::Ready(Err(error)) = poll_write_all(&mut io, cx, session.outbox_mut()) {
                return Poll::Ready(Err(error));
            }
            read.poll_fill(&mut io, cx, 0)
        });
        if got.await? == 0 {
            return Ok(());
        }
        while let Some(frame) = next_frame(read.bytes_mut(), MAX_FRAME).map_err(invalid)? {
            let event = session.receive(frame, Duration::ZERO).map_err(invalid)?;
            if let ServerEvent::Dispatch { call, request: Request::Tdispatch(request) } = event {
                let mut reply = BytesMut::from(&request.body[..]);
                answer(&mut reply)?;
                session.reply(call, Status::Ok, |_| {}, reply.freeze());
            }
        }
    }
}

/// Turns a call of `echo` into its reply.
///
/// # Errors
/// When it is no such call.
pub fn answer(message: &mut [u8]) -> io::Result<()> {
    let argument = CALL.len() + 4;
    if !message.starts_with(CALL) || message.get(argument..argument + ARGUMENT.len()) != Some(ARGUMENT) {
        return Err(invalid("not a call of echo"));
    }
    message[3] = 2;
    message[FIELD_ID + 1] = 0;
    Ok(())
}

fn invalid(error: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}
