//! Services that speak framed compact Thrift, for what translation costs.

use bytes::BytesMut;
use muxgate_rpc::io::ReadBuffer;
use muxgate_wire::thrift::{Form, Kind, framing, peek, write_head};
use std::future::poll_fn;
use std::io;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

/// Bytes asked for by one read.
const CHUNK: usize = 64 << 10;

/// Serves framed compact Thrift until the listener fails.
///
/// # Errors
/// Those of the listener.
pub async fn serve(listener: TcpListener) -> io::Result<()> {
    loop {
        let (io, _) = listener.accept().await?;
        io.set_nodelay(true)?;
        tokio::spawn(echo(io));
    }
}

/// The header of the first field of a call, a string, and that of a result.
const COMPACT_ARGUMENT: u8 = 0x18;
const COMPACT_RESULT: [u8; 2] = [8, 0];

async fn echo(mut io: TcpStream) -> io::Result<()> {
    let mut read = ReadBuffer::new(CHUNK);
    loop {
        while let Some(call) =
            framing::next_frame(read.bytes_mut(), framing::DEFAULT_MAX_FRAME).map_err(invalid)?
        {
            let head = peek(&call).map_err(invalid)?;
            let [COMPACT_ARGUMENT, argument @ ..] = &call[head.body_at..] else {
                return Err(invalid("not a call of echo"));
            };
            let mut reply = BytesMut::new();
            write_head(Form::Compact, Kind::Reply, head.name_in(&call), head.seqid, &mut reply);
            reply.extend_from_slice(&COMPACT_RESULT);
            reply.extend_from_slice(argument);
            let mut frame = BytesMut::new();
            framing::write_frame(&reply, &mut frame).map_err(invalid)?;
            io.write_all(&frame).await?;
        }
        let missing = framing::needed(read.bytes(), framing::DEFAULT_MAX_FRAME);
        if poll_fn(|cx| read.poll_fill(&mut io, cx, missing)).await? == 0 {
            return Ok(());
        }
    }
}

fn invalid(error: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}
