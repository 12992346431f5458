//! A caller that speaks any form there is, reports what it hears instead of judging it, and remembers every byte.

use crate::hex;
use crate::link::{Dialect, Link, strange};
use crate::luggage::{self, Luggage};
use crate::mux::{self, Dispatch, Pairs, Pieces};
use crate::theader::Header;
use crate::thrift::{Message, Protocol, REPLY};
use crate::ttwitter;
use bytes::{BufMut, Bytes, BytesMut};
use rustls::ClientConfig;
use std::io::{ErrorKind, Result};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long a speaker waits for an answer.
pub const LIMIT: Duration = Duration::from_secs(10);
/// Bytes of each message that are remembered.
const REMEMBERED: usize = 160;
/// The tag of calls, unless another is set.
pub const FIRST: u32 = 2;
/// The probe before a handshake.
const PROBE: &[u8] = b"tinit check";

/// Whether a connection is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// It is not.
    Clear,
    /// From its first byte on.
    Tls,
    /// From the Mux handshake on.
    Opportunistic,
}

/// All that a caller chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// How messages are carried.
    pub dialect: Dialect,
    /// How they are written.
    pub protocol: Protocol,
    /// THeader: messages are compressed.
    pub zlib: bool,
    /// Mux: calls are Treqs.
    pub treq: bool,
    /// Mux: the streams are compressed.
    pub lz4: bool,
    /// Mux: bodies are cut into pieces of so many bytes, in both directions.
    pub window: Option<u32>,
    /// Encryption.
    pub security: Security,
}

impl Form {
    /// The form without anything that is optional.
    pub const fn new(dialect: Dialect, protocol: Protocol) -> Self {
        let security = Security::Clear;
        Self { dialect, protocol, zlib: false, treq: false, lz4: false, window: None, security }
    }
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// A Thrift message. By Mux, in an OK.
    Message(Message),
    /// An OK with an empty body.
    Empty,
    /// An ERROR or NACK: status, flags of its `MuxFailure`, text.
    Refused(u8, Option<u64>, String),
    /// An Rdiscarded.
    Discarded,
    /// The connection was closed.
    End,
    /// Something else.
    Strange(String),
}

/// One connection of a caller.
pub struct Speaker {
    link: Link,
    form: Form,
    log: String,
    headers: Pairs,
    pieces: Pieces,
    tag: u32,
}

impl Speaker {
    /// Connects and says what there is to say before a call. `tls` is used where the form asks for it.
    ///
    /// # Errors
    /// Those of the socket, and answers to a handshake that are none.
    pub async fn connect(form: Form, addr: SocketAddr, tls: &Arc<ClientConfig>) -> Result<Self> {
        let opening = async {
            let mut link = Link::connect(addr).await?;
            if form.security == Security::Tls {
                link = link.connect_tls(tls).await?;
            }
            match form.dialect {
                Dialect::Mux => shake_hands(link, form, tls).await,
                Dialect::TTwitter => upgrade(link).await,
                _ => Ok(link),
            }
        };
        let link = timeout(LIMIT, opening).await.map_err(|_| strange("no handshake in time"))??;
        Ok(Self {
            link,
            form,
            log: String::new(),
            headers: Pairs::new(),
            pieces: Pieces::default(),
            tag: FIRST,
        })
    }

    /// The bytes that were said and heard, as far as they are remembered.
    pub fn log(&self) -> &str {
        &self.log
    }

    /// Forgets them.
    pub fn forget(&mut self) {
        self.log.clear();
    }

    fn remember(&mut self, arrow: &str, bytes: &[u8]) {
        let (start, more) = bytes.split_at(bytes.len().min(REMEMBERED));
        self.log += &format!("\n    {arrow} {}", hex::encode(start));
        if !more.is_empty() {
            self.log += &format!(".. and {} bytes", more.len());
        }
    }

    /// Sets the Mux tag of the next calls.
    pub fn number(&mut self, tag: u32) {
        self.tag = tag;
    }

    /// Whether what is said next goes out byte by byte.
    pub fn drip(&mut self, drips: bool) {
        self.link.drips = drips;
    }

    /// Application headers of the last answer.
    pub fn headers(&self) -> &Pairs {
        &self.headers
    }

    /// Writes a call to `dest` with luggage, which only forms with room for them carry.
    ///
    /// # Errors
    /// Those of the socket.
    pub async fn tell(&mut self, call: &Message, dest: &str, luggage: &Luggage) -> Result<()> {
        let body = call.to_bytes();
        let dest = Bytes::copy_from_slice(dest.as_bytes());
        let dispatch =
            || Dispatch { contexts: luggage.contexts(), dest, dtab: Pairs::new(), body: body.clone() };
        let bytes = match self.form.dialect {
            Dialect::Framed => framed(&body),
            Dialect::Buffered => body,
            Dialect::Header => {
                let header = Header { info: luggage.info(), ..Header::around(call, self.form.zlib) };
                framed(&header.to_bytes())
            }
            Dialect::TTwitter => framed(&ttwitter::to_bytes(&dispatch())),
            Dialect::Mux if self.form.treq => {
                mux::frame(mux::TREQ, self.tag, &[&luggage.keys()[..], &body[..]].concat())
            }
            Dialect::Mux => {
                let window = self.form.window.map_or(usize::MAX, |window| window as usize);
                mux::pieces(mux::TDISPATCH, self.tag, &dispatch().to_bytes(), window)
            }
        };
        self.remember(">", &bytes);
        self.link.send(&bytes).await
    }

    /// Waits for what comes back to the call.
    ///
    /// # Errors
    /// Nothing in time.
    pub async fn hear(&mut self) -> Result<Said> {
        let (tag, said) = self.hear_any().await?;
        Ok(if tag == self.tag { said } else { Said::Strange(format!("tag {tag}: {said:?}")) })
    }

    /// Waits for whatever comes back, with its tag if there are tags.
    ///
    /// # Errors
    /// Nothing in time.
    pub async fn hear_any(&mut self) -> Result<(u32, Said)> {
        let mut tag = self.tag;
        let heard = timeout(LIMIT, self.next()).await;
        let frame = match heard.map_err(|_| strange("no answer in time"))? {
            Ok(frame) => frame,
            Err(error) if error.kind() == ErrorKind::InvalidData => return Err(error),
            Err(_) if !self.link.inward.peek().is_empty() => {
                return Ok((tag, Said::Strange(hex::encode(self.link.inward.peek()))));
            }
            Err(_) => return Ok((tag, Said::End)),
        };
        self.remember("<", &frame);
        self.headers.clear();
        let said = match self.form.dialect {
            Dialect::Mux => answer(&frame, &mut tag, &mut self.headers),
            Dialect::Framed | Dialect::Buffered => message(&frame),
            Dialect::TTwitter => ttwitter::reply(&frame).and_then(|reply| message(&reply)),
            Dialect::Header => Header::parse(&frame).and_then(|header| {
                self.headers = header.info;
                message(&header.message)
            }),
        };
        Ok((tag, said.unwrap_or_else(|| Said::Strange(hex::encode(&frame)))))
    }

    /// The next frame, or the message that is whole with it.
    async fn next(&mut self) -> Result<Bytes> {
        loop {
            let frame = self.link.next(self.form.dialect).await?;
            if self.form.dialect != Dialect::Mux {
                return Ok(frame);
            }
            let window = self.form.window.map_or(usize::MAX, |window| window as usize);
            if !mux::fits(&frame, window) {
                return Err(strange("a frame beyond the window"));
            }
            if let Some(whole) = self.pieces.join(frame) {
                return Ok(whole);
            }
        }
    }

    /// Writes a Tdiscarded for the call.
    ///
    /// # Errors
    /// Those of the socket.
    pub async fn discard(&mut self, why: &str) -> Result<()> {
        let body = [&self.tag.to_be_bytes()[1..], why.as_bytes()].concat();
        self.link.send(&mux::frame(mux::OLD_TDISCARDED, 0, &body)).await
    }

    /// Ends the connection by a reset.
    pub fn reset(self) {
        self.link.reset();
    }
}

fn framed(body: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(4 + body.len());
    out.put_u32(body.len() as u32);
    out.put_slice(body);
    out.freeze()
}

fn message(bytes: &Bytes) -> Option<Said> {
    Message::parse(bytes).map(Said::Message)
}

fn answer(frame: &Bytes, tag: &mut u32, headers: &mut Pairs) -> Option<Said> {
    let (kind, theirs, body) = mux::split(frame)?;
    *tag = theirs;
    let (status, contexts, body) = match kind {
        mux::RDISCARDED => return Some(Said::Discarded),
        mux::RDISPATCH => mux::parse_rdispatch(&body)?,
        mux::RREQ => (*body.first()?, Pairs::new(), body.slice(1..)),
        _ => return None,
    };
    *headers = luggage::response_headers(&contexts);
    match status {
        mux::OK if body.is_empty() => Some(Said::Empty),
        mux::OK => message(&body),
        _ => {
            let failure = contexts.iter().find(|(key, _)| key == "MuxFailure");
            let flags = failure.and_then(|(_, value)| Some(u64::from_be_bytes(value[..].try_into().ok()?)));
            Some(Said::Refused(status, flags, String::from_utf8_lossy(&body).into_owned()))
        }
    }
}

async fn upgrade(mut link: Link) -> Result<Link> {
    link.send(&framed(&ttwitter::upgrade().to_bytes())).await?;
    let reply = link.next(Dialect::TTwitter).await?;
    match Message::parse(&reply) {
        Some(reply) if reply.kind == REPLY && reply.name == ttwitter::UPGRADE.as_bytes() => Ok(link),
        _ => Err(strange("the upgrade was not accepted")),
    }
}

async fn shake_hands(mut link: Link, form: Form, tls: &Arc<ClientConfig>) -> Result<Link> {
    link.send(&mux::frame(mux::OLD_RERR, 1, PROBE)).await?;
    let probe = link.next(Dialect::Mux).await?;
    if probe[..] != mux::frame(mux::OLD_RERR, 1, PROBE)[4..] {
        return Err(strange("the probe was not answered"));
    }
    let is_opportunistic = form.security == Security::Opportunistic;
    let mut headers: Vec<(_, &[u8])> = Vec::new();
    if is_opportunistic {
        headers.push(("tls", b"required"));
    }
    if form.lz4 {
        headers.push(("accept-compress", b"desired:lz4;desired:lz4"));
    }
    let window = form.window.map(u32::to_be_bytes);
    if let Some(window) = &window {
        headers.push((mux::FRAMER, window));
    }
    link.send(&mux::frame(mux::TINIT, 1, &mux::init(&headers))).await?;
    let rinit = link.next(Dialect::Mux).await?;
    let Some((mux::RINIT, 1, body)) = mux::split(&rinit) else { return Err(strange("no Rinit")) };
    let headers = mux::parse_init(&body).ok_or_else(|| strange("an Rinit that cannot be read"))?;
    let header = |key: &str| headers.iter().find(|(k, _)| k == key).map_or(&b""[..], |(_, value)| &value[..]);
    let (is_tls, is_packed) =
        (matches!(header("tls"), b"desired" | b"required"), header("compress") == b"lz4;lz4");
    if is_opportunistic {
        if !is_tls {
            return Err(strange("TLS was refused"));
        }
        link = link.connect_tls(tls).await?;
    }
    if form.lz4 {
        if !is_packed {
            return Err(strange("lz4 was refused"));
        }
        link.pack();
    }
    Ok(link)
}
