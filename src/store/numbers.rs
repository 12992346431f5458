//! `/metrics`: counts of what the store holds and does. They name no namespace, so no right is asked for.

use super::api::{Api, MAX_STREAMS, Shared};
use super::refusal::Refusal;
use crate::observe::prometheus::CONTENT_TYPE as PROMETHEUS;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// What is counted as it happens.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// Changes that were made.
    pub made: Counter,
    /// Changes that were not: no right, a condition that did not hold, a storage that did not do it.
    pub refused: Counter,
}

/// `GET /metrics`.
pub(super) async fn metrics(State(api): State<Shared>) -> Result<Response, Refusal> {
    let mut out = String::new();
    let written = encode(&mut out, &registry(&api));
    written.map_err(|error| Refusal(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    Ok(([(CONTENT_TYPE, PROMETHEUS)], out).into_response())
}

fn registry(api: &Api) -> Registry {
    let mirror = api.mirror.borrow().clone();
    let gateways = api.gateways.rows();
    let now = |namespace: &str| mirror.tables.get(namespace).map(|table| table.version);
    let behind = gateways.iter().filter(|row| row.2 != now(&row.0)).count();
    let mut registry = Registry::with_prefix("muxgate_store");
    let mut gauge = |name: &str, help: &str, value: usize| {
        registry.register(name, help, ConstGauge::new(value as i64));
    };
    gauge("namespaces", "Tables", mirror.tables.len());
    gauge("gateways", "Gateways heard of in the last 20 s", gateways.len());
    gauge("gateways_behind", "Those that run another version than the newest", behind);
    gauge("streams", "Answers that go on", MAX_STREAMS.saturating_sub(api.streams.available_permits()));
    let up = mirror.known && mirror.outage.is_none();
    gauge("storage_up", "1 if the storage can be asked", usize::from(up));
    registry.register("changes", "Changes made", api.numbers.made.clone());
    registry.register("changes_refused", "Changes that were not made", api.numbers.refused.clone());
    registry
}
