//! What tables were, and their way back.

use super::api::{Api, Asked, Shared};
use super::caller::Caller;
use super::diff::{self, Step};
use super::refusal::Refusal;
use super::storage::{Expect, MAX_HISTORY, Past, Table, Version};
use super::tables::{Change, answer, change, expected};
use super::text::{self, Form, JSON};
use super::when::rfc3339;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use muxgate_wire::name::Dtab;
use serde_json::{Value, json};

/// Changes that are listed, if nothing is said.
const LISTED: usize = 100;

/// `GET /api/1/dtabs/NS/history?limit=`.
pub(super) async fn history(
    State(api): State<Shared>,
    Path(namespace): Path<String>,
    caller: Caller,
    query: RawQuery,
) -> Result<Response, Refusal> {
    let table = api.table(&caller, &namespace)?;
    let limit = Asked::of(query)?.count("limit", LISTED, MAX_HISTORY)?;
    let past = changes(&api, &namespace, limit).await?;
    if past.is_empty() && table.is_none() {
        return Err(Refusal::absent(&namespace));
    }
    let shown: Value = past.iter().map(to_json).collect();
    Ok(answer(&api.mirrored()?, JSON, None, shown.to_string()))
}

fn to_json(past: &Past) -> Value {
    json!({
        "version": past.version.to_string(),
        "who": past.who,
        "when": rfc3339(past.when_ms),
        "why": past.why,
        "deleted": past.dtab.is_none(),
    })
}

async fn changes(api: &Api, namespace: &str, limit: usize) -> Result<Vec<Past>, Refusal> {
    api.storage.history(namespace, limit).await.map_err(|error| Refusal::of(error, namespace))
}

fn version(text: &str) -> Result<Version, Refusal> {
    let bare = text.trim_matches('"');
    Version::parse(bare).ok_or_else(|| Refusal::bad(format!("`{text}` is no version")))
}

/// The change that made a version.
async fn made(api: &Api, namespace: &str, text: &str) -> Result<Past, Refusal> {
    let version = version(text)?;
    let all = changes(api, namespace, MAX_HISTORY).await?;
    all.into_iter().find(|past| past.version == version).ok_or_else(|| {
        let text = format!("`{namespace}` has no version `{text}` that is remembered");
        Refusal(StatusCode::NOT_FOUND, text)
    })
}

/// `GET /api/1/dtabs/NS/history/VERSION`.
pub(super) async fn then(
    State(api): State<Shared>,
    Path((namespace, version)): Path<(String, String)>,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    api.table(&caller, &namespace)?;
    let past = made(&api, &namespace, &version).await?;
    let Some(dtab) = past.dtab else {
        let text = format!("with version `{version}`, `{namespace}` was deleted");
        return Err(Refusal(StatusCode::NOT_FOUND, text));
    };
    let (form, table) = (Form::wanted(&headers), Table { dtab, version: past.version });
    Ok(answer(&api.mirrored()?, form.content_type(), Some(table.version), form.show(&table)?))
}

/// `GET /api/1/dtabs/NS/diff?from=&to=`. Without `to`, the last change; without `from`, the one before `to`.
pub(super) async fn diff(
    State(api): State<Shared>,
    Path(namespace): Path<String>,
    caller: Caller,
    headers: HeaderMap,
    query: RawQuery,
) -> Result<Response, Refusal> {
    api.table(&caller, &namespace)?;
    let query = Asked::of(query)?;
    let all = changes(&api, &namespace, MAX_HISTORY).await?;
    let find = |text: &str| {
        let version = version(text)?;
        all.iter().position(|past| past.version == version).ok_or_else(|| {
            let text = format!("`{namespace}` has no version `{text}` that is remembered");
            Refusal(StatusCode::NOT_FOUND, text)
        })
    };
    let to = query.get("to").map(find).transpose()?.unwrap_or(0);
    let from = query.get("from").map(find).transpose()?.unwrap_or(to + 1);
    let to = all.get(to).ok_or_else(|| Refusal::absent(&namespace))?;
    let from = all.get(from);
    let steps = diff::diff(&table_of(from)?, &table_of(Some(to))?);
    if Form::wanted(&headers) == Form::Text {
        let text = format!(
            "{}{}{}",
            head("---", &namespace, from),
            head("+++", &namespace, Some(to)),
            diff::text(&steps)
        );
        return Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response());
    }
    let shown = json!({
        "from": from.map(to_json),
        "to": to_json(to),
        "changes": steps.iter().filter_map(Step::to_json).collect::<Value>(),
        "text": diff::text(&steps),
    });
    Ok(answer(&api.mirrored()?, JSON, None, shown.to_string()))
}

fn head(mark: &str, namespace: &str, past: Option<&Past>) -> String {
    match past {
        None => format!("{mark} {namespace} (nothing is remembered)\n"),
        Some(Past { version, who, when_ms, dtab, .. }) => {
            let gone = if dtab.is_none() { ", deleted" } else { "" };
            format!("{mark} {namespace} {version} ({who}, {}{gone})\n", rfc3339(*when_ms))
        }
    }
}

fn table_of(past: Option<&Past>) -> Result<Dtab, Refusal> {
    past.and_then(|past| past.dtab.as_deref()).map_or(Ok(Dtab::empty()), text::stored)
}

/// `POST /api/1/dtabs/NS/rollback?to=VERSION`.
pub(super) async fn rollback(
    State(api): State<Shared>,
    Path(namespace): Path<String>,
    caller: Caller,
    headers: HeaderMap,
    query: RawQuery,
) -> Result<Response, Refusal> {
    api.table(&caller, &namespace)?;
    let query = Asked::of(query)?;
    let to = query.get("to").ok_or_else(|| Refusal::bad("to which version? Say `?to=VERSION`"))?;
    let past = made(&api, &namespace, to).await?;
    let dtab = past.dtab.as_deref().map(text::stored).transpose()?;
    let expect = expected(&api, &headers, &namespace)?.unwrap_or(Expect::Anything);
    let mut caller = caller;
    if caller.why.is_empty() {
        caller.why = format!("roll back to {}", past.version);
    }
    change(&api, &caller, Change { namespace, dtab, expect, dry: query.dry() }).await
}
