//! Frames: read one by one, with what stands before the message in them.

use super::{Connection, bad_reply, lost};
use crate::bridge;
use crate::io::Io;
use crate::{Failure, Request};
use bytes::{Buf, Bytes, BytesMut};
use muxgate_wire::thrift::{Protocol, framing, ttwitter};
use std::future::poll_fn;

/// An empty frame, and one that holds an empty TTwitter header: what some servers answer to a oneway call (thriftmux
/// spec, section 5).
const EMPTY: &[u8] = &[0; framing::LENGTH_BYTES];
const EMPTY_UPGRADED: &[u8] = &[0, 0, 0, 1, 0];

impl<T: Io> Connection<T> {
    /// Offers the TTwitter upgrade. A service that refuses it is called plainly from then on.
    pub(in crate::thrift) async fn upgrade(&mut self, protocol: Protocol) -> Result<(), Failure> {
        let mut call = BytesMut::new();
        ttwitter::write_upgrade_call(protocol, &mut call);
        self.write_frame(&[], call.freeze()).await?;
        let reply = self.read_frame().await?;
        let accepted = ttwitter::upgrade_accepted(&reply)
            .map_err(|error| bad_reply(format!("the answer to the upgrade is not Thrift: {error}")))?;
        self.upgraded = accepted.then_some(protocol);
        Ok(())
    }

    /// What stands before the message: the TTwitter header, if the service took the upgrade.
    pub(super) fn ttwitter_header(&self, request: &Request) -> Result<BytesMut, Failure> {
        match self.upgraded {
            Some(protocol) => bridge::ttwitter_header(request, protocol),
            None => Ok(BytesMut::new()),
        }
    }

    /// The next reply, with the contexts of its TTwitter header.
    pub(super) async fn framed_reply(&mut self) -> Result<(Vec<(Bytes, Bytes)>, BytesMut), Failure> {
        loop {
            let mut frame = self.read_frame().await?;
            if frame.is_empty() && self.oneway_sent {
                continue;
            }
            let Some(protocol) = self.upgraded else { return Ok((Vec::new(), frame)) };
            let contexts = strip_header(protocol, &mut frame)?;
            if !(frame.is_empty() && self.oneway_sent) {
                return Ok((contexts, frame));
            }
        }
    }

    /// The content of the next frame.
    pub(super) async fn read_frame(&mut self) -> Result<BytesMut, Failure> {
        loop {
            match framing::next_frame_mut(self.read.bytes_mut(), self.max_frame) {
                Ok(Some(frame)) => return Ok(frame),
                Ok(None) => {}
                Err(error) => return Err(bad_reply(format!("the service sent a {error}"))),
            }
            let missing = framing::needed(self.read.bytes(), self.max_frame);
            match poll_fn(|cx| self.read.poll_fill(&mut self.io, cx, missing)).await {
                Ok(0) => return Err(lost("the service closed the connection before it answered")),
                Ok(_) => {}
                Err(error) => return Err(lost(format!("the connection broke before the answer: {error}"))),
            }
        }
    }

    /// Throws away answers to oneway calls.
    pub(super) fn skip_empty_frames(&mut self) {
        if !self.oneway_sent || !self.is_framed() {
            return;
        }
        loop {
            let bytes = self.read.bytes_mut();
            let empty = match () {
                () if bytes.starts_with(EMPTY) => EMPTY,
                () if self.upgraded.is_some() && bytes.starts_with(EMPTY_UPGRADED) => EMPTY_UPGRADED,
                () => return,
            };
            bytes.advance(empty.len());
        }
    }
}

fn strip_header(protocol: Protocol, reply: &mut BytesMut) -> Result<Vec<(Bytes, Bytes)>, Failure> {
    let (header, at) = ttwitter::ResponseHeader::decode(protocol, reply)
        .map_err(|error| bad_reply(format!("the reply's TTwitter header cannot be read: {error}")))?;
    reply.advance(at);
    Ok(header.contexts.iter().collect())
}
