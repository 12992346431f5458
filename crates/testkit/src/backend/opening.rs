//! What a connection is, told by its first bytes; TLS and Mux handshakes are made on the way.

use super::Shared;
use crate::link::{Dialect, Link};
use crate::mux;
use crate::theader::MAGIC;
use crate::thrift::Message;
use bytes::Bytes;
use tokio::net::TcpStream;

/// How a TLS connection begins.
const TLS_HELLO: u8 = 0x16;

/// What a backend takes beside plain connections.
#[derive(Clone, Default)]
pub(super) struct Accepts {
    pub(super) tls: Option<std::sync::Arc<rustls::ServerConfig>>,
    /// TLS is offered in Mux handshakes.
    pub(super) opportunistic: bool,
    pub(super) lz4: bool,
    /// Mux bodies are to be cut into pieces of so many bytes.
    pub(super) window: Option<u32>,
    /// There are no frames: old binary messages cannot be told from them.
    pub(super) buffered: bool,
}

/// How a call came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct How {
    /// How messages are carried.
    pub dialect: Dialect,
    /// THeader: the message was compressed.
    pub zlib: bool,
    /// The connection is encrypted.
    pub tls: bool,
    /// The connection is packed.
    pub lz4: bool,
}

/// A connection that is known, with its first frame if it has been read.
pub(super) struct Opened {
    pub(super) link: Link,
    pub(super) how: How,
    pub(super) first: Option<Bytes>,
    /// Bytes of body that the peer takes in one piece.
    pub(super) window: Option<usize>,
}

/// Finds out what a connection is. `None`: it ended before.
pub(super) async fn open(stream: TcpStream, shared: &Shared) -> Option<Opened> {
    let accepts = shared.accepts.lock().clone();
    let mut byte = [0];
    let is_hello = stream.peek(&mut byte).await.ok()? == 1 && byte[0] == TLS_HELLO;
    let mut link = Link::new(stream);
    let mut how = How { dialect: Dialect::Framed, zlib: false, tls: false, lz4: false };
    if let Some(config) = accepts.tls.as_ref().filter(|_| is_hello) {
        link = link.accept_tls(config).await.ok()?;
        how.tls = true;
    }
    while link.inward.peek().len() < 2 {
        link.inward.fill(&mut link.io).await.ok()?;
    }
    if accepts.buffered || is_message(link.inward.peek()) {
        how.dialect = Dialect::Buffered;
        return Some(Opened { link, how, first: None, window: None });
    }
    let first = link.next(Dialect::Framed).await.ok()?;
    if first.starts_with(&MAGIC) {
        how.dialect = Dialect::Header;
    } else if !is_message(&first) && Message::parse(&first).is_none() {
        how.dialect = Dialect::Mux;
        return mux(link, how, first, &accepts).await;
    }
    Some(Opened { link, how, first: Some(first), window: None })
}

/// As Mux, the first word of a Thrift call would be an Rerr with a tag that no Mux client uses for it.
fn is_message(bytes: &[u8]) -> bool {
    match bytes.get(..2) {
        Some([0x80, 1]) => true,
        Some([0x82, second]) => second & 0x1f == 1,
        _ => false,
    }
}

/// The handshake, if there is one; else what came in place of it is the first message.
async fn mux(mut link: Link, mut how: How, mut first: Bytes, accepts: &Accepts) -> Option<Opened> {
    loop {
        let (kind, tag, body) = mux::split(&first)?;
        match kind {
            mux::RERR | mux::OLD_RERR if &body[..] == mux::TINIT_CHECK => {
                link.send(&mux::frame(kind, tag, &body)).await.ok()?;
            }
            mux::TINIT => {
                let offered = mux::parse_init(&body)?;
                let is_offered = |key: &str, off: &str| {
                    offered.iter().any(|(k, value)| k == key && !value.starts_with(off.as_bytes()))
                };
                let tls = accepts.tls.as_ref().filter(|_| accepts.opportunistic && is_offered("tls", "off"));
                how.lz4 = accepts.lz4 && is_offered("accept-compress", "off");
                let mut headers: Vec<(_, &[u8])> = Vec::new();
                if tls.is_some() {
                    headers.push(("tls", b"desired"));
                }
                if how.lz4 {
                    headers.push(("compress", b"lz4;lz4"));
                }
                let window = accepts.window.map(u32::to_be_bytes);
                if let Some(window) = &window {
                    headers.push((mux::FRAMER, window));
                }
                link.send(&mux::frame(mux::RINIT, tag, &mux::init(&headers))).await.ok()?;
                if let Some(config) = tls {
                    link = link.accept_tls(config).await.ok()?;
                    how.tls = true;
                }
                if how.lz4 {
                    link.pack();
                }
                return Some(Opened { link, how, first: None, window: mux::window(&offered) });
            }
            _ => return Some(Opened { link, how, first: Some(first), window: None }),
        }
        first = link.next(Dialect::Mux).await.ok()?;
    }
}
