//! The operator's HTTP: a view of what others own, and no state of its own.
//!
//! | path | answer |
//! |---|---|
//! | `/` | index, live table of routes |
//! | `/ready` | 200 `ready`, 503 `draining`, or why there is no table yet |
//! | `/health`, `/admin/ping` | `pong` |
//! | `/metrics`, `/metrics.json` | all numbers: Prometheus text, JSON |
//! | `/traces`, `/traces.json` | the last traces: waterfall, Zipkin v2 JSON |
//! | `/names`, `/names.json` | current bindings, each with its explanation |
//! | `/namers.json` | what is watched in discovery, and how it stands |
//! | `/dtab.json` | the base table in force, and how its store is |
//! | `/delegator.json?path=&dtab=`, or POST of JSON with these keys | what a name would lead to, step by step |
//! | `/config` | the configuration in effect |

mod html;
mod numbers;
mod pages;
#[cfg(test)]
mod tests;
mod waterfall;

use crate::observe::{Registry, Ring};
use async_trait::async_trait;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::map_response;
use axum::response::Response;
use axum::routing::get;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderValue, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use serde_json::Value;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Time for answers that are being written when the server stops.
const GRACE: Duration = Duration::from_secs(2);

/// What the admin server asks of the rest of the gateway, so that it need not know names, bindings or configuration.
#[async_trait]
pub trait View: Send + Sync + 'static {
    /// Whether new calls are welcome: not while draining, and not before there is a table.
    ///
    /// # Errors
    /// Why not.
    fn ready(&self) -> Result<(), String>;

    /// The base table, and where it is from.
    fn table(&self) -> Value;

    /// The configuration in effect, as text.
    fn config(&self) -> String;

    /// Current bindings: a list of objects, one for each name, whose fields become columns.
    fn names(&self) -> Value;

    /// The namers that watch a source: what each watches, and how that stands.
    fn namers(&self) -> Value;

    /// What `path` would lead to under the base dtab and `dtab`, step by step.
    ///
    /// # Errors
    /// What is wrong with the path or the dtab, for people.
    async fn explain(&self, path: &str, dtab: &str) -> Result<Value, String>;
}

/// What is shown.
#[derive(Clone)]
pub struct AdminState {
    /// All numbers.
    pub registry: Arc<Registry>,
    /// The last traces, if they are kept.
    pub ring: Option<Arc<Ring>>,
    /// Everything else.
    pub view: Arc<dyn View>,
}

/// All pages.
pub fn router(state: AdminState) -> Router {
    Router::new()
        .route("/", get(pages::index))
        .route("/web/style.css", get(pages::style))
        .route("/web/live.js", get(pages::live))
        .route("/ready", get(pages::ready))
        .route("/health", get(pages::ping))
        .route("/admin/ping", get(pages::ping))
        .route("/metrics", get(pages::metrics))
        .route("/metrics.json", get(pages::metrics_json))
        .route("/traces", get(pages::traces))
        .route("/traces.json", get(pages::traces_json))
        .route("/names", get(pages::names))
        .route("/names.json", get(pages::names_json))
        .route("/namers.json", get(pages::namers_json))
        .route("/dtab.json", get(pages::table))
        .route(
            "/delegator.json",
            get(pages::delegator).post(pages::delegate).layer(DefaultBodyLimit::max(pages::MAX_ASKED)),
        )
        .route("/config", get(pages::config))
        .layer(map_response(guard))
        .with_state(state)
}

/// Serves until `shutdown` is ready, then a little longer for answers that are on their way.
///
/// # Errors
/// When the listener fails.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    let shutdown = async move {
        shutdown.await;
        stopping.cancel();
    };
    let server = axum::serve(listener, router).with_graceful_shutdown(shutdown);
    let patience = async {
        stop.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        ended = server => ended,
        () = patience => Ok(()),
    }
}

/// Pages show outside input: nothing but our own script may run, and nothing is kept by browsers.
async fn guard(mut response: Response) -> Response {
    const POLICY: &str = "default-src 'self'; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'";
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
