//! Tables: listed, read, watched, changed, as namerd does it.

use super::api::{Api, Asked, Shared};
use super::caller::Caller;
use super::dry;
use super::refusal::Refusal;
use super::rights;
use super::storage::{Expect, MAX_DTAB, Mirror, StorageError, Table, Version, Write, check_namespace};
use super::text::{self, Form, JSON};
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG};
use http::{HeaderMap, HeaderName, StatusCode};
use muxgate_wire::name::Dtab;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;
use tokio::time::timeout;

/// Says why the storage cannot be asked, beside what was last known.
const OUTAGE: HeaderName = HeaderName::from_static("muxgate-outage");

/// How long an answer to a change waits until the change is seen by those who read.
const SEEN_WITHIN: Duration = Duration::from_secs(2);

/// How often a change that looks at what there was is tried again when it was overtaken.
const ATTEMPTS: usize = 5;

/// `GET /api/1/dtabs`.
pub(super) async fn list(
    State(api): State<Shared>,
    caller: Caller,
    query: RawQuery,
) -> Result<Response, Refusal> {
    let seen = move |mirror: &Mirror| {
        let names: Vec<_> = mirror.tables.keys().filter(|name| caller.sees(name)).collect();
        serde_json::Value::from_iter(names.into_iter().map(String::as_str)).to_string()
    };
    let mirror = api.mirrored()?;
    if !Asked::of(query)?.flag("watch") {
        return Ok(answer(&mirror, JSON, None, seen(&mirror)));
    }
    let lines = unfold((api.mirror.clone(), None), move |(mut mirror, last)| {
        let seen = seen.clone();
        async move {
            loop {
                let now = seen(&mirror.borrow_and_update());
                if last.as_ref() != Some(&now) {
                    return Some((now.clone(), (mirror, Some(now))));
                }
                mirror.changed().await.ok()?;
            }
        }
    });
    api.stream(JSON, lines)
}

/// `GET /api/1/dtabs/NS`.
pub(super) async fn read(
    State(api): State<Shared>,
    Path(namespace): Path<String>,
    caller: Caller,
    headers: HeaderMap,
    query: RawQuery,
) -> Result<Response, Refusal> {
    let table = api.table(&caller, &namespace)?.ok_or_else(|| Refusal::absent(&namespace))?;
    let form = Form::wanted(&headers);
    if Asked::of(query)?.flag("watch") {
        return api.stream(form.content_type(), versions(api.mirror.clone(), namespace, form));
    }
    Ok(answer(&api.mirrored()?, form.content_type(), Some(table.version), form.show(&table)?))
}

/// A table and each that it becomes. Ends when it is deleted, or is no table any more.
fn versions(
    mirror: watch::Receiver<Mirror>,
    namespace: String,
    form: Form,
) -> impl futures_util::Stream<Item = String> + Send {
    unfold((mirror, namespace, None), move |(mut mirror, namespace, last)| async move {
        loop {
            let table = mirror.borrow_and_update().tables.get(&namespace).cloned()?;
            if last != Some(table.version) {
                return Some((form.show(&table).ok()?, (mirror, namespace, Some(table.version))));
            }
            mirror.changed().await.ok()?;
        }
    })
}

/// An answer from the mirror.
pub(super) fn answer(
    mirror: &Mirror,
    kind: &'static str,
    version: Option<Version>,
    body: String,
) -> Response {
    let mut response = ([(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-cache")], body).into_response();
    let headers = response.headers_mut();
    if let Some(tag) = version.and_then(|version| version.to_string().parse().ok()) {
        headers.insert(ETAG, tag);
    }
    if let Some(why) = mirror.outage.as_ref().and_then(|why| why.escape_default().to_string().parse().ok()) {
        headers.insert(OUTAGE, why);
    }
    response
}

/// `POST /api/1/dtabs/NS`.
pub(super) async fn create(
    State(api): State<Shared>,
    Path(namespace): Path<String>,
    caller: Caller,
    headers: HeaderMap,
    query: RawQuery,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Refusal> {
    let dtab = Some(content(&headers, body)?);
    let dry = Asked::of(query)?.dry();
    change(&api, &caller, Change { namespace, dtab, expect: Expect::Absent, dry }).await
}

/// `PUT /api/1/dtabs/NS`.
pub(super) async fn update(
    State(api): State<Shared>,
    Path(namespace): Path<String>,
    caller: Caller,
    headers: HeaderMap,
    query: RawQuery,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Refusal> {
    let dtab = Some(content(&headers, body)?);
    let expect = expected(&api, &headers, &namespace)?.unwrap_or(Expect::Anything);
    let dry = Asked::of(query)?.dry();
    change(&api, &caller, Change { namespace, dtab, expect, dry }).await
}

/// `DELETE /api/1/dtabs/NS`.
pub(super) async fn delete(
    State(api): State<Shared>,
    Path(namespace): Path<String>,
    caller: Caller,
    headers: HeaderMap,
    query: RawQuery,
) -> Result<Response, Refusal> {
    let expect = expected(&api, &headers, &namespace)?.unwrap_or(Expect::Present);
    let dry = Asked::of(query)?.dry();
    change(&api, &caller, Change { namespace, dtab: None, expect, dry }).await
}

fn content(headers: &HeaderMap, body: Result<Bytes, BytesRejection>) -> Result<Dtab, Refusal> {
    let body = body.map_err(|error| Refusal(error.status(), error.body_text()))?;
    text::read(headers, &body)
}

/// What `If-Match` expects.
pub(super) fn expected(api: &Api, headers: &HeaderMap, namespace: &str) -> Result<Option<Expect>, Refusal> {
    let now = api.mirror.borrow().tables.get(namespace).map(|table| table.version);
    text::if_match(headers, now)
}

/// A change that a caller wants.
pub(super) struct Change {
    pub namespace: String,
    /// None: it is deleted.
    pub dtab: Option<Dtab>,
    pub expect: Expect,
    /// Nothing is written; the answer says what it would do.
    pub dry: bool,
}

/// Makes a change, if the caller may; the answer comes when those who read see it.
///
/// # Errors
/// The right is missing, the condition does not hold, or the storage does not do it.
pub(super) async fn change(api: &Shared, caller: &Caller, change: Change) -> Result<Response, Refusal> {
    let dry = change.dry;
    let done = attempt(api, caller, change).await;
    if !dry {
        let counter = if done.is_ok() { &api.numbers.made } else { &api.numbers.refused };
        counter.inc();
    }
    done
}

async fn attempt(api: &Shared, caller: &Caller, change: Change) -> Result<Response, Refusal> {
    let Change { namespace, dtab, expect, dry } = change;
    check_namespace(&namespace).map_err(Refusal::bad)?;
    let text: Option<Arc<str>> = dtab.as_ref().map(|dtab| dtab.to_string().into());
    if let Some(long) = text.as_ref().map(|text| text.len()).filter(|length| *length > MAX_DTAB) {
        let said = format!("written out, the table has {long} bytes; the most is {MAX_DTAB}");
        return Err(Refusal(StatusCode::PAYLOAD_TOO_LARGE, said));
    }
    let refused = |error| Refusal::of(error, &namespace);
    let mut mirror = api.mirror.clone();
    for _ in 0..ATTEMPTS {
        let now = api.mirrored()?.tables.get(&namespace).cloned();
        mirror.mark_unchanged();
        let wanted = rights::Change {
            namespace: &namespace,
            before: now.as_ref().map(|table| &*table.dtab),
            after: dtab.as_ref(),
        };
        let (who, looked) = caller.may_change(&wanted)?;
        let version = now.as_ref().map(|table| table.version);
        if dry {
            expect.judge(version, text.is_none()).map_err(refused)?;
            return Ok(dry::run(api, &namespace, now.as_ref(), dtab.as_ref()).await?.into_response());
        }
        let write = Write {
            namespace: namespace.clone(),
            dtab: text.clone(),
            expect: if looked { pinned(expect, version, text.is_none()).map_err(refused)? } else { expect },
            who,
            when_ms: now_ms(),
            why: caller.why.clone(),
        };
        let overtaken = write.expect != expect;
        match api.storage.write(write).await {
            Ok(version) => {
                let seen = |mirror: &Mirror| is_seen(mirror.tables.get(&namespace), version, text.is_none());
                // If they see it later, it is made all the same.
                let _late = timeout(SEEN_WITHIN, mirror.wait_for(seen)).await;
                tracing::info!(namespace, %version, "changed");
                return Ok((StatusCode::NO_CONTENT, [(ETAG, version.to_string())]).into_response());
            }
            Err(StorageError::Exists | StorageError::Missing | StorageError::Differs) if overtaken => {
                let _late = timeout(SEEN_WITHIN, mirror.changed()).await;
            }
            Err(error) => return Err(refused(error)),
        }
    }
    Err(Refusal::later(format!("the table of `{namespace}` changes all the time: ask again")))
}

/// What was looked at must be what is changed.
fn pinned(expect: Expect, now: Option<Version>, delete: bool) -> Result<Expect, StorageError> {
    expect.judge(now, delete)?;
    Ok(now.map_or(Expect::Absent, Expect::Version))
}

fn is_seen(table: Option<&Table>, version: Version, deleted: bool) -> bool {
    table.map_or(deleted, |table| table.version >= version)
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
