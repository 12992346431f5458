use super::export::Exporter;
use super::worker::{Sent, Sink};
use super::*;
use crate::observe::span::{Settings, Tracer, tags};
use axum::http::StatusCode;
use bytes::Bytes;
use flate2::read::GzDecoder;
use muxgate_rpc::{Context, Failure, Response, Why};
use muxgate_wire::mux::context::TraceContext;
use serde_json::{Value, json};
use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tokio::net::TcpListener;

/// A collector that answers by a script, and with the last word for ever.
#[derive(Clone, Default)]
struct Script {
    words: Arc<Mutex<Vec<Sent>>>,
    attempts: Arc<AtomicUsize>,
    silent: bool,
}

impl Script {
    fn of(words: &[Sent]) -> Self {
        Self { words: Arc::new(Mutex::new(words.iter().rev().copied().collect())), ..Self::default() }
    }
}

impl Sink for Script {
    async fn send(&self, _: &[Arc<Span>]) -> Sent {
        self.attempts.fetch_add(1, Relaxed);
        if self.silent {
            std::future::pending::<()>().await;
        }
        let mut words = self.words.lock();
        if words.len() > 1 { words.pop() } else { words.last().copied() }.unwrap_or(Sent::Failed)
    }
}

fn tracer(zipkin: &Arc<Zipkin>, stats: &Arc<SpanStats>) -> Tracer {
    let settings = Settings { service: "gate".to_owned(), sample_rate: Some(1.0) };
    Tracer::new(&settings, Some(Arc::clone(zipkin) as Arc<dyn Recorder>), None, Arc::clone(stats))
}

fn make_spans(tracer: &Tracer, count: usize) {
    for _ in 0..count {
        tracer.client(None, true, Instant::now()).1.finish(&Ok(Response::nothing()));
    }
}

fn numbers(stats: &SpanStats) -> [u64; 4] {
    [stats.recorded.get(), stats.exported.get(), stats.failed.get(), stats.dropped.get()]
}

/// Time for all attempts.
const LONG: Duration = Duration::from_secs(600);

async fn play(script: Script, room: usize, spans: usize) -> [u64; 4] {
    let stats = Arc::new(SpanStats::default());
    let zipkin = Zipkin::with(script, Arc::clone(&stats), room);
    make_spans(&tracer(&zipkin, &stats), spans);
    tokio::time::sleep(LONG).await;
    zipkin.shutdown(Instant::now() + Duration::from_secs(1)).await;
    numbers(&stats)
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_waited_for() {
    let script = Script::of(&[Sent::Failed, Sent::Failed, Sent::Taken]);
    assert_eq!(play(script.clone(), 100, 3).await, [3, 3, 0, 0]);
    assert_eq!(script.attempts.load(Relaxed), 3);
}

#[tokio::test(start_paused = true)]
async fn a_refused_batch_is_not_sent_again() {
    let script = Script::of(&[Sent::Refused]);
    assert_eq!(play(script.clone(), 100, 3).await, [3, 0, 3, 0]);
    assert_eq!(script.attempts.load(Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_dead_collector_is_given_up_and_a_full_queue_drops() {
    assert_eq!(play(Script::of(&[Sent::Failed]), 10, 25).await, [25, 0, 10, 15]);
}

#[tokio::test(start_paused = true)]
async fn a_silent_collector_holds_up_nobody_and_the_flush_has_an_end() {
    let stats = Arc::new(SpanStats::default());
    let zipkin = Zipkin::with(Script { silent: true, ..Script::default() }, Arc::clone(&stats), 10);
    make_spans(&tracer(&zipkin, &stats), 12);
    let begun = Instant::now();
    zipkin.shutdown(begun + Duration::from_secs(2)).await;
    assert_eq!(begun.elapsed(), Duration::from_secs(2));
    assert_eq!(numbers(&stats), [12, 0, 0, 12]);
    make_spans(&tracer(&zipkin, &stats), 1);
    assert_eq!(stats.dropped.get(), 13);
}

#[tokio::test]
async fn addresses_are_checked() {
    for good in ["http://127.0.0.1:9411", "http://zipkin:9411/", "http://[::1]:9411/api/v2/spans"] {
        assert!(Exporter::new(good).is_ok(), "{good}");
    }
    for bad in ["", "zipkin:9411", "https://zipkin:9411", "/api/v2/spans", "http://"] {
        assert!(Exporter::new(bad).is_err(), "{bad}");
    }
    let message = Zipkin::start("ftp://a", Arc::default()).expect_err("no http").to_string();
    assert_eq!(message, "\"ftp://a\" is no address of a Zipkin collector: only http:// is spoken");
}

/// A collector over real HTTP: gives its address, and what it is sent.
async fn collector(answer: StatusCode) -> (String, mpsc::Receiver<Vec<Value>>) {
    let (sender, received) = mpsc::channel(10);
    let take = move |headers: axum::http::HeaderMap, body: Bytes| async move {
        assert_eq!(headers["content-encoding"], "gzip");
        assert_eq!(headers["content-type"], "application/json");
        let mut text = String::new();
        GzDecoder::new(&body[..]).read_to_string(&mut text).expect("gzip");
        sender
            .send(serde_json::from_str(&text).expect("a list of spans"))
            .await
            .expect("a test that listens");
        answer
    };
    let router = axum::Router::new().route("/api/v2/spans", axum::routing::post(take));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, received)
}

const LONG_ID: TraceContext = TraceContext {
    span_id: 0x1111_1111_1111_1111,
    parent_id: 0x2222_2222_2222_2222,
    trace_id: 0x463a_c35c_9f64_13ad,
    trace_id_high: Some(0x4848_5a39_53bb_6124),
    flags: 7,
};

#[tokio::test]
async fn the_exporters_json_is_completed() {
    let (url, mut received) = collector(StatusCode::ACCEPTED).await;
    let stats = Arc::new(SpanStats::default());
    let zipkin = Zipkin::start(&url, Arc::clone(&stats)).expect("a good address");
    let tracer = tracer(&zipkin, &stats);
    let mut ctx = Context { trace: Some(LONG_ID), client_id: Some("web".into()), ..Context::default() };
    let peer = "127.0.0.1:5".parse().ok();
    let mut server = tracer.server(&mut ctx, Instant::now(), peer, "in");
    server.method(b"we\"ird\\\n\xc3\xa9\xff");
    let (sent, mut client) = tracer.client(ctx.trace, true, Instant::now());
    client.method(b"add");
    client.remote("[::1]:9000".parse().expect("an address"));
    client.remote_service("/#/fs/users");
    client.tag(tags::ATTEMPT, 1);
    client.note("requeue");
    client.finish(&Err(Failure::new(Why::Timeout, "too late")));
    server.finish(&Ok(Response::nothing()));
    make_spans(&tracer, 1);
    zipkin.shutdown(Instant::now() + Duration::from_secs(10)).await;
    assert_eq!(numbers(&stats), [3, 3, 0, 0]);
    let spans = received.recv().await.expect("a batch");
    let [client, server, root] = spans.as_slice() else { panic!("three spans, not {spans:?}") };

    assert_eq!(client["traceId"], "48485a3953bb6124463ac35c9f6413ad");
    assert_eq!(
        (&client["kind"], &client["name"], &client["debug"]),
        (&json!("CLIENT"), &json!("add"), &json!(true))
    );
    assert_eq!(client["id"], format!("{:016x}", sent.span_id));
    assert_eq!((&client["parentId"], &client["shared"]), (&json!("1111111111111111"), &json!(false)));
    assert_eq!(client["localEndpoint"], json!({"serviceName": "gate"}));
    assert_eq!(client["remoteEndpoint"], json!({"serviceName": "/#/fs/users", "ipv6": "::1", "port": 9000}));
    assert_eq!(client["annotations"][0]["value"], "requeue");
    let wanted = json!({"attempt": "1", "error": "timeout: too late", "otel.status_code": "ERROR"});
    assert_eq!(client["tags"], wanted);

    assert_eq!((&server["kind"], &server["shared"]), (&json!("SERVER"), &json!(true)));
    assert_eq!(server["name"], "we\"ird\\\né\u{fffd}");
    assert_eq!(
        (&server["id"], &server["parentId"]),
        (&json!("1111111111111111"), &json!("2222222222222222"))
    );
    assert_eq!(server["remoteEndpoint"], json!({"serviceName": "web", "ipv4": "127.0.0.1", "port": 5}));
    assert_eq!(server["tags"], json!({"muxgate.listener": "in", "peer": "127.0.0.1:5"}));

    assert_eq!(root.get("parentId"), None);
    assert_eq!(root["traceId"].as_str().map(str::len), Some(16));
    assert_eq!(root["traceId"], root["id"]);
}

#[tokio::test]
async fn what_the_collector_refuses_is_counted_once() {
    let (url, mut received) = collector(StatusCode::BAD_REQUEST).await;
    let stats = Arc::new(SpanStats::default());
    let zipkin = Zipkin::start(&url, Arc::clone(&stats)).expect("a good address");
    make_spans(&tracer(&zipkin, &stats), 2);
    zipkin.shutdown(Instant::now() + Duration::from_secs(10)).await;
    assert_eq!(numbers(&stats), [2, 0, 2, 0]);
    assert_eq!(received.recv().await.map(|batch| batch.len()), Some(2));
}
