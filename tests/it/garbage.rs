//! A service that sends garbage: its own calls fail, cleanly; nobody else notices.

use crate::support::{House, inet};
use bytes::Bytes;
use muxgate_testkit::backend::{Plan, Reply};
use muxgate_testkit::caller::{Form, framed};
use muxgate_testkit::thrift::{Message, Protocol};
use muxgate_testkit::{Backend, Caller, hex, mux};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// Random answers for each protocol.
const RANDOM: usize = 100;

/// What a Mux service may do wrong in answer to a call, before it closes.
fn mux_kinds() -> Vec<(String, Vec<u8>)> {
    let right = Message::call(Protocol::Binary, "echo", 7, "WRONG").served().expect("a reply").to_bytes();
    let body = mux::rdispatch(mux::OK, &Vec::new(), &right);
    let whole = mux::frame(mux::RDISPATCH, 2, &body);
    let mut kinds = vec![
        ("an unused tag".into(), mux::frame(mux::RDISPATCH, 77, &body).to_vec()),
        ("the session's tag".into(), mux::frame(mux::RDISPATCH, 0, &body).to_vec()),
        ("half a frame".into(), whole[..whole.len() / 2].to_vec()),
        ("half a length".into(), vec![0, 0]),
        ("a huge length".into(), hex::decode("7fffffff fe000002")),
        ("a negative length".into(), hex::decode("ffffffff fe000002")),
        ("a length of 0".into(), hex::decode("00000000")),
        ("an unknown type".into(), mux::frame(3, 2, b"x").to_vec()),
        ("a call".into(), mux::frame(mux::TDISPATCH, 2, &[0; 6]).to_vec()),
        ("a status that is none".into(), mux::frame(mux::RDISPATCH, 2, &[9, 0, 0]).to_vec()),
        ("contexts beyond the end".into(), mux::frame(mux::RDISPATCH, 2, &[0, 0xff, 0xff]).to_vec()),
        ("a thousand replies".into(), mux::frame(mux::RDISPATCH, 78, &body).repeat(1000)),
        ("HTTP".into(), b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
    ];
    kinds.extend(random(1));
    kinds
}

/// The same for framed Thrift.
fn framed_kinds() -> Vec<(String, Vec<u8>)> {
    let call = Message::call(Protocol::Binary, "echo", 7, "WRONG");
    let right = framed(&call.served().expect("a reply").to_bytes());
    let other = framed(&Message { seqid: 8, ..call.clone() }.served().expect("a reply").to_bytes());
    let mut kinds = vec![
        ("another sequence id".into(), other),
        ("half a frame".into(), right[..right.len() / 2].to_vec()),
        ("half a length".into(), vec![0, 0]),
        ("a huge length".into(), hex::decode("7fffffff 80010002")),
        ("a negative length".into(), hex::decode("ffffffff 80010002")),
        ("an empty frame".into(), hex::decode("00000000")),
        ("a frame that is no Thrift".into(), framed(b"garbage")),
        ("a name beyond the end".into(), framed(&hex::decode("80010002 7fffffff 65"))),
        ("HTTP".into(), b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
    ];
    kinds.extend(random(2));
    kinds
}

fn random(seed: u64) -> impl Iterator<Item = (String, Vec<u8>)> {
    let mut dice = SmallRng::seed_from_u64(seed);
    (0..RANDOM).map(move |n| {
        let length = dice.random_range(1..200);
        let mut bytes: Vec<u8> = (0..length).map(|_| dice.random()).collect();
        if n % 2 == 0 {
            bytes = framed(&bytes);
        }
        (format!("random bytes {n}"), bytes)
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_calls_of_a_garbled_service_fail() {
    for (protocol, kinds) in
        [("thriftmux", mux_kinds()), ("framed", framed_kinds()), ("ttwitter", framed_kinds())]
    {
        let (good, bad) = (Backend::start().await, Backend::start().await);
        // Whoever is not answered at all has at least its time limit.
        let clients = format!("clients: [{{protocol: {protocol}, requestAttemptTimeoutMs: 2000}}]\n");
        let dtab = format!("dtab: /svc/good => {} ; /svc/bad => {}\n", inet(good.addr()), inet(bad.addr()));
        let listener = "admin: {port: 0}\nlisteners: [{name: in, port: 0, dst: /good}]\n";
        let house = House::start(&format!("{listener}{clients}{dtab}")).await;
        let mut client = Caller::connect(Form::ThriftMux, house.addr).await;
        for (kind, bytes) in kinds {
            bad.set(Plan::now(Reply::Raw(Bytes::from(bytes))));
            let answer = client.echo("/bad", "x").await;
            assert!(answer.status != mux::OK, "{protocol}: {kind}: {answer:?}");
            assert!(!answer.text().contains("WRONG"), "{protocol}: {kind}: {answer:?}");
            assert_eq!(client.echo("/good", &kind).await.text(), kind, "{protocol}");
        }
        // It recovers, too.
        bad.set(Plan::default());
        assert_eq!(client.echo("/bad", "well again").await.text(), "well again");
        house.pages.until_idle().await;
    }
}
