use super::*;
use crate::mux::{self, Dispatch};
use crate::raw::Raw;
use crate::thrift::{CALL, ONEWAY, Protocol, REPLY};

fn framed(message: &Message) -> Vec<u8> {
    let bytes = message.to_bytes();
    [&(bytes.len() as u32).to_be_bytes()[..], &bytes].concat()
}

fn dispatch(tag: u32, body: Bytes) -> Bytes {
    let dispatch = Dispatch {
        contexts: vec![(Bytes::from_static(b"k"), Bytes::from_static(b"v"))],
        dest: Bytes::from_static(b"/s/probe"),
        dtab: Vec::new(),
        body,
    };
    mux::frame(mux::TDISPATCH, tag, &dispatch.to_bytes())
}

#[tokio::test]
async fn framed_calls_are_answered_in_order_and_one_way_calls_not_at_all() {
    let backend = Backend::start().await;
    backend.script([Plan::after(Duration::from_millis(30))]);
    let mut client = Raw::connect(backend.addr()).await;
    let first = Message::call(Protocol::Compact, "echo", 1, "one");
    let oneway = Message { kind: ONEWAY, ..Message::call(Protocol::Binary, "note", 2, "x") };
    let last = Message::call(Protocol::Binary, "echo", 3, "two");
    for message in [&first, &oneway, &last] {
        client.send_bytes(&framed(message)).await;
    }
    for (seqid, text) in [(1, "one"), (3, "two")] {
        let reply = Message::parse(&client.frame().await.unwrap().into()).unwrap();
        assert_eq!((reply.kind, reply.seqid), (REPLY, seqid));
        assert_eq!(reply.string_argument().unwrap(), text);
    }
    assert_eq!(backend.calls().len(), 3);
    backend.set(Plan::now(Reply::Close));
    client.send_bytes(&framed(&last)).await;
    client.expect_close().await;
    backend.wait("the end", |e| matches!(e.last(), Some(Event::Closed(0))).then_some(())).await;
}

#[tokio::test]
async fn mux_calls_carry_their_contexts_and_can_be_refused_or_discarded() {
    let backend = Backend::start().await;
    let mut client = Raw::connect(backend.addr()).await;
    // bc-05: the marker, then the handshake.
    client.send("0000000f7f00000174696e697420636865636b").await;
    client.expect("0000000f7f00000174696e697420636865636b").await;
    client.send("00000006440000010001").await;
    client.expect("00000006bc0000010001").await;
    let call = Message::call(Protocol::Binary, "echo", 0, "hi");
    backend.script([Plan::default(), Plan::now(Reply::Nack(Vec::new())), Plan::now(Reply::Hang)]);
    for (tag, status) in [(2, mux::OK), (3, mux::NACK)] {
        client.send_bytes(&dispatch(tag, call.to_bytes())).await;
        let (kind, got, body) = mux::split(&client.frame().await.unwrap().into()).unwrap();
        assert_eq!((kind, got), (mux::RDISPATCH, tag));
        assert_eq!(mux::parse_rdispatch(&body).unwrap().0, status);
    }
    client.send_bytes(&dispatch(4, call.to_bytes())).await;
    let calls = backend.wait_calls(3).await;
    assert_eq!((calls[2].tag, &calls[2].dest[..]), (Some(4), &b"/s/probe"[..]));
    assert_eq!(calls[2].context("k").unwrap(), "v");
    assert_eq!(calls[2].message.as_ref().unwrap().kind, CALL);
    client.send("00000009 42000000 000004 6e6f").await;
    client.expect("00000004be000004").await;
    let why = |e: &[Event]| {
        e.iter().find_map(|e| if let Event::Discarded(0, 4, why) = e { Some(why.clone()) } else { None })
    };
    assert_eq!(backend.wait("a discard", why).await, "no");
    backend.drain();
    client.expect("0000000440000001").await;
    client.send("00000004c0000001").await;
    backend.wait("Rdrain", |e| e.iter().any(|e| matches!(e, Event::Drained(0))).then_some(())).await;
}
