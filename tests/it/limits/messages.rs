//! What a Mux session holds: messages in pieces, answers that nobody takes, handshakes.

use super::{house, limited};
use crate::support::echo;
use bytes::{BufMut, Bytes};
use muxgate_testkit::backend::{Plan, Reply};
use muxgate_testkit::mux::{self, Dispatch};
use muxgate_testkit::thrift::{Message, Protocol};
use muxgate_testkit::{Backend, Caller};
use tokio::io::AsyncWriteExt;

/// The bit that says that more of a message follows.
const MORE: u32 = 0x80_0000;

async fn piece(caller: &mut Caller, tag: u32, bytes: &[u8]) {
    caller.raw.send_bytes(&mux::frame(mux::TDISPATCH, tag, bytes)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_in_pieces_is_refused_at_its_end_if_it_is_too_large() {
    let backend = Backend::start().await;
    let house = house(&backend, "maxFrameBytes: 4096").await;
    let mut caller = house.mux().await;
    let whole = echo("/s/probe", &"x".repeat(6000)).to_bytes();
    let (front, back) = whole.split_at(3000);
    piece(&mut caller, 2 | MORE, front).await;
    piece(&mut caller, 2, back).await;
    let (tag, answer) = caller.answer().await.expect("an answer");
    assert_eq!((tag, answer.status, answer.flags()), (2, mux::ERROR, Some(4)));
    limited(&house, "message_too_large", 1.0).await;
    assert_eq!(caller.echo("/s/probe", "alive").await.text(), "alive");
    assert_eq!(backend.calls().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_messages_in_pieces_end_the_session() {
    let backend = Backend::start().await;
    let house = house(&backend, "maxConnections: 100").await;
    let (mut bystander, mut caller) = (house.mux().await, house.mux().await);
    for tag in 1000..1000 + 1024 {
        piece(&mut caller, tag | MORE, b"\0").await;
    }
    assert_eq!(caller.echo("/s/probe", "alive").await.text(), "alive");
    piece(&mut caller, 5000 | MORE, b"\0").await;
    piece(&mut caller, 5001 | MORE, b"\0").await;
    caller.raw.expect_close().await;
    limited(&house, "partial_messages", 1.0).await;
    assert_eq!(bystander.echo("/s/probe", "well").await.text(), "well");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_has_few_headers() {
    let backend = Backend::start().await;
    let house = house(&backend, "maxConnections: 100").await;
    let mut stranger = muxgate_testkit::raw::Raw::connect(house.addr).await;
    let marker = "0000000f7f00000174696e697420636865636b";
    stranger.send(marker).await;
    stranger.expect(marker).await;
    let mut tinit = vec![0, 1];
    for _ in 0..65 {
        tinit.put_u32(1);
        tinit.put_u8(b'k');
        tinit.put_u32(0);
    }
    stranger.send_bytes(&mux::frame(68, 1, &tinit)).await;
    stranger.expect_close().await;
    limited(&house, "handshake_headers", 1.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_beyond_the_bytes_of_a_connection_are_nacked() {
    let backend = Backend::start().await;
    backend.set(Plan::now(Reply::Hold));
    let house = house(&backend, "maxQueuedBytes: 65536").await;
    let mut caller = house.mux().await;
    caller.send(2, &echo("/s/probe", &"x".repeat(40_000))).await;
    backend.wait_calls(1).await;
    caller.send(3, &echo("/s/probe", &"y".repeat(40_000))).await;
    let (tag, answer) = caller.answer().await.expect("a nack");
    assert_eq!((tag, answer.status, answer.flags()), (3, mux::NACK, Some(3)));
    limited(&house, "bytes_in_progress", 1.0).await;
    backend.release();
    let (tag, answer) = caller.answer().await.expect("an answer");
    assert_eq!((tag, answer.text().len()), (2, 40_000));
    assert_eq!(caller.echo("/s/probe", "alive").await.text(), "alive");
}

/// A reply that is larger than what may be queued fills the queue until its caller reads.
#[tokio::test(flavor = "multi_thread")]
async fn calls_while_replies_wait_to_be_read_are_nacked() {
    let backend = Backend::start().await;
    let large = Message::call(Protocol::Binary, "echo", 7, &"x".repeat(12 << 20)).served();
    let large = large.expect("a reply").to_bytes();
    backend.script([Plan::now(Reply::Bytes(large))]);
    let house = house(&backend, "maxQueuedBytes: 65536").await;
    let mut caller = house.mux().await;
    caller.send(2, &echo("/s/probe", "large")).await;
    house.pages.until("muxgate_route_successes_total", &[], 1.0).await;
    caller.send(3, &Dispatch { body: Bytes::from_static(b"x"), ..echo("/s/probe", "small") }).await;
    limited(&house, "queued", 1.0).await;
    let mut statuses = Vec::new();
    for _ in 0..2 {
        let (tag, answer) = caller.answer().await.expect("an answer");
        statuses.push((tag, answer.status));
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [(2, mux::OK), (3, mux::NACK)]);
    assert_eq!(caller.echo("/s/probe", "alive").await.text(), "alive");
}

/// It asks for answers and takes none: pings cost it nothing, and us little, but not without end.
#[tokio::test(flavor = "multi_thread")]
async fn who_asks_and_never_reads_is_cut_off() {
    let backend = Backend::start().await;
    let house = house(&backend, "maxConnections: 100").await;
    let mut bystander = house.mux().await;
    let mut deaf = house.mux().await;
    let pings = mux::frame(mux::TPING, 9, b"").repeat(8192);
    while deaf.raw.stream().write_all(&pings).await.is_ok() {}
    limited(&house, "unread_answers", 1.0).await;
    assert_eq!(bystander.echo("/s/probe", "well").await.text(), "well");
}
