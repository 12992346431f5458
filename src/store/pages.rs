//! The index, for people; and what those ask who look after the process.

use super::api::Shared;
use super::caller::Caller;
use super::refusal::Refusal;
use axum::extract::State;
use axum::response::{Html, IntoResponse, Response};
use http::header::{CONTENT_SECURITY_POLICY, X_CONTENT_TYPE_OPTIONS};
use http::{StatusCode, Uri};
use std::fmt::{Display, Write};

/// Rows of each table.
const MAX_ROWS: usize = 1000;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;\
                     background:Canvas;color:CanvasText;color-scheme:light dark}table{border-collapse:collapse}\
                     td,th{text-align:left;padding:.2rem 1.5rem .2rem 0}code{font-size:13px}.bad{color:#c22}";

/// `GET /`.
pub(super) async fn index(State(api): State<Shared>, caller: Caller) -> Response {
    let mut out = String::new();
    // Writing to a text cannot fail.
    let _ok = body(&api, &caller, &mut out);
    let page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>muxgate store</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{out}</body>\n</html>\n"
    );
    let policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";
    ([(CONTENT_SECURITY_POLICY, policy), (X_CONTENT_TYPE_OPTIONS, "nosniff")], Html(page)).into_response()
}

fn body(api: &Shared, caller: &Caller, out: &mut String) -> std::fmt::Result {
    let mirror = api.mirror.borrow().clone();
    writeln!(out, "<h1>muxgate store</h1>")?;
    if let Some(why) = &mirror.outage {
        writeln!(out, "<p class=\"bad\">The storage cannot be asked: {}</p>", esc(why))?;
    }
    let tables: Vec<_> = mirror.tables.iter().filter(|(name, _)| caller.sees(name)).collect();
    writeln!(
        out,
        "<h2>{} namespaces</h2>\n<table>\n<tr><th>name</th><th>version</th><th></th></tr>",
        tables.len()
    )?;
    for (name, table) in tables.iter().take(MAX_ROWS) {
        let name = esc(name);
        writeln!(
            out,
            "<tr><td><a href=\"/api/1/dtabs/{name}\">{name}</a></td><td><code>{}</code></td>\
             <td><a href=\"/api/1/dtabs/{name}/history\">history</a> \
             <a href=\"/api/1/dtabs/{name}/propagation\">gateways</a></td></tr>",
            table.version
        )?;
    }
    let gateways: Vec<_> = api.gateways.rows().into_iter().filter(|row| caller.sees(&row.0)).collect();
    writeln!(
        out,
        "</table>\n<h2>{} gateways</h2>\n<table>\n\
         <tr><th>gateway</th><th>namespace</th><th>version</th><th>heard</th></tr>",
        gateways.len()
    )?;
    for (namespace, id, version, heard) in &gateways {
        let now = mirror.tables.get(namespace).map(|table| table.version);
        let late = if *version == now { "" } else { " class=\"bad\"" };
        let version = version.map_or_else(|| "none".to_owned(), |version| version.to_string());
        writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td{late}><code>{version}</code></td><td>{:.1} s ago</td></tr>",
            esc(id),
            esc(namespace),
            heard.as_secs_f64()
        )?;
    }
    writeln!(out, "</table>")
}

/// Outside input inside HTML text or a quoted attribute.
fn esc(text: impl Display) -> String {
    let escape = |c: char| match c {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        '\'' => "&#39;".to_owned(),
        c => c.to_string(),
    };
    text.to_string().chars().map(escape).collect()
}

/// `GET /health`: 200 when changes can be made, 503 with the reason when not.
pub(super) async fn health(State(api): State<Shared>) -> Result<&'static str, Refusal> {
    match api.mirrored()?.outage {
        None => Ok("ok\n"),
        Some(why) => Err(Refusal::later(format!("the storage cannot be asked: {why}"))),
    }
}

/// Any other path.
pub(super) async fn unknown(uri: Uri) -> Refusal {
    Refusal(StatusCode::NOT_FOUND, format!("there is nothing at {}", uri.path()))
}
