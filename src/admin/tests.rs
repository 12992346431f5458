use super::*;
use crate::observe::Tracer;
use crate::observe::span::{Recorder, Settings, tags};
use crate::observe::stats::{Limits, Outcome};
use axum::body::{Body, to_bytes};
use http::{Request, StatusCode};
use muxgate_rpc::{Context, Failure, Response as Reply, Why};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tokio::time::Instant;
use tower::ServiceExt;

const ODD: &str = "<script>alert(1)</script>\"&'\\\né";

struct House {
    ready: AtomicBool,
}

#[async_trait]
impl View for House {
    fn ready(&self) -> Result<(), String> {
        self.ready.load(Relaxed).then_some(()).ok_or("draining".into())
    }

    fn table(&self) -> Value {
        json!({"dtab": "/svc=>/x"})
    }

    fn config(&self) -> String {
        "listeners: []\n".to_owned()
    }

    fn names(&self) -> Value {
        json!([{"path": ODD, "bound": ["/#/fs/a", "/#/fs/b"]}, {"path": "/svc/b", "endpoints": 3}])
    }

    fn namers(&self) -> Value {
        json!([{"namer": ODD, "watched": 0, "subjects": []}])
    }

    async fn explain(&self, path: &str, dtab: &str) -> Result<Value, String> {
        match path {
            "/slow" => std::future::pending().await,
            "bad" => Err("a path begins with /".to_owned()),
            path => Ok(json!({"path": path, "dtab": dtab})),
        }
    }
}

fn house() -> (Arc<House>, AdminState) {
    let house = Arc::new(House { ready: AtomicBool::new(true) });
    let ring = Ring::new(10, 10);
    let view = Arc::clone(&house) as Arc<dyn View>;
    (house, AdminState { registry: Registry::new(Limits::default()), ring: Some(ring), view })
}

async fn ask(state: &AdminState, path: &str) -> (StatusCode, String, String) {
    let request = Request::get(path).body(Body::empty()).expect("a request");
    let answer = router(state.clone()).oneshot(request).await.expect("an answer");
    let status = answer.status();
    let kind = answer.headers()[http::header::CONTENT_TYPE].to_str().expect("text").to_owned();
    let body = to_bytes(answer.into_body(), 1 << 20).await.expect("a body");
    (status, kind, String::from_utf8(body.to_vec()).expect("UTF-8"))
}

fn trace_one(state: &AdminState, method: &str) {
    let recorder = Arc::clone(state.ring.as_ref().expect("a ring")) as Arc<dyn Recorder>;
    let tracer = Tracer::new(
        &Settings { sample_rate: Some(1.0), ..Settings::default() },
        Some(recorder),
        None,
        Arc::default(),
    );
    let mut ctx = Context::default();
    let mut server = tracer.server(&mut ctx, Instant::now(), "127.0.0.1:5".parse().ok(), "in");
    server.method(method.as_bytes());
    let mut client = tracer.client(ctx.trace, true, Instant::now()).1;
    client.method(method.as_bytes());
    client.remote_service(ODD);
    client.tag(tags::ROUTE, ODD);
    client.finish(&Err(Failure::new(Why::Timeout, ODD)));
    server.finish(&Ok(Reply::nothing()));
}

#[tokio::test(start_paused = true)]
async fn readiness_follows_the_gateway() {
    let (house, state) = house();
    assert_eq!(ask(&state, "/ready").await.0, StatusCode::OK);
    house.ready.store(false, Relaxed);
    let (status, _, body) = ask(&state, "/ready").await;
    assert_eq!((status, body.as_str()), (StatusCode::SERVICE_UNAVAILABLE, "draining\n"));
    for path in ["/health", "/admin/ping"] {
        assert_eq!(ask(&state, path).await.2, "pong\n");
    }
    assert_eq!(ask(&state, "/config").await.2, "listeners: []\n");
}

/// BC-20: outside input stays text on every page, and in JSON.
#[tokio::test(start_paused = true)]
async fn odd_names_are_text_everywhere() {
    let (_, state) = house();
    let route = state.registry.route(ODD);
    route.begin(Instant::now()).end_as(Outcome::Success, Instant::now());
    trace_one(&state, ODD);
    for path in ["/", "/traces", "/names"] {
        let (status, kind, body) = ask(&state, path).await;
        assert_eq!((status, kind.as_str()), (StatusCode::OK, "text/html; charset=utf-8"), "{path}");
        assert!(!body.contains("<script>alert"), "{path}");
        assert!(
            path == "/" || body.contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&amp;&#39;"),
            "{path}"
        );
    }
    let (_, kind, body) = ask(&state, "/metrics.json").await;
    assert_eq!(kind, "application/json");
    let numbers: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(numbers["routes"][0]["route"], ODD);
    assert_eq!(numbers["routes"][0]["calls"]["success"], 1);
    let (_, _, body) = ask(&state, "/traces.json").await;
    let traces: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(traces[0][0]["remoteEndpoint"]["serviceName"], ODD);
    assert_eq!(traces[0][1]["kind"], "SERVER");
    let (_, kind, body) = ask(&state, "/metrics").await;
    assert_eq!(kind, "text/plain; version=0.0.4; charset=utf-8");
    assert!(
        body.contains("muxgate_route_requests_total{route=\"<script>alert(1)</script>\\\"&'\\\\\\né\"} 1")
    );
}

#[tokio::test(start_paused = true)]
async fn explanations_have_a_time_limit_and_reasons() {
    let (_, state) = house();
    let (status, _, body) = ask(&state, "/delegator.json?path=/svc/a&dtab=/svc%3D%3E/b").await;
    assert_eq!((status, body.as_str()), (StatusCode::OK, r#"{"dtab":"/svc=>/b","path":"/svc/a"}"#));
    assert_eq!(ask(&state, "/delegator.json?path=bad").await.0, StatusCode::BAD_REQUEST);
    assert_eq!(ask(&state, "/delegator.json").await.0, StatusCode::BAD_REQUEST);
    assert_eq!(ask(&state, "/delegator.json?path=/slow").await.0, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test(start_paused = true)]
async fn explanations_are_asked_for_in_json_too() {
    let (_, state) = house();
    let post = async |kind: &str, body: &str| {
        let request =
            Request::post("/delegator.json").header("content-type", kind).body(Body::from(body.to_owned()));
        let answer = router(state.clone()).oneshot(request.expect("a request")).await.expect("an answer");
        let status = answer.status().as_u16();
        let body = to_bytes(answer.into_body(), 1 << 20).await.expect("a body");
        (status, String::from_utf8(body.to_vec()).expect("UTF-8"))
    };
    let good = r#"{"namespace": "default", "path": "/svc/a", "dtab": "/svc=>/b"}"#;
    let told = (200, r#"{"dtab":"/svc=>/b","path":"/svc/a"}"#.to_owned());
    assert_eq!(post("application/json; charset=utf-8", good).await, told);
    assert_eq!(post("application/json", r#"{"path": "/svc/a"}"#).await.0, 200);
    for bad in [r#"{"path": "bad"}"#, r#"{"dtab": ""}"#, "{", ""] {
        assert_eq!(post("application/json", bad).await.0, 400, "{bad}");
    }
    assert_eq!(post("application/dtab", good).await.0, 415);
    assert_eq!(post("application/json", r#"{"path": "/slow"}"#).await.0, 503);
    assert_eq!(post("application/json", &" ".repeat(pages::MAX_ASKED + 1)).await.0, 413);
    let put = Request::put("/delegator.json").body(Body::empty()).expect("a request");
    let answer = router(state.clone()).oneshot(put).await.expect("an answer");
    assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test(start_paused = true)]
async fn a_waterfall_nests_attempts_below_their_call() {
    let (_, state) = house();
    trace_one(&state, "add");
    let body = ask(&state, "/traces").await.2;
    let (server, client) = (body.find("bar server"), body.find("bar client failed"));
    assert!(server.is_some() && server < client, "{body}");
    assert!(body.contains("padding-left:1em"));
    let off = AdminState { ring: None, ..state };
    assert!(ask(&off, "/traces").await.2.contains("tracing is off"));
    assert_eq!(ask(&off, "/traces.json").await.2, "[]");
}

#[tokio::test]
async fn the_server_stops_when_told() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let stop = CancellationToken::new();
    let serving = tokio::spawn(serve(listener, router(house().1), stop.clone().cancelled_owned()));
    stop.cancel();
    assert!(serving.await.expect("no panic").is_ok());
}
