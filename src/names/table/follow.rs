//! The task that stays with a store, and moves on when it has to.

use super::belief::{Belief, Told, Verdict};
use super::keep::Keep;
use super::plain;
use super::status::Status;
use super::version::Version;
use crate::names::binder::{Base, Origin, Table};
use crate::observe::stats::TableStats;
use crate::outside::http::{Http, HttpError, Lines};
use http::{HeaderMap, Method, StatusCode};
use muxgate_rpc::life::jittered;
use muxgate_wire::name::Dtab;
use parking_lot::Mutex;
use serde::Deserialize;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

/// Time for a store to begin its answer.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(3);

/// A store that says nothing for this long is left: it has a word to say every 2 s.
const SILENCE: Duration = Duration::from_secs(5);

/// A store that lasted this long was well, and is tried again without a pause.
const WELL: Duration = Duration::from_secs(1);

/// First pause when no store could be followed; it doubles with each further round.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// Longest pause: the end of an outage is noticed within this time.
const LAST_PAUSE: Duration = Duration::from_secs(4);

pub(super) struct Following {
    pub stores: Vec<Http>,
    pub namespace: Arc<str>,
    /// Laid over the store's table.
    pub own: Dtab,
    pub belief: Belief,
    pub keep: Keep,
    pub status: Arc<Mutex<Status>>,
    pub stats: Arc<TableStats>,
    pub to: watch::Sender<Base>,
}

/// One line of a store.
#[derive(Debug, Deserialize)]
struct Line {
    version: Option<String>,
    dtab: Option<String>,
    #[serde(default)]
    absent: bool,
}

impl Following {
    /// Publishes what was kept, put there at this time.
    pub fn begin(&self, kept: Option<SystemTime>) {
        self.stats.lost();
        if let (Some(told), Some(when)) = (self.belief.held(), kept) {
            self.publish(told.clone(), "disk", when);
            let version = told.version().map(ToString::to_string);
            tracing::info!(namespace = %self.namespace, version, "begins with the table kept on disk");
        }
    }

    /// For ever.
    pub async fn run(mut self) {
        let (mut at, mut failed) = (0, 0);
        loop {
            let Some(store) = self.stores.get(at).cloned() else { return };
            let began = Instant::now();
            self.belief.connected();
            let (error, heard) = self.session(&store).await;
            self.lost(&store, &error);
            failed = if heard && began.elapsed() >= WELL { 1 } else { failed + 1 };
            at = (at + 1) % self.stores.len();
            if failed % self.stores.len() == 0 {
                let rounds = (failed / self.stores.len()).clamp(1, 8) as u32;
                sleep(jittered((FIRST_PAUSE * 2_u32.pow(rounds - 1)).min(LAST_PAUSE))).await;
            }
        }
    }

    /// Stays with one store for as long as that goes well. Gives why it ended, and whether anything was told.
    async fn session(&mut self, store: &Http) -> (HttpError, bool) {
        let path = format!("/api/1/follow/{}", self.namespace);
        let lines = store.lines(Method::GET, &path, HeaderMap::new(), "", ANSWER_WITHIN).await;
        match lines {
            Ok(lines) => self.read(store, lines).await,
            // One that knows only namerd's own ways.
            Err(error) if error.status == Some(StatusCode::NOT_FOUND) => plain::follow(self, store).await,
            Err(error) => (error, false),
        }
    }

    async fn read(&mut self, store: &Http, mut lines: Lines) -> (HttpError, bool) {
        let mut heard = false;
        let mut silent = Instant::now() + SILENCE;
        loop {
            let until = self.belief.due().map_or(silent, |due| due.min(silent));
            let line = match timeout_at(until, lines.next()).await {
                Ok(Ok(Some(line))) => line,
                Ok(Ok(None)) => return (text(format!("{}: the answer ended", base(store))), heard),
                Ok(Err(error)) => return (error, heard),
                Err(_) if until < silent => {
                    self.ripen(store);
                    continue;
                }
                Err(_) => {
                    let why = format!("{}: silent for {} s", base(store), SILENCE.as_secs());
                    return (text(why), heard);
                }
            };
            silent = Instant::now() + SILENCE;
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            match serde_json::from_slice::<Line>(&line) {
                Ok(Line { version: Some(version), dtab: Some(dtab), .. }) => {
                    self.table(store, Version::ordered(&version), &dtab);
                }
                Ok(Line { absent: true, .. }) => self.told(store, Told::Absent),
                // A sign of life.
                Ok(_) => {}
                Err(error) => {
                    return (text(format!("{}: not a line of a store: {error}", base(store))), heard);
                }
            }
            heard = true;
            self.heard(store);
        }
    }

    /// A store says that this is the table.
    pub fn table(&mut self, store: &Http, version: Version, dtab: &str) {
        match Dtab::parse(dtab) {
            Ok(parsed) => self.told(store, Told::Table { version, dtab: parsed, text: dtab.into() }),
            Err(error) => {
                let why =
                    format!("version {version} of the table {} cannot be read: {error}", self.namespace);
                let again = self.status.lock().last_error.replace(why.clone()).is_some_and(|old| old == why);
                if !again {
                    tracing::error!(store = %base(store), "{why}");
                }
                if self.belief.held().is_none() {
                    self.to.send_replace(Base::Failed(why));
                }
            }
        }
    }

    /// A store says this.
    pub fn told(&mut self, store: &Http, told: Told) {
        let version = told.version().map(ToString::to_string);
        match self.belief.told(told.clone(), Instant::now()) {
            Verdict::Same => {
                let mut status = self.status.lock();
                status.doubted = None;
                if let Some((_, from, _)) = &mut status.held {
                    *from = base(store);
                }
            }
            Verdict::New => self.take(store, told),
            Verdict::Doubted(why) => {
                tracing::warn!(
                    store = %base(store), namespace = %self.namespace, version,
                    "{why}: doubted for {} s", super::GRACE.as_secs()
                );
                self.status.lock().doubted = Some((Instant::now(), why.into()));
            }
            Verdict::StillDoubted => {}
        }
    }

    /// Believes what has been doubted for long enough.
    pub fn ripen(&mut self, store: &Http) {
        if self.belief.ripen(Instant::now())
            && let Some(told) = self.belief.held().cloned()
        {
            tracing::warn!(store = %base(store), namespace = %self.namespace, "what was doubted is believed now");
            self.take(store, told);
        }
    }

    fn take(&self, store: &Http, told: Told) {
        let version = told.version().map(ToString::to_string);
        tracing::info!(store = %base(store), namespace = %self.namespace, version, "another table");
        self.keep.put(&told);
        self.stats.changes.add_one();
        self.publish(told, &base(store), SystemTime::now());
    }

    fn publish(&self, told: Told, from: &str, when: SystemTime) {
        let origin = Origin {
            namespace: Arc::clone(&self.namespace),
            version: told.version().map(|version| Arc::clone(version.text())),
        };
        let table = Table { dtab: told.dtab().concat(&self.own), origin: Some(origin) };
        let mut status = self.status.lock();
        status.held = Some((told, from.to_owned(), when));
        status.doubted = None;
        drop(status);
        self.to.send_replace(Base::Known(table));
    }

    /// The store is well.
    pub fn heard(&self, store: &Http) {
        self.stats.heard();
        let mut status = self.status.lock();
        if let Some(since) = status.outage.take() {
            status.store = Some(base(store));
            let seconds = since.elapsed().as_secs();
            tracing::info!(store = %base(store), namespace = %self.namespace, seconds, "follows a store");
        }
    }

    fn lost(&self, store: &Http, error: &HttpError) {
        let why = format!("the store cannot be reached: {error}");
        let mut status = self.status.lock();
        let news = status.store.take().is_some() || status.last_error.as_ref() != Some(&why);
        if status.outage.is_none() {
            status.outage = Some(Instant::now());
            self.stats.lost();
        }
        status.last_error = Some(why.clone());
        let missing = status.held.is_none();
        drop(status);
        if news {
            tracing::warn!(store = %base(store), namespace = %self.namespace, "{why}");
        }
        if missing {
            self.to.send_replace(Base::Pending(why));
        }
    }
}

/// A store, for people.
pub(super) fn base(store: &Http) -> String {
    store.base().to_string().trim_end_matches('/').to_owned()
}

pub(super) fn text(text: String) -> HttpError {
    HttpError { status: None, text }
}
