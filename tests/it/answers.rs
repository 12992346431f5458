//! What services answer is checked before it is believed, and callers that are gone are let go.

use crate::support::{House, echo, to, yaml};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use muxgate_testkit::backend::{Event, Plan, Reply};
use muxgate_testkit::caller::Form;
use muxgate_testkit::mux::Dispatch;
use muxgate_testkit::thrift::{Message, ONEWAY};
use muxgate_testkit::{Backend, Caller};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Calls of each caller.
const CALLS: u32 = 100;

/// A framed echo service with a fault: it answers each call twice, the second time after a pause.
async fn answers_twice() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let addr = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut read = BytesMut::new();
                while socket.read_buf(&mut read).await.is_ok_and(|count| count > 0) {
                    while read.len() >= 4
                        && read.len() >= 4 + read[..4].iter().fold(0, |len, b| len << 8 | *b as usize)
                    {
                        let len = read.get_u32() as usize;
                        let reply = reply_to(&read.split_to(len));
                        let twice = async {
                            socket.write_all(&reply).await?;
                            tokio::task::yield_now().await;
                            socket.write_all(&reply).await
                        };
                        if twice.await.is_err() {
                            return;
                        }
                    }
                }
            });
        }
    });
    addr
}

/// The argument of a binary `echo` as its result, in a frame.
fn reply_to(call: &[u8]) -> Bytes {
    let mut reply = BytesMut::new();
    reply.put_u32(call.len() as u32);
    reply.extend_from_slice(call);
    // The type of the message, and the id of the field: an argument becomes a result.
    let field = 4 + 4 + 4 + 4 + 4 + 1;
    reply[7] = 2;
    reply[field..field + 2].copy_from_slice(&[0, 0]);
    reply.freeze()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_too_many_reaches_nobody_though_all_calls_are_numbered_zero() {
    let house = House::before(answers_twice().await, "framed").await;
    let mut callers = JoinSet::new();
    for caller in 0..4 {
        let addr = house.addr;
        callers.spawn(async move {
            let mut mux = Caller::connect(Form::ThriftMux, addr).await;
            let mut right = 0;
            for n in 0..CALLS {
                let text = format!("{caller} {n}");
                let mut call = echo("/s/probe", &text);
                // Finagle and Python clients number all their calls 0.
                let mut body = BytesMut::from(&call.body[..]);
                body[12..16].fill(0);
                call.body = body.freeze();
                let answer = mux.call(&call).await.expect("an answer");
                let told = answer.text();
                assert!(
                    told == text || told.contains("sequence id") || told.contains("connection"),
                    "{told}"
                );
                right += u32::from(told == text);
            }
            right
        });
    }
    let right: u32 = callers.join_all().await.into_iter().sum();
    assert!(right > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_answer_to_the_call_is_a_failure_of_the_endpoint() {
    let call = b"\x80\x01\x00\x01\0\0\0\x04echo\0\0\0\x01\0";
    let other = b"\x80\x01\x00\x02\0\0\0\x04ohce\0\0\0\x01\0";
    let compact = b"\x82\x41\x01\x04echo\0";
    for protocol in ["thriftmux", "framed"] {
        for bad in [&b""[..], b"<html>", call, other, compact] {
            if bad.is_empty() && protocol == "framed" {
                // There, to say nothing is to say nothing yet.
                continue;
            }
            let backend = Backend::start().await;
            backend.set(Plan::now(Reply::Bytes(Bytes::copy_from_slice(bad))));
            let house = House::before(backend.addr(), protocol).await;
            let mut plain = Caller::connect(Form::FramedBinary, house.addr).await;
            let told = plain.call(&echo("", "x")).await.expect("an answer").text();
            assert!(told.contains("the service"), "{protocol} {bad:?}: {told}");
            house.pages.until("muxgate_endpoint_failures_total", &[("cause", "bad_reply")], 1.0).await;
        }
    }
}

/// A caller that closed its connection looks like one that sends no more. It is waited for, but not for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_is_gone_does_not_hold_its_call_for_ever() {
    for form in [Form::ThriftMux, Form::FramedBinary, Form::TTwitter] {
        let backend = Backend::start().await;
        backend.set(Plan::now(Reply::Hang));
        let text = yaml(&to(backend.addr()), "thriftmux", "");
        let text = text.replacen("name: in,", "name: in, stallTimeoutMs: 1000,", 1);
        assert!(text.contains("stallTimeoutMs"), "{text}");
        let house = House::start(&text).await;
        let mut caller = Caller::connect(form, house.addr).await;
        caller.tell(&echo("/s/probe", "x")).await;
        backend.wait_calls(1).await;
        drop(caller);
        let discarded =
            |events: &[Event]| events.iter().any(|event| matches!(event, Event::Discarded(..))).then_some(());
        backend.wait("a Tdiscarded", discarded).await;
        house.pages.until_idle().await;
    }
}

/// Mux acknowledges oneway calls; who called plainly does not wait for that.
#[tokio::test(flavor = "multi_thread")]
async fn a_oneway_call_does_not_hold_up_the_next_one() {
    for form in [Form::FramedBinary, Form::FramedCompact, Form::TTwitter] {
        let backend = Backend::start().await;
        backend.decide(|call| match call.message.as_ref().is_some_and(|message| message.kind == ONEWAY) {
            true => Plan::now(Reply::Hang),
            false => Plan::now(Reply::Serve),
        });
        let house = House::before(backend.addr(), "thriftmux").await;
        let mut caller = Caller::connect(form, house.addr).await;
        let mut note = echo("/s/probe", "later");
        note.body = oneway(&note);
        caller.tell(&note).await;
        assert_eq!(caller.echo("/s/probe", "now").await.text(), "now", "{form:?}");
        assert_eq!(backend.calls().len(), 2, "{form:?}");
    }
}

fn oneway(call: &Dispatch) -> Bytes {
    let message = Message::parse(&call.body).expect("a message");
    Message { kind: ONEWAY, ..message }.to_bytes()
}
