//! What Finagle sent compressed, and what is compressed in answer.

use crate::data::{bytes, drain, frame, framed, list, name};
use bytes::{Bytes, BytesMut};
use muxgate_wire::mux::client::{ClientConfig, ClientSession, DispatchHead, Event};
use muxgate_wire::mux::frame::{MAX_LEN, kind, next_frame};
use muxgate_wire::mux::handshake::{Compressed, Compression, CompressionLevel, Offer, UNLIMITED};
use muxgate_wire::mux::lz4::{Encoder, MAX_BLOCK, Next, next_block};
use muxgate_wire::mux::message::{Rdispatch, Status, Tdispatch};
use muxgate_wire::mux::server::{Request, ServerConfig, ServerEvent, ServerSession};
use serde_json::Value;
use std::time::Duration;

const NOW: Duration = Duration::ZERO;

/// All that a stream of whole blocks holds.
fn decompressed(stream: &[u8]) -> BytesMut {
    let (mut input, mut out) = (BytesMut::from(stream), BytesMut::new());
    while next_block(&mut input, &mut out, MAX_BLOCK).expect("a block") == Next::Block {}
    assert!(input.is_empty(), "half a block");
    out
}

fn compressed(plain: &[u8]) -> BytesMut {
    let mut out = BytesMut::new();
    Encoder::default().encode(plain, &mut out);
    out
}

/// A golden vector: one block with one frame in it.
pub fn check_block(hex: &[u8], fields: &Value) {
    let mut plain = decompressed(hex);
    assert_eq!(fields["decompressed_len_le"], plain.len());
    // Ours need not be the same bytes, for compressors have their choices, but says the same.
    let ours = compressed(&plain);
    assert_eq!(decompressed(&ours), plain);
    assert_eq!((&ours[..9], &ours[13..21]), (&hex[..9], &hex[13..21]));
    let frame = next_frame(&mut plain, MAX_LEN).unwrap().expect("a whole frame");
    assert!(plain.is_empty());
    if let Some(body) = fields["body"].as_str() {
        assert_eq!(body, "A*200");
        let reply = Rdispatch::decode(frame.body).unwrap();
        assert_eq!((reply.status, &reply.body[..]), (Status::Ok, &[b'A'; 200][..]));
    } else {
        let request = Tdispatch::decode(frame.body).unwrap();
        assert_eq!(
            (frame.kind, request.contexts.len(), &request.body[..]),
            (kind::TDISPATCH, 2, &b"hello"[..])
        );
    }
}

fn transcript(wanted: &str) -> &'static [Value] {
    let entry = list("transcripts").iter().find(|entry| name(entry) == wanted).expect("a transcript");
    entry["steps"].as_array().unwrap()
}

fn desired() -> Offer {
    let compression = Compression::both(CompressionLevel::Desired);
    Offer { window: UNLIMITED, compression, ..Offer::default() }
}

#[test]
fn a_client_compresses_right_after_rinit() {
    let steps = transcript("c-client-lz4-headers");
    let config = ClientConfig { offer: desired(), ping_interval: None, ..ClientConfig::default() };
    let mut session = ClientSession::new(config);
    for step in steps {
        if let Some(hex) = step.get("finagle_client_sends") {
            assert_eq!(drain(session.outbox_mut()), framed(&bytes(hex)));
        } else if let Some(hex) = step.get("scripted_server_sends") {
            if let Some(Event::Established(agreed)) = session.receive(frame(&bytes(hex)), NOW).unwrap() {
                assert_eq!(agreed.compressed, Compressed { requests: true, responses: false });
                assert!(session.outbox().is_empty());
                session.switched(NOW);
            }
        } else {
            let raw = step["event"].as_str().unwrap().rsplit(' ').next().unwrap();
            let theirs = decompressed(&bytes(&raw.into()));
            let mut plain = theirs.clone();
            let request = next_frame(&mut plain, MAX_LEN).unwrap().unwrap();
            let Tdispatch { contexts, dst, dtab, body } = Tdispatch::decode(request.body).unwrap();
            let head = DispatchHead { contexts: |out| out.put_pairs(&contexts), dst: &dst, dtab: &dtab };
            session.dispatch((), head, body).unwrap();
            let ours = compressed(&drain(session.outbox_mut()));
            assert_eq!(decompressed(&ours), theirs);
        }
    }
}

#[test]
fn a_server_compresses_right_after_rinit() {
    let steps = transcript("s-compressed-response-bytes");
    let config = ServerConfig { offer: desired(), ..ServerConfig::default() };
    let mut session: ServerSession<()> = ServerSession::new(config);
    session.receive(frame(&bytes(&"7f00000174696e697420636865636b".into())), NOW).unwrap();
    drain(session.outbox_mut());
    let mut call = None;
    for step in steps {
        if let Some(hex) = step.get("scripted_client_sends") {
            match session.receive(frame(&bytes(hex)), NOW).unwrap() {
                ServerEvent::Established(agreed) => {
                    assert_eq!(agreed.compressed, Compressed { requests: false, responses: true });
                }
                ServerEvent::Dispatch { call: new, request: Request::Tdispatch(request) } => {
                    call = Some((new, request.body));
                }
                other => panic!("{other:?}"),
            }
        } else if let Some(hex) = step.get("finagle_server_sends") {
            assert_eq!(drain(session.outbox_mut()), framed(&bytes(hex)));
            session.switched();
        } else {
            // Recorded in part: the header and the beginning of the block.
            let raw = step["event"].as_str().unwrap().rsplit(' ').next().unwrap();
            let recorded = bytes(&raw.into());
            let (call, body) = call.take().expect("a call");
            assert!(session.reply(call, Status::Ok, |_| {}, Bytes::clone(&body)));
            let ours = compressed(&drain(session.outbox_mut()));
            assert_eq!((&ours[..9], &ours[13..21]), (&recorded[..9], &recorded[13..21]));
        }
    }
    assert!(call.is_none() && session.in_flight() == 0);
}
