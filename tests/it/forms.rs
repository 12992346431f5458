//! Any form of caller reaches any form of service, and every result is right.

use crate::support::{House, echo};
use bytes::Bytes;
use muxgate_testkit::backend::{Plan, Reply};
use muxgate_testkit::caller::Form;
use muxgate_testkit::mux::Dispatch;
use muxgate_testkit::thrift::{EXCEPTION, Message, ONEWAY, REPLY};
use muxgate_testkit::{Backend, Caller};

/// What a service may speak, as in the configuration; `ttwitter` once with a service that takes the upgrade and once with
/// one that refuses it.
const SERVICES: [(&str, bool); 4] =
    [("thriftmux", false), ("framed", false), ("ttwitter", true), ("ttwitter", false)];

#[tokio::test(flavor = "multi_thread")]
async fn any_caller_reaches_any_service() {
    println!("{:15}{:12}{:10}works", "caller", "service", "upgrade");
    for form in Form::ALL {
        for (protocol, upgrade) in SERVICES {
            let backend = Backend::start().await;
            if upgrade {
                backend.accept_upgrades();
            }
            let house = House::before(backend.addr(), protocol).await;
            let mut caller = Caller::connect(form, house.addr).await;
            calls(&mut caller, &backend, form, protocol == "ttwitter" && !upgrade).await;
            println!("{:15}{protocol:12}{upgrade:<10}yes", format!("{form:?}"));
        }
    }
}

async fn calls(caller: &mut Caller, backend: &Backend, form: Form, upgrade_is_a_call: bool) {
    // A refused upgrade shows at the backend as a call that came first.
    let first = usize::from(upgrade_is_a_call);
    for (n, text) in ["", "text", &"long ".repeat(20_000)].into_iter().enumerate() {
        let call = Message::call(form.protocol(), "echo", 1000 + n as i32, text);
        let dispatch = Dispatch { body: call.to_bytes(), ..echo("/s/probe", "") };
        let answer = caller.call(&dispatch).await.expect("an answer");
        assert_eq!(Some(answer.body), call.served().map(|reply| reply.to_bytes()), "{form:?}");
        assert_eq!(backend.calls()[first + n].bytes, call.to_bytes(), "{form:?}: the body as it came");
    }
    for (reply, kind) in
        [(Reply::Exception(6, "boom".into()), EXCEPTION), (Reply::Declared("no".into()), REPLY)]
    {
        backend.script([Plan::now(reply)]);
        let message = caller.echo("/s/probe", "x").await.message().expect("a Thrift message");
        assert_eq!((message.kind, message.seqid), (kind, 7), "{form:?}");
    }
    oneway(caller, backend, form).await;
}

/// A one-way call has no reply on a plain connection, and an empty one by Mux; what comes next is not mistaken for it.
async fn oneway(caller: &mut Caller, backend: &Backend, form: Form) {
    let note = Message { kind: ONEWAY, ..Message::call(form.protocol(), "note", 3, "x") };
    let dispatch = Dispatch { body: note.to_bytes(), ..echo("/s/probe", "") };
    if form == Form::ThriftMux {
        assert_eq!(caller.call(&dispatch).await.expect("an answer").body, Bytes::new());
    } else {
        caller.tell(&dispatch).await;
    }
    assert_eq!(caller.echo("/s/probe", "next").await.text(), "next", "{form:?}");
    assert!(backend.calls().iter().any(|call| call.method() == "note"), "{form:?}");
}
