//! BC-02, BC-10, BC-19 and BC-20: what strangers can cost. The gateway is a process of its own here, so that its memory and
//! its end can be seen.

use crate::support::{ADD, Disco, House, Pages, echo, to, yaml};
use bytes::Bytes;
use muxgate_testkit::caller::{Caller, Form, framed};
use muxgate_testkit::load::Load;
use muxgate_testkit::mux::{self, Dispatch};
use muxgate_testkit::proc::LIMIT;
use muxgate_testkit::raw::Raw;
use muxgate_testkit::thrift::{CALL, Message, Protocol};
use muxgate_testkit::{Backend, Gateway, hex, until};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::task::{JoinHandle, spawn_blocking};

/// Starts the program with this configuration.
async fn start(yaml: String) -> Gateway {
    let start = spawn_blocking(move || {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("muxgate.yaml");
        std::fs::write(&file, yaml).expect("a file");
        Gateway::of_file(env!("CARGO_BIN_EXE_muxgate"), &file)
    });
    start.await.expect("a gateway")
}

const MIB: u64 = 1 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn bc_02_declared_name_length() {
    const EACH: usize = 1000;
    let backend = Backend::start().await;
    let gateway = start(yaml(&to(backend.addr()), "framed", "")).await;
    let pages = Pages(gateway.admin);
    let load = Arc::new(Load::start(gateway.addr, 1, Duration::from_millis(1)));
    more(&load, 100).await;
    let (before, _) = gateway.proc.memory();
    for bytes in ["000000084e495f50494e4700", "00000008822101ffffffff07"] {
        for _ in 0..EACH {
            let mut stranger = Raw::connect(gateway.addr).await;
            stranger.send(bytes).await;
            if let Some(last) = stranger.frame().await {
                let message = Message::parse(&last.into()).expect("a Thrift message");
                assert!(message.kind == 3, "at most a TApplicationException");
                stranger.expect_close().await;
            }
        }
    }
    let (after, _) = gateway.proc.memory();
    assert!(after < before + 4 * MIB, "{before} bytes before, {after} after");
    more(&load, 10).await;
    let calls = spawn_blocking(move || Arc::into_inner(load).expect("the only one").stop()).await.unwrap();
    assert!(calls.iter().all(|call| call.failure.is_none()));
    let metrics = pages.metrics().await;
    assert_eq!(metrics.sum("muxgate_listener_decode_errors_total", &[]), EACH as f64);
    let long_name = [("cause", "method_name")];
    assert_eq!(metrics.sum("muxgate_listener_limited_total", &long_name), EACH as f64);
    assert_eq!(metrics.sum("muxgate_route_requests_total", &[]), calls.len() as f64);
    stop(gateway).await;
}

async fn more(load: &Arc<Load>, n: usize) {
    let load = Arc::clone(load);
    spawn_blocking(move || load.more(n)).await.expect("the load goes on");
}

async fn stop(gateway: Gateway) {
    spawn_blocking(move || gateway.stop()).await.expect("it ends well");
}

/// A caller that goes on calling `/s/probe` until it is told to stop; every answer is compared.
struct Healthy {
    stop: Arc<AtomicBool>,
    task: JoinHandle<usize>,
}

impl Healthy {
    fn start(gateway: SocketAddr) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let task = tokio::spawn(async move {
            let mut client = Caller::connect(Form::ThriftMux, gateway).await;
            let mut pause = tokio::time::interval(Duration::from_millis(5));
            let mut n = 0;
            while !stopped.load(Ordering::Relaxed) {
                pause.tick().await;
                n += 1;
                let answer = client.echo("/s/probe", &format!("healthy {n}")).await;
                assert_eq!((answer.status, answer.text()), (mux::OK, format!("healthy {n}")));
            }
            n
        });
        Self { stop, task }
    }

    async fn stop(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await.expect("every call is answered")
    }
}

/// Calls of a client that does not read, and their size.
const UNREAD: u32 = 1000;
const UNREAD_BYTES: usize = 64 << 10;
/// Held for a client that does not read, buffers and allocator included: half of what it sends. Its listener's limits are
/// 4 MiB of calls in progress and 4 MiB of replies.
const HELD: u64 = 32 * MIB;

#[tokio::test(flavor = "multi_thread")]
async fn bc_10_client_stops_reading() {
    let backend = Backend::start().await;
    let listener = |name: &str, stall: u32| {
        format!(
            "  - {{name: {name}, port: 0, dst: /s/probe, stallTimeoutMs: {stall}, maxQueuedBytes: {}}}\n",
            4 * MIB
        )
    };
    let yaml = format!(
        "admin: {{port: 0, shutdownGraceMs: 2000}}\nlisteners:\n{}{}dtab: /svc => / ; {}\n",
        listener("quick", 1000),
        listener("patient", 600_000),
        to(backend.addr()),
    );
    let gateway = start(yaml).await;
    let pages = Pages(gateway.admin);
    // Both share the one session to the service.
    let healthy = Healthy::start(gateway.listeners["quick"]);
    until("a healthy caller", || async { (!backend.calls().is_empty()).then_some(()) }).await;
    let (before, _) = gateway.proc.memory();

    let mut deaf = Caller::connect(Form::ThriftMux, gateway.listeners["quick"]).await;
    shout(&mut deaf).await;
    let cut = [("listener", "quick"), ("cause", "slow_reader")];
    pages.until("muxgate_listener_limited_total", &cut, 1.0).await;
    let (_, peak) = gateway.proc.memory();
    assert!(peak < before + HELD, "{before} bytes before, {peak} at most");
    let in_flight = || async {
        let open = pages.sum("muxgate_listener_in_flight_requests", &[("listener", "quick")]).await;
        (open <= 1.0).then_some(())
    };
    until("no call of the deaf client in flight", in_flight).await;
    assert!(healthy.stop().await > 0);

    // One that will not be cut off for long, while the gateway drains.
    let mut deaf = Caller::connect(Form::ThriftMux, gateway.listeners["patient"]).await;
    shout(&mut deaf).await;
    gateway.proc.terminate();
    let proc = gateway.proc;
    let status = spawn_blocking(move || proc.wait(LIMIT)).await.unwrap();
    assert!(status.success(), "{status}");
}

/// Sends the calls, as far as the gateway takes them, and reads nothing.
async fn shout(deaf: &mut Caller) {
    let call = echo("/s/probe", &"x".repeat(UNREAD_BYTES)).to_bytes();
    for tag in 2..2 + UNREAD {
        let sent = deaf.raw.stream().write_all(&mux::frame(mux::TDISPATCH, tag, &call)).await;
        if sent.is_err() {
            return;
        }
    }
}

/// Names in a round: ten times what is kept. The case has 50,000, for which this build needs half a minute.
const NAMES: usize = 10_000;
/// Names of growing length, the longest with 7,999 letters; the case has every odd length.
const LONG_NAMES: usize = 1_000;
/// Calls on the way at once.
const WINDOW: usize = 64;
/// A page of metrics may grow by this many lines, whatever names are asked for.
const FEW_LINES: usize = 200;

#[tokio::test(flavor = "multi_thread")]
async fn bc_19_endless_distinct_names() {
    let backend = Backend::start().await;
    let disco = Disco::new();
    disco.put("probe", &[backend.addr()]);
    let gateway = start(disco.namer() + &yaml("/s => /#/fs", "thriftmux", "")).await;
    let pages = Pages(gateway.admin);
    let healthy = Healthy::start(gateway.addr);
    let mut client = Caller::connect(Form::ThriftMux, gateway.addr).await;
    for n in 0..1000 {
        assert_eq!(client.echo("/s/probe", &n.to_string()).await.text(), n.to_string());
    }
    let lines = pages.metrics().await.samples.len();
    let mut memory = Vec::new();
    for round in ["x", "y"] {
        unknown(&mut client, (0..NAMES).map(|n| format!("/s/{round}{n:05}"))).await;
        unknown(&mut client, (0..LONG_NAMES).map(|n| format!("/s/{}", round.repeat(8 * n + 7)))).await;
        memory.push(gateway.proc.memory().0);
        let metrics = pages.metrics().await;
        assert!(metrics.samples.len() < lines + FEW_LINES, "{} lines, {lines} before", metrics.samples.len());
    }
    assert!(memory[1] <= memory[0] + memory[0] / 10, "{memory:?}");
    assert!(healthy.stop().await > 0);
    let names = pages.json("/names.json").await;
    let known = names
        .as_array()
        .expect("a list")
        .iter()
        .any(|row| row["name"] == "/svc/s/probe" && row["state"] == "bound");
    assert!(known, "/s/probe is still known");
    drop(client);
    stop(gateway).await;
}

/// Calls with tables of their own in a round; more than routes are kept.
const TABLES: usize = 11_000;

/// The neighbour: one name, and a table with each call that changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn bc_19_endless_distinct_dtabs() {
    let backend = Backend::start().await;
    let gateway = start(yaml(&to(backend.addr()), "thriftmux", "")).await;
    let pages = Pages(gateway.admin);
    let mut client = Caller::connect(Form::ThriftMux, gateway.addr).await;
    assert_eq!(client.echo("/s/probe", "first").await.text(), "first");
    let lines = pages.metrics().await.samples.len();
    let mut memory = Vec::new();
    for round in 0..6 {
        for n in 0..TABLES {
            let dentry = (Bytes::from(format!("/table/{round}/{n}")), Bytes::from_static(b"/elsewhere"));
            let call = Dispatch { dtab: vec![dentry], ..echo("/s/probe", "x") };
            client.send(100 + n as u32, &call).await;
            if n >= WINDOW - 1 {
                assert_eq!(client.answer().await.expect("an answer").1.text(), "x");
            }
        }
        for _ in 1..WINDOW {
            assert_eq!(client.answer().await.expect("an answer").1.text(), "x");
        }
        memory.push(gateway.proc.memory().0);
    }
    // How full the allocator is when it is looked at varies; growth would go on from round to round.
    let (early, late) = memory.split_at(3);
    let (early, late) = (early.iter().max().expect("rounds"), late.iter().min().expect("rounds"));
    assert!(*late <= early + early / 10, "{memory:?}");
    assert_eq!(pages.metrics().await.samples.len(), lines);
    drop(client);
    stop(gateway).await;
}

/// Asks for each name; each is refused as unknown.
async fn unknown(client: &mut Caller, names: impl Iterator<Item = String>) {
    let mut open = 0;
    for (n, name) in names.enumerate() {
        client.send(100 + (n % WINDOW) as u32, &echo(&name, "x")).await;
        open += 1;
        if open == WINDOW {
            for _ in 0..WINDOW {
                refused(client).await;
            }
            open = 0;
        }
    }
    for _ in 0..open {
        refused(client).await;
    }
}

async fn refused(client: &mut Caller) {
    let (_, answer) = client.answer().await.expect("an answer");
    assert_eq!(answer.status, mux::ERROR);
    let text = answer.text();
    assert!(text.contains("no such name"), "{text}");
}

/// The case's method name, and one that would hurt a page.
const ODD: [&[u8]; 2] = [b"we\"ird\\\n\xc3\xa9\xff", b"<script>x</script>&\"'"];

#[tokio::test(flavor = "multi_thread")]
async fn bc_20_metrics_survive_odd_names() {
    let backend = Backend::start().await;
    let listeners = "listeners:\n  - {name: plain, port: 0, dst: /int/io.example.Label}\n  \
        - {name: method, port: 0, dst: /int/io.example.Label, thriftMethodInDst: true}\n";
    let dtab = format!("/svc/int/io.example.Label => {}", crate::support::inet(backend.addr()));
    let yaml = format!("admin: {{port: 0}}\n{listeners}clients: [{{protocol: framed}}]\ndtab: {dtab}\n");
    let house = House::start(&yaml).await;
    let mut bystander = Raw::connect(house.addr).await;
    for name in ["plain", "method"] {
        for method in ODD {
            let mut client = Raw::connect(house.listeners[name]).await;
            let call = Message {
                protocol: Protocol::Binary,
                kind: CALL,
                name: Bytes::from_static(method),
                seqid: 5,
                body: Bytes::from_static(&[0]),
            };
            let bytes = framed(&call.to_bytes());
            if method == ODD[0] {
                assert_eq!(hex::encode(&bytes), "00000018800100010000000b7765226972645c0ac3a9ff0000000500");
            }
            client.send_bytes(&bytes).await;
            let reply = Message::parse(&client.frame().await.expect("an answer").into()).expect("a message");
            assert_eq!((reply.seqid, &reply.name[..]), (5, method));
        }
    }
    bystander.send(ADD).await;
    bystander.frame().await.expect("an answer");

    let metrics = house.pages.metrics().await;
    assert!(metrics.sum("muxgate_route_requests_total", &[]) >= 5.0);
    house.pages.json("/metrics.json").await;
    house.pages.json("/traces.json").await;
    house.pages.json("/names.json").await;
    for page in ["/", "/traces", "/names"] {
        let html = house.pages.get(page).await;
        assert!(!html.contains("<script>x"), "{page}: {html}");
    }
    let html = house.pages.get("/traces").await;
    assert!(html.contains("&lt;script&gt;x&lt;/script&gt;&amp;"), "{html}");
    // Nothing spoils the batch: all spans arrive.
    let spans = house.collector.wait(10).await;
    assert!(
        spans
            .iter()
            .any(|span| span["name"].as_str().is_some_and(|name| name.starts_with("we\"ird\\\n\u{e9}")))
    );
}
