//! THeader: frames with a sequence id and info pairs beside the message (thriftmux spec, section 14).

use super::{Answer, Connection, bad_reply, give_back};
use crate::io::Io;
use crate::{Failure, Request, Why, headers};
use bytes::{Buf, Bytes, BytesMut};
use muxgate_wire::thrift::{Form, MessageHead, Protocol, peek, theader, translate};

impl<T: Io> Connection<T> {
    /// What stands before the message: a header with the message's own sequence id, and all that info pairs can say.
    pub(super) fn theader(
        &self,
        request: &Request,
        head: &MessageHead,
        ours: i32,
    ) -> Result<BytesMut, Failure> {
        let header = theader::Header {
            flags: 0,
            seqid: ours,
            protocol: head.protocol,
            zlib: false,
            info: headers::to_info(request),
        };
        // Without a transform the message is not looked at; here it is written apart.
        let (front, _) = theader::encode(&header, Bytes::new())
            .map_err(|error| Failure::new(Why::BadRequest, format!("info headers: {error}")))?;
        Ok(front)
    }

    /// The reply to the call that was numbered `ours`, with its info pairs as contexts. A server answers in the transport
    /// that it was asked in. Some of Apache's C++ servers write all answers in binary, and say so in the header: such a
    /// message is translated.
    pub(super) async fn header_reply(&mut self, head: &MessageHead, ours: i32) -> Result<Answer, Failure> {
        loop {
            let mut frame = self.read_frame().await?;
            if frame.is_empty() && self.oneway_sent {
                continue;
            }
            // In its own frame a message can be written to; taken out it shares memory with the info pairs.
            let was_given_back = give_back_in_place(&mut frame, ours, head.seqid);
            let (header, message) = theader::decode(frame.freeze(), self.max_frame)
                .map_err(|error| bad_reply(format!("the service's THeader frame cannot be read: {error}")))?;
            if message.is_empty() && self.oneway_sent {
                continue;
            }
            if self.answers_unwanted(header.seqid, ours) {
                continue;
            }
            check(&header, ours)?;
            let message = match was_given_back {
                true => message,
                false => give_back_copied(message, ours, head.seqid)?,
            };
            let message = match header.protocol == head.protocol {
                true => message,
                false => in_form(&message, header.protocol, head.form(), self.max_frame)?,
            };
            return Ok((headers::reply_from_info(&header.info), message));
        }
    }
}

fn check(header: &theader::Header, ours: i32) -> Result<(), Failure> {
    if header.seqid != ours {
        let text = format!("the service's THeader frame answers sequence id {} to call {ours}", header.seqid);
        return Err(bad_reply(text));
    }
    Ok(())
}

/// A reply that came in the protocol `said`, in the form of its call.
fn in_form(message: &[u8], said: Protocol, form: Form, limit: usize) -> Result<Bytes, Failure> {
    let head = peek(message);
    if head.as_ref().is_ok_and(|head| head.protocol != said) {
        return Err(bad_reply("the service's message is in another protocol than its THeader says".into()));
    }
    let translated = head.and_then(|head| translate::message(message, &head, form, limit));
    translated.map(BytesMut::freeze).map_err(|error| {
        bad_reply(format!(
            "the service answered in another protocol, and the reply cannot be put into the caller's: {error}"
        ))
    })
}

/// Gives the caller's sequence id back to a message that lies in its frame as it is; false if it does not, or if its number
/// is not ours.
fn give_back_in_place(frame: &mut [u8], ours: i32, theirs: i32) -> bool {
    // Where the size of the header section is, in words, and where that section begins.
    let size = frame.get(8..10).map_or(0, |mut size| usize::from(size.get_u16()));
    frame.get_mut(10 + 4 * size..).is_some_and(|message| give_back(message, ours, theirs).is_ok())
}

/// As above for a message that came compressed.
fn give_back_copied(message: Bytes, ours: i32, theirs: i32) -> Result<Bytes, Failure> {
    let mut message = message.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
    give_back(&mut message, ours, theirs)?;
    Ok(message.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;
    use muxgate_wire::thrift::{Kind, write_head};

    #[test]
    fn a_reply_in_the_other_protocol_is_put_into_the_callers() {
        let mut compact = BytesMut::new();
        write_head(Form::Compact, Kind::Reply, b"get", 7, &mut compact);
        compact.extend_from_slice(&[0]);
        let strict = in_form(&compact, Protocol::Compact, Form::Strict, 1024).unwrap();
        assert_eq!(&strict[..], b"\x80\x01\0\x02\0\0\0\x03get\0\0\0\x07\0");
        assert!(in_form(&compact, Protocol::Binary, Form::Strict, 1024).is_err());
        assert!(in_form(b"junk", Protocol::Compact, Form::Strict, 1024).is_err());
    }

    #[test]
    fn a_message_is_numbered_in_its_frame_and_nothing_else_is_touched() {
        let message = b"\x80\x01\0\x02\0\0\0\x03get\0\0\0\x07\0";
        let header = theader::Header {
            flags: 0,
            seqid: 7,
            protocol: Protocol::Binary,
            zlib: false,
            info: vec![(Bytes::from_static(b"k"), Bytes::from_static(b"v"))],
        };
        let (mut frame, _) = theader::encode(&header, Bytes::new()).unwrap();
        frame.extend_from_slice(message);
        let before = frame.clone();
        assert!(!give_back_in_place(&mut frame, 8, 0));
        assert_eq!(frame, before);
        assert!(give_back_in_place(&mut frame, 7, 9));
        let (again, message) = theader::decode(frame.freeze(), 1024).unwrap();
        assert_eq!((again, peek(&message).unwrap().seqid), (header, 9));
        for short in 0..before.len() - message.len() {
            assert!(!give_back_in_place(&mut before.clone()[..short], 7, 9));
        }
    }
}
