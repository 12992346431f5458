//! Everything that reads Thrift, on the same bytes.

use crate::script::pieces;
use bytes::{Bytes, BytesMut};
use muxgate_wire::detect::{Detected, MOST_BYTES, detect};
use muxgate_wire::thrift::framing::{needed, next_frame};
use muxgate_wire::thrift::skip::skip_struct;
use muxgate_wire::thrift::ttwitter::{self, RequestHeader, ResponseHeader};
use muxgate_wire::thrift::{
    Cursor, MessageHead, Protocol, ReplyClass, ThriftError, Walk, Why, classify, peek, peek_partial, seqid,
    write_head,
};

/// Longest frame here.
const MAX_FRAME: usize = 1 << 16;

/// Reads whatever can be read from bytes with everything there is.
///
/// # Panics
/// When two readers of the same bytes do not agree, or what is written is not what was read.
pub fn thrift(data: &[u8]) {
    detected(data);
    let head = peek(data);
    assert_eq!(peek_partial(data, data.len()), head, "nothing more can come");
    heads_of_parts(data, &head);
    if let Ok(head) = &head {
        renumber(data, head);
        rewrite(data, head);
        let _ = head.service_in(data);
        let _ = ttwitter::is_upgrade_call(head, data);
    }
    assert_eq!(ttwitter::upgrade_accepted(data).is_ok(), head.is_ok());
    match classify(data) {
        Ok(ReplyClass::Application { message, .. }) => assert!(data.get(message).is_some()),
        Ok(_) => {}
        Err(error) => assert!(error.at <= data.len() && !error.is_incomplete()),
    }
    walk(data, &head);
    frames(data);
    for protocol in [Protocol::Binary, Protocol::Compact] {
        headers(protocol, data);
    }
}

fn detected(data: &[u8]) {
    let whole = detect(data);
    assert!(data.len() < MOST_BYTES || !matches!(whole, Detected::NeedMore(_)));
    for end in 0..data.len().min(MOST_BYTES + 4) {
        match detect(&data[..end]) {
            Detected::NeedMore(more) => assert!(more > end && more <= MOST_BYTES),
            known => assert_eq!(known, whole, "more bytes do not change what was told from {end}"),
        }
    }
}

fn heads_of_parts(data: &[u8], head: &Result<MessageHead, ThriftError>) {
    for end in 0..data.len().min(48) {
        match peek_partial(&data[..end], data.len()) {
            Err(ThriftError { why: Why::Incomplete { more }, .. }) => {
                assert!(more > 0 && end + more <= data.len());
            }
            told => assert_eq!(told, *head, "with {end} bytes"),
        }
    }
}

fn renumber(data: &[u8], head: &MessageHead) {
    let mut message = data.to_vec();
    let ours = seqid::in_place_of(head, data.len() as u32);
    if seqid::replace(&mut message, head, ours) {
        let again = peek(&message).expect("a head as before");
        assert_eq!((again.seqid, again.body_at), (ours, head.body_at));
        assert!(seqid::replace(&mut message, &again, head.seqid), "it had place before");
    }
    // A number in more bytes than it needs is left alone, or comes back in fewer bits of the same bytes.
    assert_eq!(peek(&message).as_ref(), Ok(head));
}

fn rewrite(data: &[u8], head: &MessageHead) {
    let mut out = BytesMut::new();
    write_head(head.form(), head.kind, head.name_in(data), head.seqid, &mut out);
    let again = peek(&out).expect("a head of ours");
    assert_eq!((again.kind, again.seqid, again.form()), (head.kind, head.seqid, head.form()));
    assert_eq!(again.name_in(&out), head.name_in(data));
    assert!(out.len() <= head.body_at, "ours is the shortest");
}

/// A walk in pieces ends where a walk at once does, and where skipping does.
fn walk(data: &[u8], head: &Result<MessageHead, ThriftError>) {
    let at_once = Walk::new(data.len()).advance(data);
    let skipped = head.clone().and_then(|head| {
        let mut cursor = Cursor::whole(data);
        cursor.seek(head.body_at);
        skip_struct(head.protocol, &mut cursor).map(|()| (head, cursor.at()))
    });
    assert_eq!(at_once, skipped);
    let mut walk = Walk::new(data.len());
    let mut here = 0;
    for piece in pieces(data) {
        here += piece.len();
        match walk.advance(&data[..here]) {
            Err(ThriftError { why: Why::Incomplete { more }, .. }) => {
                assert!(more > 0 && here + more <= data.len());
            }
            ended => {
                assert_eq!(ended.is_ok(), at_once.is_ok());
                assert!(ended.is_err() || ended == at_once);
                return;
            }
        }
    }
    assert!(data.is_empty() || at_once.is_err_and(|error| error.is_incomplete()), "{here} bytes");
}

/// Frames do not depend on how their bytes come.
fn frames(data: &[u8]) {
    let mut whole = BytesMut::from(data);
    let mut expected = Vec::new();
    let end = loop {
        match next_frame(&mut whole, MAX_FRAME) {
            Ok(Some(frame)) => expected.push(frame),
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    let (mut buffer, mut got, mut failed) = (BytesMut::new(), Vec::<Bytes>::new(), None);
    for piece in pieces(data) {
        buffer.extend_from_slice(piece);
        while failed.is_none() {
            let more = needed(&buffer, MAX_FRAME);
            match next_frame(&mut buffer, MAX_FRAME) {
                Ok(Some(frame)) => got.push(frame),
                Ok(None) => {
                    assert!(more > 0);
                    break;
                }
                Err(error) => failed = Some(error),
            }
            assert_eq!(more, 0);
        }
    }
    assert_eq!((got, failed), (expected, end));
}

/// The headers of TTwitter.
fn headers(protocol: Protocol, data: &[u8]) {
    let shared = Bytes::copy_from_slice(data);
    let mut cursor = Cursor::whole(data);
    let skipped = skip_struct(protocol, &mut cursor).map(|()| cursor.at());
    if let Ok((header, at)) = RequestHeader::decode(protocol, &shared) {
        assert_eq!(skipped, Ok(at));
        let mut out = BytesMut::new();
        header.encode(protocol, &mut out);
        let again = RequestHeader::decode(protocol, &out.freeze());
        assert_eq!(again.map(|(header, _)| header).as_ref(), Ok(&header));
        if let (Ok(contexts), Some(dest)) = (header.to_contexts(), &header.dest) {
            let _ = RequestHeader::from_mux(&contexts, dest, &header.delegations);
        }
    }
    match ResponseHeader::decode(protocol, data) {
        Ok((header, at)) => {
            assert_eq!(ResponseHeader::skip(protocol, data), Ok(at));
            let mut out = BytesMut::new();
            header.encode(protocol, &mut out);
            assert_eq!(ResponseHeader::decode(protocol, &out), Ok((header, out.len())));
        }
        Err(error) => assert!(error.at <= data.len()),
    }
}
