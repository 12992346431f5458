//! The body of a call: one Thrift message, never looked into past its header.

use bytes::Bytes;
use muxgate_wire::thrift::{Kind, MessageHead, Protocol, ThriftError, peek};

/// A Thrift message with its header already found. The bytes are those of the caller's frame.
#[derive(Clone, Debug)]
pub struct Payload {
    bytes: Bytes,
    head: Option<MessageHead>,
}

impl Payload {
    /// Finds the header of a Thrift message.
    ///
    /// # Errors
    /// The place and reason when the bytes are not a Thrift message.
    pub fn thrift(bytes: Bytes) -> Result<Self, ThriftError> {
        let head = peek(&bytes)?;
        Ok(Self { bytes, head: Some(head) })
    }

    /// A message whose header was found before.
    pub fn peeked(bytes: Bytes, head: MessageHead) -> Self {
        Self { bytes, head: Some(head) }
    }

    /// Takes bytes of any kind: Mux may carry what is not Thrift.
    pub fn opaque(bytes: Bytes) -> Self {
        let head = peek(&bytes).ok();
        Self { bytes, head }
    }

    /// The message.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Its header, if it is Thrift.
    pub fn head(&self) -> Option<&MessageHead> {
        self.head.as_ref()
    }

    /// The method name as it came; empty when the body is not Thrift.
    pub fn method(&self) -> Bytes {
        self.head.as_ref().map_or_else(Bytes::new, |head| self.bytes.slice(head.name.clone()))
    }

    /// The method name without a reference count.
    pub fn method_bytes(&self) -> &[u8] {
        self.head.as_ref().and_then(|head| self.bytes.get(head.name.clone())).unwrap_or_default()
    }

    /// Whether no reply will come.
    pub fn is_oneway(&self) -> bool {
        self.head.as_ref().is_some_and(|head| head.kind == Kind::Oneway)
    }

    /// Declares that no reply will come, though the message's type does not say so.
    pub fn expect_no_reply(&mut self) {
        if let Some(head) = &mut self.head {
            head.kind = Kind::Oneway;
        }
    }

    /// The protocol of the message; binary when it is not Thrift.
    pub fn protocol(&self) -> Protocol {
        self.head.as_ref().map_or(Protocol::Binary, |head| head.protocol)
    }
}
