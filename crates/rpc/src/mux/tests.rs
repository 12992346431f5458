//! Both ends of a session over loopback, and streams that change in the middle.

mod leases;

use super::*;
use crate::events::Uncounted;
use crate::io::{Io, ReadBuffer};
use crate::{Drain, Failure, Payload, Pressure, Request, Response, Serve, Status};
use bytes::{Bytes, BytesMut};
use muxgate_wire::mux::client::ClientConfig;
use muxgate_wire::mux::frame::{Frame, Tag, kind, next_frame};
use muxgate_wire::mux::handshake::{Compression, CompressionLevel, Offer, PROBE, TlsLevel};
use muxgate_wire::mux::lz4;
use muxgate_wire::mux::message::{Init, Message, Rdispatch, Tdispatch};
use muxgate_wire::mux::server::ServerConfig;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

/// Answers with what it is asked.
struct Echo;

impl Serve for Echo {
    async fn call(&self, request: &mut Request) -> Result<Response, Failure> {
        Ok(Response { body: request.body.bytes().clone(), ..Response::nothing() })
    }

    fn status(&self) -> Status {
        Status::Open
    }
}

/// In place of TLS: both sides say hello, then all bytes are turned over.
#[derive(Debug)]
struct Turned;

const HELLO: &[u8] = b"hello";

impl Upgrade for Turned {
    fn upgrade(&self, mut io: BoxIo) -> Securing {
        Box::pin(async move {
            io.write_all(HELLO).await?;
            let mut theirs = [0; HELLO.len()];
            io.read_exact(&mut theirs).await?;
            match theirs == HELLO {
                true => Ok(Secured { io: Box::new(Over(io)), identity: None }),
                false => Err(std::io::Error::other("no hello")),
            }
        })
    }
}

struct Over<T>(T);

impl<T: Io> AsyncRead for Over<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.0).poll_read(cx, buf);
        buf.filled_mut()[before..].iter_mut().for_each(|byte| *byte = !*byte);
        read
    }
}

impl<T: Io> AsyncWrite for Over<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, &turned(buf))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

fn turned(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| !byte).collect()
}

fn offer(tls: TlsLevel, level: CompressionLevel) -> Offer {
    Offer { tls, compression: Compression::both(level), ..Offer::default() }
}

fn params(offer: Offer) -> ServerParams {
    ServerParams {
        max_frame: 16 << 20,
        max_queued: 16 << 20,
        stall: Duration::from_secs(10),
        idle: None,
        rules: crate::Rules::default(),
        session: ServerConfig { offer, ..ServerConfig::default() },
        pressure: Pressure::default(),
        upgrade: Some(Arc::new(Turned)),
    }
}

/// A server with this offer, for one connection after another.
async fn server(offer: Offer) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let params = params(offer);
    tokio::spawn(async move {
        while let Ok((io, peer)) = listener.accept().await {
            let read = ReadBuffer::new(100);
            serve(io, read, Some(peer), Arc::new(Echo), &params, &Drain::default(), Arc::new(Uncounted))
                .await;
        }
    });
    address
}

fn client(address: SocketAddr, offer: Offer) -> Client {
    let params = ClientParams {
        address,
        tls: None,
        connect: Duration::from_secs(10),
        max_frame: 16 << 20,
        declared_fails: false,
        life: None,
        session: ClientConfig { offer, ..ClientConfig::default() },
        upgrade: Some(Arc::new(Turned)),
    };
    Client::new(params, Arc::new(Uncounted))
}

/// A call of something that is not Thrift, whose answer is not looked at.
async fn call(client: &Client, size: usize) -> Result<Bytes, Failure> {
    let body = Payload::opaque(Bytes::from(vec![b'A'; size]));
    let mut request = Request::new(body, Instant::now(), None);
    client.call(&mut request).await.map(|response| response.body)
}

#[tokio::test]
async fn sessions_agree_and_go_over() {
    use CompressionLevel::{Accepted, Desired, Off};
    for (tls, theirs, ours) in [
        (TlsLevel::Off, Off, Off),
        (TlsLevel::Off, Accepted, Desired),
        (TlsLevel::Required, Off, Desired),
        (TlsLevel::Required, Desired, Desired),
    ] {
        let address = server(offer(tls, theirs)).await;
        let client = client(address, offer(tls, ours));
        // The first is held back while the stream changes; the long one is cut into pieces.
        for size in [1, 3_000_000, 10] {
            assert_eq!(call(&client, size).await.unwrap().len(), size, "{tls:?} {theirs:?} {ours:?}");
        }
    }
}

#[tokio::test]
async fn sessions_that_cannot_agree_fail_the_call_as_not_sent() {
    for (theirs, ours) in [(TlsLevel::Off, TlsLevel::Required), (TlsLevel::Required, TlsLevel::Off)] {
        let address = server(offer(theirs, CompressionLevel::Off)).await;
        let client = client(address, offer(ours, CompressionLevel::Off));
        let failure = call(&client, 1).await.unwrap_err();
        assert_eq!(failure.why(), crate::Why::Connect, "{failure:?}");
        assert!(failure.flags().has(crate::Flags::RETRYABLE), "{failure:?}");
    }
}

fn frame(kind: i8, tag: Tag, message: &Message) -> BytesMut {
    let mut body = BytesMut::new();
    message.encode(&mut body);
    let mut out = BytesMut::new();
    out.extend_from_slice(&(4 + body.len() as u32).to_be_bytes());
    out.extend_from_slice(&[kind as u8, 0, (tag.get() >> 8) as u8, tag.get() as u8]);
    out.extend_from_slice(&body);
    out
}

async fn next(io: &mut TcpStream) -> Frame {
    let mut bytes = BytesMut::new();
    loop {
        if let Some(frame) = next_frame(&mut bytes, 1000).unwrap() {
            assert!(bytes.is_empty(), "nothing follows before it is asked for");
            return frame;
        }
        let byte = io.read_u8().await.unwrap();
        bytes.extend_from_slice(&[byte]);
    }
}

fn tinit(offer: Offer) -> BytesMut {
    frame(kind::TINIT, Tag::SESSION, &Message::Tinit(offer.to_tinit()))
}

#[tokio::test]
async fn what_follows_a_tinit_at_once_is_read_as_tls_and_what_is_inside_as_lz4() {
    let both = offer(TlsLevel::Required, CompressionLevel::Desired);
    let mut io = TcpStream::connect(server(both).await).await.unwrap();
    let probe = frame(kind::RERR_OLD, Tag::SESSION, &Message::Rerr(Bytes::from_static(PROBE)));
    io.write_all(&probe).await.unwrap();
    assert_eq!(next(&mut io).await.body, PROBE);
    // One segment: the Tinit in clear, the hello, and a call that is compressed and turned over.
    let request = Tdispatch { body: Bytes::from(vec![b'A'; 500]), ..Tdispatch::default() };
    let mut block = BytesMut::new();
    let sent = frame(kind::TDISPATCH, Tag::FIRST, &Message::Tdispatch(request));
    lz4::Encoder::default().encode(&sent, &mut block);
    io.write_all(&[&tinit(both)[..], HELLO, &turned(&block)].concat()).await.unwrap();
    let rinit = Init::decode(next(&mut io).await.body).unwrap();
    assert_eq!(rinit.header(b"compress").unwrap(), "lz4;lz4");
    let mut hello = [0; HELLO.len()];
    io.read_exact(&mut hello).await.unwrap();
    assert_eq!(hello, HELLO);
    let (mut raw, mut plain) = (BytesMut::new(), BytesMut::new());
    while lz4::next_block(&mut raw, &mut plain, 1000).unwrap() != lz4::Next::Block {
        let byte = io.read_u8().await.unwrap();
        raw.extend_from_slice(&[!byte]);
    }
    let reply = next_frame(&mut plain, 1000).unwrap().unwrap();
    assert_eq!((reply.kind, reply.tag), (kind::RDISPATCH, Tag::FIRST));
    assert_eq!(Rdispatch::decode(reply.body).unwrap().body, vec![b'A'; 500]);
}

#[tokio::test]
async fn what_follows_in_clear_ends_the_connection_and_nothing_is_answered() {
    let required = offer(TlsLevel::Required, CompressionLevel::Off);
    let mut io = TcpStream::connect(server(required).await).await.unwrap();
    let probe = frame(kind::RERR_OLD, Tag::SESSION, &Message::Rerr(Bytes::from_static(PROBE)));
    io.write_all(&probe).await.unwrap();
    next(&mut io).await;
    let clear = frame(kind::TDISPATCH, Tag::FIRST, &Message::Tdispatch(Tdispatch::default()));
    io.write_all(&[&tinit(required)[..], &clear].concat()).await.unwrap();
    assert_eq!(next(&mut io).await.kind, kind::RINIT);
    let mut rest = Vec::new();
    // A reset is as good an end.
    let _ = io.read_to_end(&mut rest).await;
    assert_eq!(rest, HELLO);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_never_begins_tls_is_cut_off_in_time() {
    let required = offer(TlsLevel::Required, CompressionLevel::Off);
    let (ours, mut theirs) = tokio::io::duplex(1000);
    let params = params(required);
    let begun = Instant::now();
    let served = tokio::spawn(async move {
        let service = Arc::new(Echo);
        let drain = Drain::default();
        serve(ours, ReadBuffer::new(100), None, service, &params, &drain, Arc::new(Uncounted)).await;
    });
    let probe = frame(kind::RERR_OLD, Tag::SESSION, &Message::Rerr(Bytes::from_static(PROBE)));
    theirs.write_all(&[probe, tinit(required)].concat()).await.unwrap();
    served.await.unwrap();
    assert_eq!(begun.elapsed(), muxgate_wire::mux::limits::HANDSHAKE_TIMEOUT);
}
