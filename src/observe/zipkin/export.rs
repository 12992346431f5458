//! The one place that uses `opentelemetry-zipkin`: it is deprecated and may vanish.
#![allow(deprecated)]

use super::client::Completing;
use super::convert::span_data;
use super::worker::{Sent, Sink};
use crate::observe::span::Span;
use http::Uri;
use opentelemetry_sdk::trace::SpanExporter;
use opentelemetry_zipkin::ZipkinExporter;
use std::sync::Arc;

/// Where Zipkin takes spans.
const SPANS: &str = "/api/v2/spans";

/// The exporter, with our client behind it.
#[derive(Debug)]
pub struct Exporter {
    zipkin: ZipkinExporter,
    client: Completing,
}

impl Exporter {
    /// An exporter to this collector; why not, if the address is unusable.
    pub fn new(url: &str) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|error| format!("{error}"))?;
        if uri.scheme_str() != Some("http") {
            return Err("only http:// is spoken".to_owned());
        }
        let host = uri.authority().ok_or("no host")?;
        let path = match uri.path() {
            "" | "/" => SPANS,
            path => path,
        };
        let client = Completing::new();
        let builder = ZipkinExporter::builder()
            .with_collector_endpoint(format!("http://{host}{path}"))
            .with_http_client(client.clone());
        let zipkin = builder.build().map_err(|error| error.to_string())?;
        Ok(Self { zipkin, client })
    }
}

impl Sink for Exporter {
    async fn send(&self, batch: &[Arc<Span>]) -> Sent {
        let data = batch.iter().map(|span| span_data(span)).collect();
        match self.zipkin.export(data).await {
            Ok(()) => Sent::Taken,
            Err(error) => {
                tracing::debug!(%error, status = self.client.status(), "spans not taken");
                match self.client.status() {
                    408 | 429 => Sent::Failed,
                    400..=499 => Sent::Refused,
                    _ => Sent::Failed,
                }
            }
        }
    }
}
