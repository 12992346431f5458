//! A stub of the Zipkin collector: takes batches of spans by HTTP, packed or not, and keeps them as they came.

use flate2::read::GzDecoder;
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::convert::Infallible;
use std::io::Read;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// How long spans are waited for.
pub const LIMIT: Duration = Duration::from_secs(30);

/// A listening collector. Dropping it closes everything.
pub struct Collector {
    addr: SocketAddr,
    spans: Arc<watch::Sender<Vec<Value>>>,
    accepting: JoinHandle<()>,
}

impl Collector {
    /// Listens on a free port of 127.0.0.1.
    ///
    /// # Panics
    /// If that fails.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let addr = listener.local_addr().expect("a bound socket has an address");
        let spans = Arc::new(watch::Sender::new(Vec::new()));
        let accepting = tokio::spawn(accept(listener, spans.clone()));
        Self { addr, spans, accepting }
    }

    /// Its address as a URL without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// All spans that came.
    pub fn spans(&self) -> Vec<Value> {
        self.spans.borrow().clone()
    }

    /// Waits for `n` spans.
    ///
    /// # Panics
    /// With those that came, if they are too few in time.
    pub async fn wait(&self, n: usize) -> Vec<Value> {
        let mut spans = self.spans.subscribe();
        let enough = tokio::time::timeout(LIMIT, spans.wait_for(|spans| spans.len() >= n)).await;
        match enough {
            Ok(spans) => spans.expect("the collector is here").clone(),
            Err(_) => panic!("waited for {n} spans, have {:#?}", self.spans()),
        }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, spans: Arc<watch::Sender<Vec<Value>>>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let spans = spans.clone();
        connections.spawn(async move {
            let service = service_fn(|request| take(request, &spans));
            // A connection that breaks is the sender's affair.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

/// As Zipkin: 202 for a list of spans, 400 for anything else.
async fn take(
    request: Request<Incoming>,
    spans: &watch::Sender<Vec<Value>>,
) -> Result<Response<Empty<Bytes>>, Infallible> {
    let packed = request.headers().get("content-encoding").is_some_and(|value| value == "gzip");
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let text = if packed { unpack(&body) } else { body.to_vec() };
    let mut answer = Response::new(Empty::new());
    *answer.status_mut() = match serde_json::from_slice::<Vec<Value>>(&text) {
        Ok(batch) => {
            spans.send_modify(|spans| spans.extend(batch));
            StatusCode::ACCEPTED
        }
        Err(_) => StatusCode::BAD_REQUEST,
    };
    Ok(answer)
}

fn unpack(body: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    // What cannot be unpacked is no JSON either.
    let _ = GzDecoder::new(body).read_to_end(&mut text);
    text
}
