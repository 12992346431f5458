//! Several services on one connection: `Service:method` leads to its service, with or without the service in the name.

use crate::support::{House, inet};
use muxgate_testkit::backend::{Plan, Reply};
use muxgate_testkit::caller::Form;
use muxgate_testkit::mux::Dispatch;
use muxgate_testkit::thrift::{EXCEPTION, Message};
use muxgate_testkit::{Backend, Caller};

/// Two services; the settings of the first one's client.
async fn house(users: &Backend, orders: &Backend, protocol: &str, settings: &str) -> House {
    House::start(&format!(
        "admin: {{port: 0}}\nlisteners: [{{name: in, port: 0, thriftServiceInDst: true, thriftMethodInDst: true}}]\n\
         clients: [{{protocol: {protocol}, {settings}}}]\n\
         dtab: /svc/Users => {} ; /svc/Orders/echo => {} ; /svc/\\x61\\x2f\\x62 => /svc/Users\n",
        inet(users.addr()),
        inet(orders.addr()),
    ))
    .await
}

async fn call(caller: &mut Caller, message: &Message) -> Message {
    let call = Dispatch { body: message.to_bytes(), ..Dispatch::default() };
    caller.call(&call).await.expect("an answer").message().expect("a message")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_goes_to_its_service_and_its_answer_is_taken_with_either_name() {
    for form in Form::ALL {
        for protocol in ["thriftmux", "framed", "buffered", "header"] {
            let (users, orders) = (Backend::start().await, Backend::start().await);
            let house = house(&users, &orders, protocol, "thriftProtocol: same").await;
            let mut caller = Caller::connect(form, house.addr).await;
            let ask = |name| Message::call(form.protocol(), name, 3, "x");
            for (name, backend) in [("Users:echo", &users), ("Orders:echo", &orders), ("a/b:echo", &users)] {
                let full = ask(name).served().expect("a reply");
                assert_eq!(call(&mut caller, &ask(name)).await, full);
                // As Apache's processors answer.
                let bare = ask("echo").served().expect("a reply");
                backend.script([Plan::now(Reply::Bytes(bare.to_bytes()))]);
                assert_eq!(call(&mut caller, &ask(name)).await, bare, "as it came");
                assert_eq!(backend.calls().pop().map(|call| call.method()).as_deref(), Some(name));
            }
            if form != Form::ThriftMux {
                let nowhere = call(&mut caller, &ask("Nobody:echo")).await;
                let told = (nowhere.kind, &nowhere.name[..], nowhere.seqid);
                assert_eq!(told, (EXCEPTION, &b"Nobody:echo"[..], 3));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_is_taken_off_where_that_is_asked_for() {
    for form in Form::ALL {
        for protocol in ["thriftmux", "framed", "buffered", "header"] {
            for translated in ["same", "compact"] {
                let (users, orders) = (Backend::start().await, Backend::start().await);
                let settings = format!("stripServiceName: true, thriftProtocol: {translated}");
                let house = house(&users, &orders, protocol, &settings).await;
                let mut caller = Caller::connect(form, house.addr).await;
                let ask = |name| Message::call(form.protocol(), name, 3, "x");
                let bare = ask("echo");
                assert_eq!(Some(call(&mut caller, &ask("Users:echo")).await), bare.served());
                users.script([Plan::now(Reply::Exception(6, "boom".into()))]);
                assert_eq!(call(&mut caller, &ask("Users:echo")).await, bare.exception(6, "boom"));
                if form != Form::ThriftMux {
                    // Ours bear the name that was called.
                    users.script([Plan::now(Reply::Close)]);
                    let ours = call(&mut caller, &ask("Users:echo")).await;
                    assert_eq!((ours.kind, ours.seqid, ours.protocol), (EXCEPTION, 3, form.protocol()));
                    assert_eq!(&ours.name[..], b"Users:echo");
                }
                assert!(users.calls().iter().all(|call| call.method() == "echo"));
            }
        }
    }
}
