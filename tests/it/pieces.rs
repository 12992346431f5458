//! Messages in pieces: what a caller cuts is put together, what it asks to be cut is cut, and pieces of calls may mix.

use crate::support::{House, echo};
use bytes::{Bytes, BytesMut};
use muxgate_testkit::raw::Raw;
use muxgate_testkit::{Backend, Caller, mux};
use std::collections::HashMap;

/// On all pieces but the last.
const MORE: u32 = 0x80_0000;
/// The window that the caller announces, in bytes.
const WINDOW: usize = 1000;

/// A caller that announces a window, with what the gateway answered.
async fn announce(house: &House) -> (Caller, Bytes) {
    let mut caller = house.mux().await;
    caller.raw = Raw::connect(house.addr).await;
    let marker = mux::frame(mux::OLD_RERR, 1, mux::TINIT_CHECK);
    caller.raw.send_bytes(&marker).await;
    assert_eq!(caller.raw.frame().await.as_deref(), Some(&marker[4..]));
    let mut body = vec![0, 1];
    for text in [&b"mux-framer"[..], &(WINDOW as u32).to_be_bytes()] {
        body.extend((text.len() as u32).to_be_bytes());
        body.extend(text);
    }
    caller.raw.send_bytes(&mux::frame(mux::TINIT, 1, &body)).await;
    let (kind, tag, body) = caller.message().await.expect("an Rinit");
    assert_eq!((kind, tag), (mux::RINIT, 1), "{}", String::from_utf8_lossy(&body));
    (caller, body)
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_and_replies_in_pieces_are_whole_at_the_end() {
    for protocol in ["thriftmux", "framed"] {
        let backend = Backend::start().await;
        let house = House::before(backend.addr(), protocol).await;
        let (mut client, rinit) = announce(&house).await;
        assert!(rinit.windows(10).any(|part| part == b"mux-framer"), "the gateway can cut: {rinit:?}");
        let texts: HashMap<u32, String> =
            (2..8).map(|tag| (tag, format!("{tag} {}", "x".repeat(5000 * tag as usize)))).collect();

        // Pieces of all calls in turn.
        let whole: Vec<(u32, Bytes)> =
            texts.iter().map(|(tag, text)| (*tag, echo("/s/probe", text).to_bytes())).collect();
        let most = whole.iter().map(|(_, bytes)| bytes.len().div_ceil(WINDOW)).max().unwrap_or(0);
        for n in 0..most {
            for (tag, bytes) in &whole {
                let Some(piece) = bytes.chunks(WINDOW).nth(n) else { continue };
                let more = if (n + 1) * WINDOW < bytes.len() { MORE } else { 0 };
                client.raw.send_bytes(&mux::frame(mux::TDISPATCH, tag | more, piece)).await;
            }
        }
        let (mut partial, mut left) = (HashMap::<u32, BytesMut>::new(), texts.clone());
        while !left.is_empty() {
            let (kind, tag, piece) = client.message().await.expect("a piece");
            assert_eq!(kind, mux::RDISPATCH);
            assert!(piece.len() <= WINDOW, "a piece of {} bytes", piece.len());
            let bytes = partial.entry(tag & !MORE).or_default();
            bytes.extend_from_slice(&piece);
            if tag & MORE == 0 {
                let (status, contexts, body) =
                    mux::parse_rdispatch(&bytes.clone().freeze()).expect("a reply");
                let answer = muxgate_testkit::caller::Answer { status, contexts, body };
                assert_eq!(Some(answer.text()), left.remove(&tag), "{protocol}");
            }
        }
        assert_eq!(backend.calls().len(), texts.len());
    }
}

/// A piece of a call that is given up is dropped; its tag may be used again.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_given_up_between_its_pieces_never_happens() {
    let backend = Backend::start().await;
    let house = House::before(backend.addr(), "thriftmux").await;
    let (mut client, _) = announce(&house).await;
    let bytes = echo("/s/probe", "never").to_bytes();
    client.raw.send_bytes(&mux::frame(mux::TDISPATCH, 5 | MORE, &bytes[..10])).await;
    client.discard(5, "changed my mind").await;
    client.send(5, &echo("/s/probe", "instead")).await;
    loop {
        let (kind, tag, body) = client.message().await.expect("an answer");
        assert_eq!(tag, 5);
        if kind == mux::RDISCARDED {
            continue;
        }
        let (status, contexts, body) = mux::parse_rdispatch(&body).expect("a reply");
        assert_eq!(muxgate_testkit::caller::Answer { status, contexts, body }.text(), "instead");
        break;
    }
    assert_eq!(backend.calls().len(), 1);
}
