//! A span as Zipkin v2 JSON, for our own pages.

use super::record::{Kind, Span, since_epoch_us};
use serde_json::{Map, Value, json};
use std::net::SocketAddr;

/// Zipkin's name of a kind.
pub fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Server => "SERVER",
        Kind::Client => "CLIENT",
    }
}

/// An endpoint; None when nothing is known of it.
pub fn endpoint(service: Option<&str>, address: Option<SocketAddr>) -> Option<Value> {
    let mut endpoint = Map::new();
    if let Some(service) = service.filter(|service| !service.is_empty()) {
        endpoint.insert("serviceName".into(), service.into());
    }
    if let Some(address) = address {
        let ip = if address.is_ipv4() { "ipv4" } else { "ipv6" };
        endpoint.insert(ip.into(), address.ip().to_string().into());
        endpoint.insert("port".into(), address.port().into());
    }
    (!endpoint.is_empty()).then_some(Value::Object(endpoint))
}

/// One span.
pub fn span(span: &Span) -> Value {
    let mut tags: Map<String, Value> =
        span.tags.iter().map(|(key, value)| ((*key).to_owned(), value.as_str().into())).collect();
    if let Some(error) = &span.error {
        tags.insert("error".into(), error.as_str().into());
    }
    let notes = span.notes.iter().map(|(at, text)| json!({"timestamp": since_epoch_us(*at), "value": text}));
    let mut out = json!({
        "traceId": span.trace_hex(),
        "id": format!("{:016x}", span.id),
        "kind": kind(span.kind),
        "name": span.name,
        "timestamp": span.start_us(),
        "duration": span.duration_us(),
        "localEndpoint": {"serviceName": &*span.service},
        "annotations": notes.collect::<Vec<_>>(),
        "tags": tags,
    });
    if let Some(fields) = out.as_object_mut() {
        let parent = span.parent.map(|parent| format!("{parent:016x}").into());
        let remote = endpoint(span.remote_service.as_deref(), span.remote);
        let flag = |set: bool| set.then_some(Value::Bool(true));
        let rest = [
            ("parentId", parent),
            ("remoteEndpoint", remote),
            ("shared", flag(span.shared)),
            ("debug", flag(span.debug)),
        ];
        fields.extend(rest.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    }
    out
}
