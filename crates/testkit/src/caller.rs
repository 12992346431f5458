//! A caller that speaks any of the inbound forms, one call at a time or, by Mux, many.

use crate::mux::{self, Dispatch, Pairs};
use crate::raw::Raw;
use crate::thrift::{Message, Protocol};
use crate::{hex, ttwitter};
use bytes::Bytes;
use std::net::SocketAddr;

/// What a caller speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Mux with Thrift bodies, after a handshake.
    ThriftMux,
    /// Framed Thrift in the binary protocol.
    FramedBinary,
    /// Framed Thrift in the compact protocol.
    FramedCompact,
    /// Framed binary Thrift, upgraded to TTwitter.
    TTwitter,
}

impl Form {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::ThriftMux, Self::FramedBinary, Self::FramedCompact, Self::TTwitter];

    /// The Thrift protocol of the calls.
    pub fn protocol(self) -> Protocol {
        if self == Self::FramedCompact { Protocol::Compact } else { Protocol::Binary }
    }
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Status of an Rdispatch; [`mux::OK`] for any plain reply.
    pub status: u8,
    /// Contexts of an Rdispatch.
    pub contexts: Pairs,
    /// The Thrift message, or the text of a Mux error.
    pub body: Bytes,
}

impl Answer {
    /// The Thrift message, if it is one.
    pub fn message(&self) -> Option<Message> {
        Message::parse(&self.body)
    }

    /// The string that the service returned, or that an exception or a Mux error says.
    pub fn text(&self) -> String {
        let text = self.message().map_or(Some(self.body.clone()), |message| message.string_argument());
        String::from_utf8_lossy(&text.unwrap_or_default()).into_owned()
    }

    /// The flags of a MuxFailure context.
    pub fn flags(&self) -> Option<u64> {
        let (_, value) = self.contexts.iter().find(|(key, _)| key == "MuxFailure")?;
        Some(u64::from_be_bytes(value[..].try_into().ok()?))
    }
}

/// One connection of a caller.
pub struct Caller {
    /// The connection itself.
    pub raw: Raw,
    form: Form,
}

/// The tag of [`Caller::call`]s.
const TAG: u32 = 2;

impl Caller {
    /// Connects and says what there is to say before a call.
    ///
    /// # Panics
    /// If that fails.
    pub async fn connect(form: Form, addr: SocketAddr) -> Self {
        let mut raw = Raw::connect(addr).await;
        match form {
            Form::ThriftMux => {
                let marker = "0000000f7f00000174696e697420636865636b";
                raw.send(marker).await;
                raw.expect(marker).await;
                raw.send("00000006440000010001").await;
                let rinit = raw.frame().await.expect("an Rinit");
                assert!(rinit.starts_with(&hex::decode("bc0000010001")), "{}", hex::encode(&rinit));
            }
            Form::TTwitter => {
                raw.send_bytes(&framed(&ttwitter::upgrade().to_bytes())).await;
                let reply = raw.frame().await.expect("the answer to the upgrade");
                let reply = Message::parse(&reply.into()).expect("a Thrift message");
                assert_eq!((reply.kind, &reply.name[..]), (2, ttwitter::UPGRADE.as_bytes()));
            }
            Form::FramedBinary | Form::FramedCompact => (),
        }
        Self { raw, form }
    }

    /// Makes a call and waits for its answer; `None` if the connection is closed instead. Plain forms carry the message
    /// only.
    ///
    /// # Panics
    /// If something else comes.
    pub async fn call(&mut self, call: &Dispatch) -> Option<Answer> {
        self.tell(call).await;
        if self.form == Form::ThriftMux {
            let (tag, answer) = self.answer().await?;
            assert_eq!(tag, TAG);
            return Some(answer);
        }
        let mut body = Bytes::from(self.raw.frame().await?);
        if self.form == Form::TTwitter {
            body = ttwitter::reply(&body).expect("a reply header");
        }
        Some(Answer { status: mux::OK, contexts: Vec::new(), body })
    }

    /// Writes a call and waits for nothing.
    ///
    /// # Panics
    /// If it cannot be written.
    pub async fn tell(&mut self, call: &Dispatch) {
        match self.form {
            Form::ThriftMux => self.send(TAG, call).await,
            Form::TTwitter => self.raw.send_bytes(&framed(&ttwitter::to_bytes(call))).await,
            Form::FramedBinary | Form::FramedCompact => self.raw.send_bytes(&framed(&call.body)).await,
        }
    }

    /// Calls `echo` and returns what it says.
    ///
    /// # Panics
    /// If the connection is closed.
    pub async fn echo(&mut self, dest: &str, text: &str) -> Answer {
        let body = Message::call(self.form.protocol(), "echo", 7, text).to_bytes();
        let dest = Bytes::copy_from_slice(dest.as_bytes());
        let call = Dispatch { dest, body, ..Dispatch::default() };
        self.call(&call).await.expect("an answer")
    }

    /// Writes a Tdispatch.
    ///
    /// # Panics
    /// If it cannot be written.
    pub async fn send(&mut self, tag: u32, call: &Dispatch) {
        self.raw.send_bytes(&mux::frame(mux::TDISPATCH, tag, &call.to_bytes())).await;
    }

    /// Writes a Tdiscarded.
    ///
    /// # Panics
    /// If it cannot be written.
    pub async fn discard(&mut self, tag: u32, why: &str) {
        let body = [&tag.to_be_bytes()[1..], why.as_bytes()].concat();
        self.raw.send_bytes(&mux::frame(mux::TDISCARDED, 0, &body)).await;
    }

    /// The next Mux message, leases left out: type, tag, body; `None` at the end.
    ///
    /// # Panics
    /// If there is none in time.
    pub async fn message(&mut self) -> Option<(i8, u32, Bytes)> {
        loop {
            let message = self.any().await?;
            if message.0 != mux::TLEASE {
                return Some(message);
            }
        }
    }

    /// The next Mux message, which must be a lease, in milliseconds from now.
    ///
    /// # Panics
    /// If there is none in time, or something else comes.
    pub async fn lease(&mut self) -> u64 {
        let (kind, tag, body) = self.any().await.expect("a lease");
        assert_eq!((kind, tag, body.first()), (mux::TLEASE, 0, Some(&0)));
        u64::from_be_bytes(body[1..].try_into().expect("a lease's amount"))
    }

    async fn any(&mut self) -> Option<(i8, u32, Bytes)> {
        Some(mux::split(&self.raw.frame().await?.into()).expect("a Mux message"))
    }

    /// The next Rdispatch, with its tag.
    ///
    /// # Panics
    /// If something else comes.
    pub async fn answer(&mut self) -> Option<(u32, Answer)> {
        let (kind, tag, body) = self.message().await?;
        assert_eq!(kind, mux::RDISPATCH, "tag {tag}: {}", String::from_utf8_lossy(&body));
        let (status, contexts, body) = mux::parse_rdispatch(&body).expect("an Rdispatch");
        Some((tag, Answer { status, contexts, body }))
    }
}

/// Bytes with their length in front.
pub fn framed(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_be_bytes()[..], body].concat()
}
