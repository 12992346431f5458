//! Gateways: what they follow, what they say they run, and whether a change has reached them all.

use super::api::{Api, Asked, Shared};
use super::caller::Caller;
use super::refusal::Refusal;
use super::storage::{MAX_NAMESPACE, Mirror, Version, check_namespace};
use super::text::JSON;
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path as Named, RawQuery, State};
use axum::response::Response;
use futures_util::Stream;
use futures_util::stream::unfold;
use http::StatusCode;
use muxgate_wire::name::Path;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, Interval, interval, timeout_at};

/// Most gateways that are known at once.
pub(super) const MAX_GATEWAYS: usize = 1000;

/// Most names of one.
const MAX_NAMES: usize = 1000;

/// Longest report, in bytes: a thousand names fit.
const MAX_REPORT: usize = 256 * 1024;

/// Longest id of a gateway.
const MAX_ID: usize = 256;

/// A gateway that says nothing for so long is forgotten; it reports every 5 s.
const FORGET_AFTER: Duration = Duration::from_secs(20);

/// How often whoever follows is told that it still does.
const ALIVE_EVERY: Duration = Duration::from_secs(2);

/// Longest wait for a change to reach all.
const MAX_WITHIN: usize = 60;

/// So long after its start a store cannot know all gateways: each reports every 5 s.
const ALL_HEARD_AFTER: Duration = Duration::from_secs(6);

/// How often such a wait looks for gateways that are to be forgotten.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What gateways have said lately.
pub(super) struct Gateways {
    /// By namespace and id.
    seen: Mutex<BTreeMap<(String, String), Seen>>,
    changed: watch::Sender<()>,
    since: Instant,
}

#[derive(Clone, Debug)]
struct Seen {
    version: Option<Version>,
    names: Vec<Path>,
    heard: Instant,
}

#[derive(Deserialize)]
struct Report {
    id: String,
    namespace: String,
    version: Option<String>,
    #[serde(default)]
    names: Vec<String>,
}

impl Gateways {
    pub(super) fn new() -> Self {
        Self { seen: Mutex::default(), changed: watch::channel(()).0, since: Instant::now() }
    }

    fn take(&self, report: Report) -> Result<(), Refusal> {
        let Report { id, namespace, version, names } = report;
        if id.is_empty() || id.len() > MAX_ID || names.len() > MAX_NAMES || namespace.len() > MAX_NAMESPACE {
            let text = format!("an id has 1 to {MAX_ID} bytes, and there are {MAX_NAMES} names at most");
            return Err(Refusal::bad(text));
        }
        let read = |text: String| Version::parse(&text).ok_or(text);
        let version = version.map(read).transpose();
        let version = version.map_err(|text| Refusal::bad(format!("`{text}` is no version")))?;
        let names = names.iter().map(Path::parse).collect::<Result<_, _>>();
        let names = names.map_err(|error| Refusal::bad(format!("a name is no path: {error}")))?;
        let mut seen = self.seen.lock();
        forget(&mut seen);
        let key = (namespace, id);
        if !seen.contains_key(&key) && seen.len() >= MAX_GATEWAYS {
            return Err(Refusal::later(format!("{MAX_GATEWAYS} gateways are known: no more")));
        }
        seen.insert(key, Seen { version, names, heard: Instant::now() });
        drop(seen);
        self.changed.send_replace(());
        Ok(())
    }

    fn now(&self) -> BTreeMap<(String, String), Seen> {
        let mut seen = self.seen.lock();
        forget(&mut seen);
        seen.clone()
    }

    /// Whether every gateway that reports has done so by now. A store that has just started knows few of them.
    fn all_heard(&self) -> bool {
        self.since.elapsed() >= ALL_HEARD_AFTER
    }

    /// The names that gateways of a namespace have in use.
    pub(super) fn names(&self, namespace: &str) -> impl Iterator<Item = Path> {
        let of = self.now().into_iter().filter(move |((other, _), _)| other == namespace);
        of.flat_map(|(_, seen)| seen.names).collect::<Vec<_>>().into_iter()
    }

    /// Each gateway: its namespace, its id, its version, and how long ago it was heard.
    pub(super) fn rows(&self) -> Vec<(String, String, Option<Version>, Duration)> {
        let now = self.now().into_iter();
        now.map(|((namespace, id), seen)| (namespace, id, seen.version, seen.heard.elapsed())).collect()
    }
}

fn forget(seen: &mut BTreeMap<(String, String), Seen>) {
    seen.retain(|_, seen| seen.heard.elapsed() <= FORGET_AFTER);
}

/// `POST /api/1/gateways`.
pub(super) async fn report(
    State(api): State<Shared>,
    caller: Caller,
    body: Bytes,
) -> Result<StatusCode, Refusal> {
    if body.len() > MAX_REPORT {
        let text = format!("a report has {MAX_REPORT} bytes at most");
        return Err(Refusal(StatusCode::PAYLOAD_TOO_LARGE, text));
    }
    let report: Report = serde_json::from_slice(&body)
        .map_err(|error| Refusal::bad(format!("this is no report of a gateway: {error}")))?;
    check_namespace(&report.namespace).map_err(Refusal::bad)?;
    caller.may_read(&report.namespace)?;
    api.gateways.take(report)?;
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /api/1/gateways`.
pub(super) async fn list(State(api): State<Shared>, caller: Caller) -> Json<Value> {
    let seen = api.gateways.now().into_iter().filter(|((namespace, _), _)| caller.sees(namespace));
    let shown = seen.map(|((namespace, id), seen)| {
        json!({
            "id": id,
            "namespace": namespace,
            "version": seen.version.map(|version| version.to_string()),
            "names": seen.names.iter().map(Path::as_str).collect::<Value>(),
            "heard_ms_ago": seen.heard.elapsed().as_millis() as u64,
        })
    });
    Json(shown.collect())
}

/// `GET /api/1/dtabs/NS/propagation?version=&within=`.
pub(super) async fn propagation(
    State(api): State<Shared>,
    Named(namespace): Named<String>,
    caller: Caller,
    query: RawQuery,
) -> Result<Json<Value>, Refusal> {
    let query = Asked::of(query)?;
    let now = api.table(&caller, &namespace)?.map(|table| table.version);
    let wanted = match query.get("version").map(|tag| tag.trim_matches('"')) {
        None => now,
        Some(tag) => {
            let version = Version::parse(tag);
            Some(version.ok_or_else(|| Refusal::bad(format!("`{tag}` is no version")))?)
        }
    };
    let end = Instant::now() + Duration::from_secs(query.count("within", 0, MAX_WITHIN)? as u64);
    let mut changed = api.gateways.changed.subscribe();
    loop {
        changed.mark_unchanged();
        let shown = spread(&api, &namespace, wanted);
        if shown["complete"] == true || Instant::now() >= end || api.stop.is_cancelled() {
            return Ok(Json(shown));
        }
        let soon = end.min(Instant::now() + LOOK_EVERY);
        // Either way it is looked at again.
        let _changed = timeout_at(soon, changed.changed()).await;
    }
}

/// Which gateways of a namespace run a version or a later one; never complete before all had time to report. Where the table is gone, running none is current.
fn spread(api: &Api, namespace: &str, wanted: Option<Version>) -> Value {
    let there = api.mirror.borrow().tables.contains_key(namespace);
    let is_current = |version: Option<Version>| match version {
        None => !there,
        Some(version) => wanted.is_some_and(|wanted| version >= wanted),
    };
    let rows: Vec<_> = api.gateways.rows().into_iter().filter(|row| row.0 == namespace).collect();
    let shown = rows.iter().map(|(_, id, version, heard)| {
        json!({
            "id": id,
            "version": version.map(|version| version.to_string()),
            "current": is_current(*version),
            "heard_ms_ago": heard.as_millis() as u64,
        })
    });
    json!({
        "version": wanted.map(|version| version.to_string()),
        "complete": api.gateways.all_heard() && rows.iter().all(|row| is_current(row.2)),
        "gateways": shown.collect::<Value>(),
    })
}

/// `GET /api/1/follow/NS`.
pub(super) async fn follow(
    State(api): State<Shared>,
    Named(namespace): Named<String>,
    caller: Caller,
) -> Result<Response, Refusal> {
    check_namespace(&namespace).map_err(Refusal::bad)?;
    caller.may_read(&namespace)?;
    api.stream(JSON, steps(api.mirror.clone(), namespace))
}

struct Following {
    mirror: watch::Receiver<Mirror>,
    namespace: String,
    /// What was told last; the inner none: there is no such table.
    told: Option<Option<Version>>,
    alive: Interval,
}

fn steps(mirror: watch::Receiver<Mirror>, namespace: String) -> impl Stream<Item = String> + Send {
    let following = Following { mirror, namespace, told: None, alive: interval(ALIVE_EVERY) };
    unfold(following, |mut f| async move {
        loop {
            let mirror = f.mirror.borrow_and_update().clone();
            let table = mirror.tables.get(&f.namespace);
            let version = table.map(|table| table.version);
            if mirror.known && f.told != Some(version) {
                f.told = Some(version);
                let line = match table {
                    Some(table) => json!({ "version": table.version.to_string(), "dtab": &*table.dtab }),
                    None => json!({ "absent": true }),
                };
                return Some((line.to_string(), f));
            }
            tokio::select! {
                changed = f.mirror.changed() => changed.ok()?,
                _ = f.alive.tick() => return Some((json!({ "alive": true }).to_string(), f)),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(id: &str, names: usize) -> Report {
        let names = (0..names).map(|at| format!("/svc/{at}")).collect();
        Report { id: id.into(), namespace: "default".into(), version: None, names }
    }

    #[tokio::test(start_paused = true)]
    async fn gateways_are_bounded_and_forgotten() {
        let gateways = Gateways::new();
        for at in 0..MAX_GATEWAYS {
            gateways.take(report(&at.to_string(), 1)).unwrap();
        }
        assert_eq!(gateways.take(report("more", 1)).unwrap_err().0, StatusCode::SERVICE_UNAVAILABLE);
        gateways.take(report("5", MAX_NAMES)).unwrap();
        assert!(gateways.take(report("5", MAX_NAMES + 1)).is_err());
        assert!(gateways.take(report("", 1)).is_err());
        tokio::time::advance(FORGET_AFTER / 2).await;
        gateways.take(report("7", 2)).unwrap();
        tokio::time::advance(FORGET_AFTER / 2 + Duration::from_millis(1)).await;
        assert_eq!(gateways.rows().len(), 1);
        assert_eq!(gateways.names("default").count(), 2);
        assert_eq!(gateways.names("other").count(), 0);
    }
}
