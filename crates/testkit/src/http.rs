//! What tests do over HTTP: GET and POST.

use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use std::time::Duration;

/// How long an answer may take.
pub const LIMIT: Duration = Duration::from_secs(30);

/// Fetches `url`: the status and the body as text.
///
/// # Errors
/// Why there was no answer, or not in UTF-8.
pub async fn get(url: &str) -> Result<(u16, String), String> {
    send(Request::get(url).body(Full::default()), url).await
}

/// Posts `body` to `url`: the status and the body of the answer as text.
///
/// # Errors
/// Why there was no answer, or not in UTF-8.
pub async fn post(url: &str, body: impl Into<Bytes>) -> Result<(u16, String), String> {
    send(Request::post(url).body(Full::new(body.into())), url).await
}

async fn send(
    request: Result<Request<Full<Bytes>>, hyper::http::Error>,
    url: &str,
) -> Result<(u16, String), String> {
    let request = request.map_err(|e| format!("{url}: {e}"))?;
    let fetch = async {
        let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
        let answer = client.request(request).await.map_err(|e| format!("{url}: {e:?}"))?;
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.map_err(|e| format!("{url}: {e}"))?.to_bytes();
        let text = String::from_utf8(body.to_vec()).map_err(|e| format!("{url}: {e}"))?;
        Ok((status, text))
    };
    tokio::time::timeout(LIMIT, fetch).await.map_err(|_| format!("{url}: no answer within {LIMIT:?}"))?
}

/// As [`get`], for tests without a runtime.
///
/// # Errors
/// As [`get`].
///
/// # Panics
/// Inside a runtime.
pub fn get_blocking(url: &str) -> Result<(u16, String), String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    runtime.block_on(get(url))
}
