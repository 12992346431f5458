//! One function for each path.

use super::html::{Esc, page};
use super::{AdminState, numbers, waterfall};
use crate::observe::prometheus;
use crate::observe::span::json;
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use http::header::CONTENT_TYPE;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::time::{Duration, SystemTime};
use tokio::time::timeout;

/// Time for an explanation: namers may have to look things up (linkerd: 2 s, then 503).
const EXPLAIN: Duration = Duration::from_secs(2);

/// Bytes of a question for an explanation: a long path and the longest table fit.
pub const MAX_ASKED: usize = 256 * 1024;

/// Rows of a page for people; the JSON has all.
const MAX_ROWS: usize = 500;

/// Texts up to this length, in bytes, stay on one line.
const SHORT: usize = 32;

pub async fn index() -> Html<String> {
    Html(page("Routes", "/", include_str!("web/index.html")))
}

pub async fn style() -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/css; charset=utf-8")], include_str!("web/style.css"))
}

pub async fn live() -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/javascript; charset=utf-8")], include_str!("web/live.js"))
}

pub async fn ready(State(state): State<AdminState>) -> (StatusCode, String) {
    match state.view.ready() {
        Ok(()) => (StatusCode::OK, "ready\n".into()),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    }
}

pub async fn table(State(state): State<AdminState>) -> Json<Value> {
    Json(state.view.table())
}

pub async fn ping() -> &'static str {
    "pong\n"
}

pub async fn metrics(State(state): State<AdminState>) -> Response {
    match prometheus::text(&state.registry) {
        Ok(text) => ([(CONTENT_TYPE, prometheus::CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

pub async fn metrics_json(State(state): State<AdminState>) -> Json<Value> {
    Json(numbers::all(&state.registry))
}

pub async fn config(State(state): State<AdminState>) -> String {
    state.view.config()
}

pub async fn traces(State(state): State<AdminState>) -> Html<String> {
    let traces = state.ring.as_ref().map(|ring| ring.traces());
    Html(page("Traces", "/traces", &waterfall::body(traces.as_deref(), SystemTime::now())))
}

/// Zipkin's own form: a list of traces, each a list of spans.
pub async fn traces_json(State(state): State<AdminState>) -> Json<Value> {
    let traces = state.ring.as_ref().map(|ring| ring.traces()).unwrap_or_default();
    Json(
        traces
            .iter()
            .map(|trace| trace.spans.iter().map(|span| json::span(span)).collect::<Value>())
            .collect(),
    )
}

pub async fn names_json(State(state): State<AdminState>) -> Json<Value> {
    Json(state.view.names())
}

pub async fn namers_json(State(state): State<AdminState>) -> Json<Value> {
    Json(state.view.namers())
}

pub async fn names(State(state): State<AdminState>) -> Html<String> {
    let rows = state.view.names();
    let mut rows: Vec<_> = rows.as_array().into_iter().flatten().filter_map(Value::as_object).collect();
    // What is bound comes first: of the rest strangers can make a lot.
    let text =
        |row: &Map<String, Value>, key| row.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    rows.sort_by_cached_key(|row| (text(row, "state") != "bound", text(row, "name"), text(row, "dtab")));
    let all = rows.len();
    rows.truncate(MAX_ROWS);
    let mut columns: Vec<&String> = rows.iter().flat_map(|row| row.keys()).collect();
    columns.sort_unstable_by_key(|name| (*name != "name", *name));
    columns.dedup();
    let mut out =
        format!("<h1>Names</h1>\n<p class=\"dim\">{all} known, as <a href=\"/names.json\">JSON</a></p>\n",);
    out.push_str("<div class=\"wide\"><table class=\"names\">\n<thead><tr>");
    columns.iter().for_each(|name| out += &format!("<th>{}</th>", Esc(name)));
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        out.push_str("<tr>");
        columns.iter().for_each(|name| cell(&mut out, row.get(*name)));
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    if all > MAX_ROWS {
        // Writing to a string cannot fail.
        let _ok = writeln!(out, "<p class=\"dim\">{} more are not shown.</p>", all - MAX_ROWS);
    }
    Html(page("Names", "/names", &out))
}

fn cell(out: &mut String, value: Option<&Value>) {
    // Writing to a string cannot fail.
    let _ok = match value {
        None | Some(Value::Null) => write!(out, "<td></td>"),
        Some(Value::String(text)) if text.len() <= SHORT => {
            write!(out, "<td class=\"short\">{}</td>", Esc(text))
        }
        Some(Value::String(text)) => write!(out, "<td>{}</td>", Esc(text)),
        Some(Value::Array(lines)) if lines.iter().all(Value::is_string) => {
            let lines: Vec<_> = lines.iter().filter_map(Value::as_str).collect();
            write!(out, "<td><pre>{}</pre></td>", Esc(lines.join("\n")))
        }
        Some(value @ (Value::Array(_) | Value::Object(_))) => {
            write!(out, "<td><pre>{}</pre></td>", Esc(format!("{value:#}")))
        }
        Some(value) => write!(out, "<td>{}</td>", Esc(value)),
    };
}

#[derive(Deserialize)]
pub struct Asked {
    path: String,
    #[serde(default)]
    dtab: String,
}

pub async fn delegator(State(state): State<AdminState>, Query(asked): Query<Asked>) -> Response {
    explanation(&state, &asked).await
}

/// As linkerd's delegator is asked: JSON in a POST. What is there besides `path` and `dtab` is not looked at.
pub async fn delegate(State(state): State<AdminState>, headers: HeaderMap, body: Bytes) -> Response {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        return refused(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "send application/json with the keys path and dtab",
        );
    }
    match serde_json::from_slice::<Asked>(&body) {
        Ok(asked) => explanation(&state, &asked).await,
        Err(error) => refused(StatusCode::BAD_REQUEST, &format!("the body: {error}")),
    }
}

async fn explanation(state: &AdminState, asked: &Asked) -> Response {
    match timeout(EXPLAIN, state.view.explain(&asked.path, &asked.dtab)).await {
        Ok(Ok(steps)) => Json(steps).into_response(),
        Ok(Err(error)) => refused(StatusCode::BAD_REQUEST, &error),
        Err(_) => {
            let error = format!("no explanation within {} s", EXPLAIN.as_secs());
            refused(StatusCode::SERVICE_UNAVAILABLE, &error)
        }
    }
}

fn refused(status: StatusCode, error: &str) -> Response {
    (status, Json(json!({"error": error}))).into_response()
}
