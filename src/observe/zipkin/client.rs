//! The HTTP client behind the exporter: completes the exporter's JSON, packs it, posts it.

use super::convert::{DEBUG, REMOTE, REMOTE_SERVICE, RESERVED, SERVICE, SHARED, TRACE};
use crate::observe::span::json::endpoint;
use async_trait::async_trait;
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::header::{CONTENT_ENCODING, HeaderValue};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use opentelemetry_http::{HttpClient, HttpError};
use serde_json::{Map, Value};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::time::Duration;
use tokio::time::timeout;

/// Time for one message to be sent and answered.
const LIMIT: Duration = Duration::from_secs(10);
/// Most that is read of an answer.
const ANSWER: usize = 64 << 10;
/// An all-zero parent: the exporter's way to say that there is none.
const NO_PARENT: &str = "0000000000000000";

/// Completes and posts. Remembers the last status, which the exporter turns into words.
#[derive(Clone, Debug)]
pub struct Completing {
    http: Client<HttpConnector, Full<Bytes>>,
    status: Arc<AtomicU16>,
}

impl Completing {
    /// A client that keeps one connection.
    pub fn new() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(LIMIT / 2));
        let http = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(1).build(connector);
        Self { http, status: Arc::default() }
    }

    /// The last status; zero while there was none.
    pub fn status(&self) -> u16 {
        self.status.load(Relaxed)
    }
}

#[async_trait]
impl HttpClient for Completing {
    async fn send_bytes(&self, request: http::Request<Bytes>) -> Result<http::Response<Bytes>, HttpError> {
        self.status.store(0, Relaxed);
        let (mut parts, body) = request.into_parts();
        let body = pack(&complete(&body)?)?;
        parts.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        let exchange = async {
            let answer = self.http.request(http::Request::from_parts(parts, Full::new(body))).await?;
            let (parts, body) = answer.into_parts();
            self.status.store(parts.status.as_u16(), Relaxed);
            let body = Limited::new(body, ANSWER).collect().await?.to_bytes();
            Ok(http::Response::from_parts(parts, body))
        };
        timeout(LIMIT, exchange).await?
    }
}

fn pack(json: &[u8]) -> std::io::Result<Bytes> {
    let mut packed = GzEncoder::new(Vec::with_capacity(json.len() / 4), Compression::fast());
    packed.write_all(json)?;
    Ok(packed.finish()?.into())
}

/// Puts the reserved attributes of every span into their places.
pub fn complete(body: &[u8]) -> serde_json::Result<Vec<u8>> {
    let mut spans: Vec<Map<String, Value>> = serde_json::from_slice(body)?;
    spans.iter_mut().for_each(complete_span);
    serde_json::to_vec(&spans)
}

fn complete_span(span: &mut Map<String, Value>) {
    let mut reserved = Map::new();
    if let Some(tags) = span.get_mut("tags").and_then(Value::as_object_mut) {
        let all = std::mem::take(tags);
        let (ours, kept) = all.into_iter().partition(|(key, _)| key.starts_with(RESERVED));
        reserved = ours;
        *tags = kept;
        // Constant on every span of ours.
        tags.remove("otel.library.name");
    }
    let text = |key: &str| reserved.get(key).and_then(Value::as_str);
    let address = text(REMOTE).and_then(|address| address.parse().ok());
    let places = [
        ("traceId", text(TRACE).map(Value::from)),
        ("localEndpoint", endpoint(text(SERVICE), None)),
        ("remoteEndpoint", endpoint(text(REMOTE_SERVICE), address)),
        ("shared", Some(Value::Bool(reserved.contains_key(SHARED)))),
        ("debug", Some(Value::Bool(reserved.contains_key(DEBUG)))),
    ];
    span.extend(places.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    if span.get("parentId").and_then(Value::as_str) == Some(NO_PARENT) {
        span.remove("parentId");
    }
}
