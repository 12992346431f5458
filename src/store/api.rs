//! The paths of the API, and what their answers are made of.
//!
//! | path | answer |
//! |---|---|
//! | `/api/1/dtabs`, `/api/1/dtabs/NS` | as namerd: read, watch, create, update, delete |
//! | `/api/1/{bind,addr,resolve,delegate,bound-names}` | as namerd: what names mean |
//! | `/api/1/dtabs/NS/history`, `.../history/VERSION`, `.../diff`, `.../rollback` | what tables were |
//! | `/api/1/follow/NS`, `/api/1/gateways`, `/api/1/dtabs/NS/propagation` | for gateways, and about them |
//! | `/`, `/health`, `/metrics` | for people, and for those who look after the process |

use super::caller::Caller;
use super::gateways::Gateways;
use super::names::Names;
use super::numbers::{self, Numbers};
use super::refusal::Refusal;
use super::rights::Rights;
use super::storage::{MAX_DTAB, Mirror, Storage, Table, check_namespace};
use super::{dry, gateways, meaning, pages, past, tables};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, RawQuery, Request};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::{Stream, StreamExt};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Longest content of a request.
const MAX_BODY: usize = MAX_DTAB;

/// Time for an answer to begin: the longest wait for gateways, and some more.
const ANSWER_WITHIN: Duration = Duration::from_secs(90);

/// Most answers that go on for ever, at once.
pub(super) const MAX_STREAMS: usize = 4096;

/// What every request works with.
pub(super) struct Api {
    pub storage: Arc<dyn Storage>,
    pub mirror: watch::Receiver<Mirror>,
    pub rights: Rights,
    pub gateways: Gateways,
    pub names: Names,
    pub numbers: Numbers,
    pub streams: Arc<Semaphore>,
    pub stop: CancellationToken,
}

pub(super) type Shared = Arc<Api>;

pub(super) fn router(api: Shared) -> Router {
    let dtab = get(tables::read).post(tables::create).put(tables::update).delete(tables::delete);
    Router::new()
        .route("/api/1/dtabs", get(tables::list))
        .route("/api/1/dtabs/{namespace}", dtab)
        .route("/api/1/dtabs/{namespace}/history", get(past::history))
        .route("/api/1/dtabs/{namespace}/history/{*version}", get(past::then))
        .route("/api/1/dtabs/{namespace}/diff", get(past::diff))
        .route("/api/1/dtabs/{namespace}/rollback", post(past::rollback))
        .route("/api/1/dtabs/{namespace}/propagation", get(gateways::propagation))
        .route("/api/1/follow/{namespace}", get(gateways::follow))
        .route("/api/1/gateways", get(gateways::list).post(gateways::report))
        .route("/api/1/bind/{namespace}", get(meaning::bind))
        .route("/api/1/addr/{namespace}", get(meaning::addr))
        .route("/api/1/resolve/{namespace}", get(meaning::resolve))
        .route("/api/1/delegate/{namespace}", get(meaning::delegate))
        .route("/api/1/bound-names", get(meaning::bound_names))
        .route("/api/1/bound-names/{namespace}", get(meaning::bound_names_of))
        .route("/", get(pages::index))
        .route("/health", get(pages::health))
        .route("/metrics", get(numbers::metrics))
        .fallback(pages::unknown)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(from_fn(in_time))
        .with_state(api)
}

/// A request that does not end, or an answer that does not begin.
async fn in_time(request: Request, next: Next) -> Response {
    let late = || Refusal(StatusCode::REQUEST_TIMEOUT, "this took too long".into()).into_response();
    timeout(ANSWER_WITHIN, next.run(request)).await.unwrap_or_else(|_| late())
}

impl Api {
    /// The mirror, once it shows anything.
    ///
    /// # Errors
    /// As long as the storage could never be read.
    pub(super) fn mirrored(&self) -> Result<Mirror, Refusal> {
        let mirror = self.mirror.borrow().clone();
        if mirror.known {
            return Ok(mirror);
        }
        let why = mirror.outage.as_deref().unwrap_or("it is being read");
        Err(Refusal::later(format!("the tables are not known yet: {why}")))
    }

    /// The table of a namespace that the caller may read; none if there is none.
    pub(super) fn table(&self, caller: &Caller, namespace: &str) -> Result<Option<Table>, Refusal> {
        check_namespace(namespace).map_err(Refusal::bad)?;
        caller.may_read(namespace)?;
        Ok(self.mirrored()?.tables.get(namespace).cloned())
    }

    /// An answer that goes on until the stream ends, the reader goes, or the store stops.
    ///
    /// # Errors
    /// If there are too many of these already.
    pub(super) fn stream(
        &self,
        content_type: &'static str,
        lines: impl Stream<Item = String> + Send + 'static,
    ) -> Result<Response, Refusal> {
        let permit = Arc::clone(&self.streams).try_acquire_owned();
        let permit =
            permit.map_err(|_| Refusal::later(format!("{MAX_STREAMS} streams are open: no more now")))?;
        let lines = lines.take_until(self.stop.clone().cancelled_owned()).map(move |mut line| {
            let _held = &permit;
            line.push('\n');
            Ok::<_, std::convert::Infallible>(Bytes::from(line))
        });
        Ok(([(CONTENT_TYPE, content_type)], Body::from_stream(lines)).into_response())
    }
}

/// The query of a request; of a key that is given twice, the last one counts.
pub(super) struct Asked(HashMap<String, String>);

impl Asked {
    /// Reads a query. As in forms, `+` is a blank: namerd's clients write it so. No path or dtab holds a plus, and for tags of
    /// versions a blank is one.
    ///
    /// # Errors
    /// Escapes that make no text.
    pub(super) fn of(RawQuery(query): RawQuery) -> Result<Self, Refusal> {
        let mut found = HashMap::new();
        let query = query.unwrap_or_default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = unescape(value)
                .ok_or_else(|| Refusal::bad(format!("`{key}` in the query is not escaped UTF-8")))?;
            found.insert(key.to_owned(), value);
        }
        Ok(Self(found))
    }

    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// True, as namerd reads it.
    pub(super) fn flag(&self, key: &str) -> bool {
        matches!(self.get(key), Some("true" | "1" | "t"))
    }

    /// A whole number up to `most`; larger ones are cut.
    pub(super) fn count(&self, key: &str, default: usize, most: usize) -> Result<usize, Refusal> {
        let Some(text) = self.get(key) else { return Ok(default) };
        let read = text.parse::<usize>();
        read.map(|count| count.min(most))
            .map_err(|_| Refusal::bad(format!("`{key}` is a whole number, not `{text}`")))
    }

    /// Whether nothing shall be written.
    pub(super) fn dry(&self) -> bool {
        self.flag(dry::FLAG)
    }
}

fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(if byte == b'+' { b' ' } else { byte });
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (high, low) = (digit(rest.next())?, digit(rest.next())?);
        bytes.push((high * 16 + low) as u8);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_read() {
        let asked = |text: &str| Asked::of(RawQuery(Some(text.into()))).map_err(|_| ());
        let query = asked("path=%2F%23/a&watch=t&x&dtab=/a%20=>+/b%2B=c&limit=7&&").unwrap();
        assert_eq!(query.get("path"), Some("/#/a"));
        assert_eq!(query.get("dtab"), Some("/a => /b+=c"));
        assert_eq!(query.get("x"), Some(""));
        assert!(query.flag("watch") && !query.flag("x") && !query.flag("y"));
        assert_eq!(query.count("limit", 1, 5).map_err(|_| ()), Ok(5));
        assert!(query.count("path", 1, 5).is_err());
        for wrong in ["a=%", "a=%2", "a=%zz", "a=%ff"] {
            assert!(asked(wrong).is_err(), "{wrong}");
        }
    }
}
