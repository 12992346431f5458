//! A service that stops reading: its own calls end at their time limit, what is held for it is bounded, and others go on.

use crate::support::{Disco, House, Pages, echo, inet};
use muxgate_testkit::backend::Event;
use muxgate_testkit::caller::Form;
use muxgate_testkit::raw::Raw;
use muxgate_testkit::{Backend, Caller, Gateway, mux};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::task::spawn_blocking;

const CALLS: u32 = 1000;
const BYTES: usize = 64 << 10;
/// What may be held for one caller's calls to it, buffers included; the caller sends 64 MiB.
const HELD: u64 = 48 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_stops_reading_holds_nobody_else() {
    for protocol in ["thriftmux", "framed"] {
        let good = Backend::start().await;
        let deaf = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let text = format!(
            "admin: {{port: 0}}\nlisteners: [{{name: in, port: 0, dst: /good, maxQueuedBytes: 8388608}}]\n\
             clients: [{{protocol: {protocol}, requestAttemptTimeoutMs: 3000}}]\n\
             dtab: /svc/good => {} ; /svc/deaf => {}\n",
            inet(good.addr()),
            inet(deaf.local_addr().unwrap()),
        );
        let gateway = start(text).await;
        let pages = Pages(gateway.admin);
        let mut other = Caller::connect(Form::ThriftMux, gateway.addr).await;
        let (before, _) = gateway.proc.memory();

        let shaking = tokio::spawn(async move { handshake(&deaf, protocol).await });
        let mut client = Caller::connect(Form::ThriftMux, gateway.addr).await;
        let call = echo("/deaf", &"x".repeat(BYTES)).to_bytes();
        for tag in 2..2 + CALLS {
            client.raw.stream().write_all(&mux::frame(mux::TDISPATCH, tag, &call)).await.unwrap();
            if tag % 50 == 0 {
                assert_eq!(other.echo("/good", "well").await.text(), "well", "{protocol}");
            }
        }
        for _ in 0..CALLS {
            let (_, answer) = client.answer().await.expect("an answer");
            assert_ne!(answer.status, mux::OK, "{protocol}");
        }
        assert_eq!(other.echo("/good", "well").await.text(), "well", "{protocol}");
        let (_, peak) = gateway.proc.memory();
        assert!(peak < before + HELD, "{protocol}: {before} bytes before, {peak} at most");
        pages.until_idle().await;
        drop((client, other, shaking.await));
        spawn_blocking(move || gateway.stop()).await.expect("it ends well");
    }
}

/// Says what a Mux service says first; whatever comes then stays in the socket.
async fn handshake(listener: &TcpListener, protocol: &str) -> Raw {
    let mut deaf = Raw::accept(listener).await;
    if protocol == "thriftmux" {
        let marker = deaf.frame().await.expect("the marker");
        deaf.send_bytes(&muxgate_testkit::caller::framed(&marker)).await;
        deaf.frame().await.expect("a Tinit");
        deaf.send("00000006bc0000010001").await;
    }
    deaf
}

async fn start(yaml: String) -> Gateway {
    let start = move || {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("muxgate.yaml");
        std::fs::write(&file, yaml).expect("a file");
        Gateway::of_file(env!("CARGO_BIN_EXE_muxgate"), &file)
    };
    spawn_blocking(start).await.expect("a gateway")
}

/// A lone service that drains or closes between two calls costs no call.
#[tokio::test(flavor = "multi_thread")]
async fn a_lone_service_that_drains_or_closes_while_quiet_costs_no_call() {
    let backend = Backend::start().await;
    let disco = Disco::new();
    disco.put("probe", &[backend.addr()]);
    for protocol in ["thriftmux", "ttwitter"] {
        backend.accept_upgrades();
        let text = crate::support::yaml("/s => /#/fs", protocol, "");
        let house = House::start(&(disco.namer() + &text)).await;
        let mut client = house.mux().await;
        for n in 0..50 {
            assert_eq!(client.echo("/s/probe", &n.to_string()).await.text(), n.to_string(), "{protocol}");
            if protocol == "thriftmux" && n % 2 == 0 {
                backend.drain();
                continue;
            }
            backend.close_connections();
            let closed = |events: &[Event]| {
                let count = |is: fn(&Event) -> bool| events.iter().filter(|event| is(event)).count();
                let open = count(|event| matches!(event, Event::Open(_)));
                (open == count(|event| matches!(event, Event::Closed(_)))).then_some(())
            };
            backend.wait("all connections closed", closed).await;
            // Quiet for as long as a page takes: the gateway has seen the close before the next call.
            house.pages.get("/ready").await;
        }
        assert_eq!(house.pages.sum("muxgate_route_failures_total", &[]).await, 0.0, "{protocol}");
    }
}
