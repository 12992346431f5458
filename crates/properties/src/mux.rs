//! Everything that reads Mux, on the same bytes.

use crate::peer::{FROM_CLIENT, FROM_SERVER};
use crate::script::pieces;
use crate::stream::{feed_client, feed_server};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use muxgate_wire::mux::context::{self, Deadline, MuxFailure, TraceContext};
use muxgate_wire::mux::fragment::{Assembled, Reassembly};
use muxgate_wire::mux::frame::{self, Frame, Tag, next_frame};
use muxgate_wire::mux::handshake::{Compression, CompressionLevel, Offer, TlsLevel, UNLIMITED, is_probe};
use muxgate_wire::mux::limits;
use muxgate_wire::mux::lz4::{self, Encoder, Lz4Error, Next, next_block};
use muxgate_wire::mux::message::{Init, Message};
use muxgate_wire::mux::outbox::Outbox;
use muxgate_wire::mux::session::SessionError;
use muxgate_wire::pairs::Pairs;
use std::collections::BTreeMap;
use std::time::Duration;

/// Longest frame here.
const MAX_FRAME: u32 = 1 << 16;

/// Reads the bytes as frames, as the body of every message, as values of contexts, and puts them through both sessions.
///
/// # Panics
/// When frames depend on how their bytes come, what is written is not what was read, or a session breaks its word.
pub fn mux(data: &[u8]) {
    let frames = frames(data);
    for frame in &frames {
        message(frame.kind, &frame.body);
        let _ = is_probe(frame);
    }
    reassembly(&frames);
    let body = Bytes::copy_from_slice(data);
    for kind in FROM_CLIENT.into_iter().chain(FROM_SERVER) {
        message(kind, &body);
    }
    values(&body);
    handshake(&body);
    in_pieces(&body);
    compressed(data);
    feed_server(BytesMut::from(data));
    feed_client(BytesMut::from(data), data.len().is_multiple_of(2));
}

/// All frames, which do not depend on how their bytes come.
fn frames(data: &[u8]) -> Vec<Frame> {
    let mut whole = BytesMut::from(data);
    let mut expected = Vec::new();
    let end = loop {
        match next_frame(&mut whole, MAX_FRAME) {
            Ok(Some(frame)) => expected.push(frame),
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    let (mut buffer, mut got, mut failed) = (BytesMut::new(), Vec::new(), None);
    for piece in pieces(data) {
        buffer.extend_from_slice(piece);
        while failed.is_none() {
            let more = frame::needed(&buffer);
            match next_frame(&mut buffer, MAX_FRAME) {
                Ok(Some(frame)) => got.push(frame),
                Ok(None) => {
                    assert!(more > 0);
                    break;
                }
                Err(error) => failed = Some(error),
            }
        }
    }
    assert_eq!((&got, failed), (&expected, end));
    expected
}

fn encode(message: &Message) -> Bytes {
    let mut out = BytesMut::new();
    message.encode(&mut out);
    out.freeze()
}

/// What decodes is written as it came, or, where there is more than one way to write it, as the same message.
fn message(kind: i8, body: &Bytes) {
    let Ok(message) = Message::decode(kind, body.clone()) else { return };
    let written = encode(&message);
    match &message {
        Message::Tdispatch(_)
        | Message::Rdispatch(_)
        | Message::Rreq(_)
        | Message::Tinit(_)
        | Message::Rinit(_) => {
            assert_eq!(written, body);
        }
        // A long text is cut, and a Treq may say the same in other words.
        Message::Rerr(_) | Message::Tdiscarded(_) => assert!(body.starts_with(&written)),
        Message::Treq(_) => assert!(written.len() <= body.len().max(1) + 40),
        _ => assert!(written.len() <= 9),
    }
    let again = Message::decode(message.kind(), written.clone()).expect("what was written");
    assert_eq!(encode(&again), written, "stable after one round");
    if let Message::Tdispatch(request) = &message {
        let _ = MuxFailure::find(&request.contexts);
        assert_eq!(request.contexts.iter().count(), request.contexts.len());
        assert!(request.contexts.len() <= limits::MAX_CONTEXTS && request.dtab.len() <= limits::MAX_DTAB);
    }
}

/// Pieces are put together as a naive table would.
fn reassembly(frames: &[Frame]) {
    let mut all = Reassembly::default();
    let mut table: BTreeMap<Tag, Vec<u8>> = BTreeMap::new();
    let mut buffered = 0;
    for frame in frames {
        if frame.fragment {
            let full = table.len() >= limits::MAX_PARTIALS && !table.contains_key(&frame.tag);
            match all.push(frame.tag, &frame.body, Duration::ZERO) {
                Ok(()) => {
                    table.entry(frame.tag).or_default().extend_from_slice(&frame.body);
                    buffered += frame.body.len();
                }
                Err(error) => assert!(full && error == SessionError::TooManyPartials),
            }
        } else if frame.kind % 2 == 0 {
            let mut whole = table.remove(&frame.tag).unwrap_or_default();
            buffered -= whole.len();
            whole.extend_from_slice(&frame.body);
            assert_eq!(all.finish(frame.tag, frame.body.clone()), Assembled::Whole(whole.into()));
        } else {
            let dropped = table.remove(&frame.tag);
            buffered -= dropped.as_ref().map_or(0, Vec::len);
            assert_eq!(all.drop_partial(frame.tag), dropped.is_some());
        }
        assert_eq!((all.len(), all.buffered()), (table.len(), buffered));
    }
    assert_eq!(all.idle_at().is_some(), !all.is_empty());
}

/// Values of contexts, and lists of pairs.
fn values(value: &Bytes) {
    if let Some(trace) = TraceContext::decode(value) {
        let (bytes, len) = trace.encode();
        assert_eq!(&bytes[..len], &value[..]);
        assert_eq!(trace.with_sampled(true).sampled(), Some(true));
    }
    if let Some(deadline) = Deadline::decode(value) {
        assert_eq!(&deadline.encode()[..], &value[..]);
        assert_eq!(deadline.combine(deadline), deadline);
        let _ = (deadline.left(i64::MIN), deadline.left(i64::MAX));
    }
    if let Some(failure) = MuxFailure::decode(value) {
        assert_eq!(MuxFailure::find(&failure.to_pairs()), Some(failure));
    }
    let _ = (context::decode_retries(value), context::decode_client_id(value));
    if let Ok(headers) = context::decode_headers(value.clone()) {
        assert_eq!(headers.region(), value);
    }
    let Some((count, _)) = value.split_first_chunk() else { return };
    let mut rest = value.slice(2..);
    if let Ok(pairs) = Pairs::take(u16::from_be_bytes(*count), &mut rest) {
        let list: Vec<_> = pairs.iter().collect();
        assert_eq!(list.len(), pairs.len());
        if let Ok(built) = Pairs::build(list.iter().map(|(key, value)| (&key[..], &value[..]))) {
            assert_eq!(built, pairs);
        }
        let mut out = BytesMut::new();
        pairs.write(&mut out);
        assert_eq!(out, value[..value.len() - rest.len()]);
    }
}

/// Whatever the peer announces, both sides come to the same, or one says why not.
fn handshake(body: &Bytes) {
    let Ok(init) = Init::decode(body.clone()) else { return };
    assert!(init.headers.len() <= limits::MAX_INIT_HEADERS);
    for tls in [TlsLevel::Off, TlsLevel::Desired, TlsLevel::Required] {
        let offer = Offer { tls, ..Offer::default() };
        for agreed in [offer.agree_with_client(&init), offer.agree_with_server(&init)].into_iter().flatten() {
            assert!(agreed.handshake && (1..=UNLIMITED).contains(&agreed.window));
            assert!(agreed.tls || tls != TlsLevel::Required);
            assert!(!agreed.compressed.any(), "not offered");
        }
        // Whoever answers a Tinit comes to the same as the one who hears the answer.
        let compression = Compression::both(CompressionLevel::Accepted);
        let offer = Offer { compression, ..offer };
        if let Ok(agreed) = offer.agree_with_client(&init) {
            let desired = Compression::both(CompressionLevel::Desired);
            let client = Offer { compression: desired, tls: TlsLevel::Desired, window: agreed.window };
            let heard = client.agree_with_server(&offer.to_rinit(&init)).expect("an answer of ours");
            assert_eq!(heard.compressed, agreed.compressed);
        }
    }
}

/// A long message leaves in pieces and is whole again at the other end; what is taken back never arrives.
fn in_pieces(body: &Bytes) {
    let Some(first) = body.first() else { return };
    let mut outbox = Outbox::default();
    // Not so small that there are thousands of pieces.
    outbox.set_window(u32::from(*first) * 16 + body.len() as u32 / 64);
    let tag = |number: u32| Tag::new(number).expect("a small tag");
    let head = |_: &mut BytesMut| Ok(());
    let kept = outbox.push(2, tag(2), body.clone(), head);
    let taken = outbox.push(2, tag(3), body.clone(), head).expect("a short message");
    outbox.push_control(65, tag(1), &[]);
    let last = outbox.push(2, tag(4), body.slice(1..), head);
    assert!(kept.is_ok() && last.is_ok());
    outbox.discard(taken);
    let mut stream = BytesMut::new();
    while outbox.has_remaining() {
        let step = outbox.chunk().len().min(1 + usize::from(*first) + body.len() / 64);
        stream.extend_from_slice(&outbox.chunk()[..step]);
        outbox.advance(step);
    }
    assert!(outbox.is_empty() && outbox.queued_bytes() == 0);
    let (mut all, mut whole) = (Reassembly::default(), BTreeMap::new());
    while let Some(frame) = next_frame(&mut stream, frame::MAX_LEN).expect("frames of ours") {
        if frame.fragment {
            all.push(frame.tag, &frame.body, Duration::ZERO).expect("few of them");
        } else if let Assembled::Whole(body) = all.finish(frame.tag, frame.body) {
            assert!(whole.insert(frame.tag.get(), body).is_none());
        }
    }
    let expected = BTreeMap::from([(1, Bytes::new()), (2, body.clone()), (4, body.slice(1..))]);
    assert_eq!(whole, expected);
    assert!(stream.is_empty() && all.is_empty());
}

/// What is compressed comes back, and any stream gives blocks of bounded size or an error.
fn compressed(data: &[u8]) {
    let mut stream = BytesMut::new();
    Encoder::default().encode(data, &mut stream);
    lz4::put_end(&mut stream);
    let whole = decompress(&stream, [&stream[..]]).expect("a stream of ours");
    assert_eq!(whole, data);
    assert_eq!(decompress(&stream, pieces(&stream)).as_ref(), Ok(&whole));
    let at_once = decompress(data, [data]);
    assert_eq!(decompress(data, pieces(data)), at_once);
    // As one block, whose header is right for once.
    let claimed = data.first().map_or(0, |byte| u32::from(*byte) * 20);
    let mut block = BytesMut::from(&b"LZ4Block\x26"[..]);
    block.put_u32_le(data.len() as u32);
    block.put_u32_le(claimed);
    block.put_u32_le(0);
    block.extend_from_slice(data);
    if let Ok(out) = decompress(&block, [&block[..]]) {
        assert!(out.len() <= claimed as usize);
    }
}

/// Longest block here.
const MAX_BLOCK: usize = 1 << 16;

/// All blocks of a stream that comes in such pieces.
fn decompress<'a>(stream: &[u8], pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<BytesMut, Lz4Error> {
    let (mut input, mut out, mut ended) = (BytesMut::new(), BytesMut::new(), false);
    let mut came = 0;
    for piece in pieces {
        input.extend_from_slice(piece);
        came += piece.len();
        while !ended {
            let before = out.len();
            match next_block(&mut input, &mut out, MAX_BLOCK)? {
                Next::Block => assert!(out.len() - before <= MAX_BLOCK),
                Next::End => ended = true,
                Next::Missing(count) => {
                    assert!(count > 0);
                    break;
                }
            }
        }
    }
    assert_eq!(came, stream.len());
    Ok(out)
}
