//! A store that knows only namerd's own ways: its watch says that something has changed, and the table is asked for then,
//! and every few seconds, as such a store gives no sign of life by itself.

use super::belief::Told;
use super::follow::{ANSWER_WITHIN, Following, text};
use super::version::Version;
use crate::outside::http::{Http, HttpError, Lines};
use bytes::Bytes;
use http::header::{ACCEPT, ETAG, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use serde::Deserialize;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How often it is asked whatever its watch says.
const ASK_EVERY: Duration = Duration::from_secs(3);

/// The version of a table without a tag.
const UNTAGGED: &str = "untagged";

#[derive(Deserialize)]
struct Entry {
    prefix: String,
    dst: String,
}

/// Follows for as long as that goes well. Gives why it ended, and whether anything was told.
pub(super) async fn follow(following: &mut Following, store: &Http) -> (HttpError, bool) {
    let mut heard = false;
    let mut watch: Option<Lines> = None;
    loop {
        match ask(store, &following.namespace).await {
            Ok(Some((version, dtab))) => following.table(store, version, &dtab),
            Ok(None) => following.told(store, Told::Absent),
            Err(error) => return (error, heard),
        }
        following.heard(store);
        heard = true;
        following.ripen(store);
        if watch.is_none() {
            watch = open(store, &following.namespace).await;
            if watch.is_some() {
                // Between the question and the watch something may have changed; the watch begins with what is now.
                continue;
            }
        }
        let until = Instant::now() + ASK_EVERY;
        let until = following.belief.due().map_or(until, |due| due.min(until));
        let next = async {
            match &mut watch {
                Some(lines) => lines.next().await,
                None => std::future::pending().await,
            }
        };
        // A watch that has ended is opened again; whether the store is well is seen by asking.
        if let Ok(Ok(None) | Err(_)) = timeout_at(until, next).await {
            watch = None;
            tokio::time::sleep_until(until).await;
        }
    }
}

/// The table with its tag; nothing if there is none.
async fn ask(store: &Http, namespace: &str) -> Result<Option<(Version, String)>, HttpError> {
    let path = format!("/api/1/dtabs/{namespace}");
    let answer = store.send(Method::GET, &path, json(), Bytes::new(), ANSWER_WITHIN).await?;
    if answer.status == StatusCode::NOT_FOUND {
        return Ok(None);
    }
    store.expect_ok(&Method::GET, &path, &answer)?;
    let entries: Vec<Entry> = serde_json::from_slice(&answer.body)
        .map_err(|error| text(format!("{}{path}: not a table: {error}", super::follow::base(store))))?;
    let dtab: Vec<_> = entries.iter().map(|entry| format!("{} => {}", entry.prefix, entry.dst)).collect();
    let tag = answer.headers.get(ETAG).and_then(|tag| tag.to_str().ok());
    Ok(Some((Version::opaque(tag.unwrap_or(UNTAGGED)), dtab.join(" ;\n"))))
}

/// Its watch; nothing if it has none, or there is no such table.
async fn open(store: &Http, namespace: &str) -> Option<Lines> {
    let path = format!("/api/1/dtabs/{namespace}?watch=true");
    store.lines(Method::GET, &path, json(), "", ANSWER_WITHIN).await.ok()
}

fn json() -> HeaderMap {
    [(ACCEPT, HeaderValue::from_static("application/json"))].into_iter().collect()
}
