//! The mirror: all tables, followed for ever.
//!
//! ```text
//!   read all ──▶ follow ──▶ (changes) ──▶ cannot go on: outage ──▶ pause ──▶ read all
//! ```
//!
//! An etcd that comes back without what was written last has lost it, and so tables that it does not have any more are not
//! taken for deleted: they go on for [`GRACE`], or until somebody writes them.

use super::super::{MAX_NAMESPACES, Mirror, Table, Version, check_namespace};
use super::PAGE;
use crate::outside::etcd::{Etcd, EtcdError, Event, Follow, News, Snapshot};
use muxgate_rpc::life::jittered;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// How long tables go on that an etcd does not have any more which has lost what was written last.
pub const GRACE: Duration = Duration::from_secs(60);

/// Everything is read anew after this time.
const RESYNC: Duration = Duration::from_secs(300);

/// First pause after a failure; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Longest pause.
const LAST_PAUSE: Duration = Duration::from_secs(2);

/// Follows all tables, whose keys begin with `prefix`.
pub(super) async fn forever(etcd: Arc<Etcd>, prefix: String, to: watch::Sender<Mirror>) {
    let mut tables = Tables::new(prefix, to);
    let mut pause = FIRST_PAUSE;
    loop {
        let Ok(followed) = timeout(jittered(RESYNC), tables.follow(&etcd)).await else { continue };
        let Err(error) = followed;
        if matches!(error, EtcdError::Compacted(_)) {
            // What was read is known to be old now, and no more than that.
            continue;
        }
        if tables.to.borrow().outage.is_none() {
            pause = FIRST_PAUSE;
        }
        tracing::warn!(%error, "tables cannot be read; what is known goes on");
        tables.to.send_modify(|mirror| mirror.outage = Some(error.to_string()));
        sleep(jittered(pause)).await;
        pause = (pause * 2).min(LAST_PAUSE);
    }
}

struct Tables {
    prefix: String,
    to: watch::Sender<Mirror>,
    known: BTreeMap<String, Table>,
    /// Keys that are no table: their names cannot be those of namespaces.
    strange: BTreeSet<Vec<u8>>,
    /// Tables that were lost, and when that is believed.
    lost: BTreeMap<String, Table>,
    until: Instant,
    /// The cluster that was read, and when.
    last: Option<(u64, u64)>,
}

enum Never {}

impl Tables {
    fn new(prefix: String, to: watch::Sender<Mirror>) -> Self {
        let (known, lost, until) = (BTreeMap::new(), BTreeMap::new(), Instant::now());
        Self { prefix, to, known, strange: BTreeSet::new(), lost, until, last: None }
    }

    async fn follow(&mut self, etcd: &Etcd) -> Result<Never, EtcdError> {
        let prefix = self.prefix.clone().into_bytes();
        let node = etcd.node(&prefix).await?;
        let all = node.all(&prefix, PAGE).await?;
        let mut follow = node.follow(&prefix, &all).await?;
        self.read(all);
        self.show();
        loop {
            self.news(&mut follow).await?;
        }
    }

    async fn news(&mut self, follow: &mut Follow) -> Result<(), EtcdError> {
        let doubted = !self.lost.is_empty();
        let keys = self.known.len() + self.strange.len();
        if keys > MAX_NAMESPACES {
            let why = format!("etcd has more than {MAX_NAMESPACES} namespaces below {}", self.prefix);
            return Err(EtcdError::Refused(why));
        }
        tokio::select! {
            news = follow.next(keys) => match news? {
                News::Alive => return Ok(()),
                News::Changed(events) => events.into_iter().for_each(|event| self.take(event)),
            },
            () = sleep_until(self.until), if doubted => {
                tracing::warn!(tables = self.lost.len(), "tables that etcd has lost are given up");
                self.lost.clear();
            }
        }
        self.show();
        Ok(())
    }

    /// All that there is now.
    fn read(&mut self, all: Snapshot) {
        let lost =
            self.last.is_some_and(|(cluster, revision)| all.cluster != cluster || all.revision < revision);
        let before = std::mem::take(&mut self.known);
        self.strange.clear();
        self.last = Some((all.cluster, all.revision));
        for kv in all.kvs {
            self.take(Event::Put(kv));
        }
        if lost {
            self.lost.extend(before);
            self.until = Instant::now() + GRACE;
        }
        self.lost.retain(|namespace, _| !self.known.contains_key(namespace));
        if lost && !self.lost.is_empty() {
            let tables = self.lost.len();
            tracing::warn!(tables, "etcd has lost tables; they go on for {} s", GRACE.as_secs());
        }
    }

    fn take(&mut self, event: Event) {
        let (key, put) = match event {
            Event::Put(kv) => (kv.key, Some((kv.value, kv.revision))),
            Event::Deleted(key) => (key, None),
        };
        let name = key.strip_prefix(self.prefix.as_bytes()).and_then(|name| std::str::from_utf8(name).ok());
        match (name.filter(|name| check_namespace(name).is_ok()), put) {
            (Some(namespace), Some((dtab, revision))) => {
                let dtab = String::from_utf8_lossy(&dtab).into();
                self.lost.remove(namespace);
                self.known.insert(namespace.into(), Table { dtab, version: Version(revision) });
                self.last = self.last.map(|(cluster, last)| (cluster, last.max(revision)));
            }
            (Some(namespace), None) => {
                self.lost.remove(namespace);
                self.known.remove(namespace);
            }
            (None, Some(_)) => drop(self.strange.insert(key)),
            (None, None) => drop(self.strange.remove(&key)),
        }
    }

    fn show(&self) {
        let mut tables = self.known.clone();
        tables.extend(self.lost.clone());
        self.to.send_if_modified(|mirror| {
            let same = *mirror.tables == tables;
            let news = !mirror.known || mirror.outage.is_some() || !same;
            if !same {
                mirror.tables = Arc::new(tables);
            }
            mirror.known = true;
            mirror.outage = None;
            news
        });
    }
}
