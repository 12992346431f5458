//! Tells a store what is in force here, so that it can prove that a change is everywhere.

use crate::names::binder::{Base, Binder};
use crate::outside::http::Http;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use serde_json::json;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How often it is told even if nothing has changed: a store forgets who is silent for 20 s.
const EVERY: Duration = Duration::from_secs(5);

/// Time for a store to take it.
const WITHIN: Duration = Duration::from_secs(2);

/// How long a store that does not know of such reports is left alone.
const UNWANTED: Duration = Duration::from_secs(60);

/// Names that are reported.
const MAX_NAMES: usize = 1000;

const PATH: &str = "/api/1/gateways";

/// Who reports.
pub(super) struct Who {
    pub id: Arc<str>,
    pub namespace: Arc<str>,
}

/// Reports to one store, until the binder is gone.
pub(super) async fn report(store: Http, who: Who, binder: Weak<Binder>) {
    let Some(mut in_force) = binder.upgrade().map(|binder| binder.in_force()) else { return };
    loop {
        let Some(names) = binder.upgrade().map(|binder| binder.names(MAX_NAMES)) else { return };
        let names: Vec<_> = names.iter().map(|name| name.as_str()).collect();
        let version = version(&in_force.borrow_and_update());
        let body = json!({"id": &*who.id, "namespace": &*who.namespace, "version": version, "names": names});
        let headers: HeaderMap =
            [(CONTENT_TYPE, HeaderValue::from_static("application/json"))].into_iter().collect();
        let sent = store.send(Method::POST, PATH, headers, body.to_string(), WITHIN).await;
        match sent {
            Ok(answer) if answer.status == StatusCode::NOT_FOUND => sleep(UNWANTED).await,
            Ok(answer) if !answer.status.is_success() => {
                tracing::debug!(store = %store.base(), status = %answer.status, "a report was not taken");
            }
            Ok(_) => {}
            Err(error) => tracing::debug!("a report was not taken: {error}"),
        }
        if let Ok(Err(_)) = timeout(EVERY, in_force.changed()).await {
            return;
        }
    }
}

fn version(base: &Base) -> Option<String> {
    Some(base.table()?.origin.as_ref()?.version.as_deref()?.to_owned())
}

/// Who this gateway is to the stores: the host's name and where its first listener is.
pub fn id(listener: std::net::SocketAddr) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    format!("{}/{listener}", if host.is_empty() { "localhost" } else { host })
}
