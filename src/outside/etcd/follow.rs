//! All keys below a prefix, and what becomes of them.
//!
//! A watch says nothing while nothing changes, nor when its server is gone. So beside it the server is asked every
//! [`CHECK_EVERY`] how many keys there are: that it answers, that the cluster is still the one that was read, and that the
//! watch has missed nothing.

use super::json::{Base64, Change, KeyValue, Line, Range, Ranged, Watch, Watched, What};
use super::{ANSWER_WITHIN, EtcdError, Head, Node, body};
use crate::outside::http::Lines;
use http::header::HeaderMap;
use http::{Method, StatusCode};
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;
use tokio::time::sleep;

/// Pause between an answer and the next question beside a watch. With [`super::CHECK_WITHIN`]: a server that is gone is noticed
/// after 4 s.
pub const CHECK_EVERY: Duration = Duration::from_millis(1500);

/// Keys below one prefix.
pub const MAX_KEYS: usize = 1_000_000;

/// Times that reading begins anew because a compaction took away what was being read.
const MAX_BEGINNINGS: usize = 3;

/// All keys below a prefix, as they were in one revision.
#[derive(Debug)]
pub struct Snapshot {
    /// Which cluster was read.
    pub cluster: u64,
    /// The revision.
    pub revision: u64,
    /// In the order of their keys.
    pub kvs: Vec<KeyValue>,
}

/// What became of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It has a value.
    Put(KeyValue),
    /// It was deleted, or its lease has ended.
    Deleted(Vec<u8>),
}

/// News of the keys below a prefix.
#[derive(Debug)]
pub enum News {
    /// What changed; what was written together comes together.
    Changed(Vec<Event>),
    /// Nothing, and the server is well.
    Alive,
}

impl Node {
    /// Reads all keys below a prefix, so many at a time, as they are now.
    ///
    /// # Errors
    /// No answer in time, or more keys than one prefix may hold (a million).
    pub async fn all(&self, prefix: &[u8], page: u64) -> Result<Snapshot, EtcdError> {
        let mut beginnings = 0;
        loop {
            beginnings += 1;
            match self.pages(prefix, page).await {
                Err(EtcdError::Compacted(_)) if beginnings < MAX_BEGINNINGS => {}
                read => return read,
            }
        }
    }

    async fn pages(&self, prefix: &[u8], limit: u64) -> Result<Snapshot, EtcdError> {
        let mut range = Range { limit, ..Range::below(prefix) };
        let mut all = Snapshot { cluster: 0, revision: 0, kvs: Vec::new() };
        loop {
            let mut page: Ranged = self.ask("/kv/range", &range, ANSWER_WITHIN).await?;
            if range.revision == 0 {
                range.revision = page.header.revision;
                all.cluster = page.header.cluster_id;
                all.revision = range.revision;
            }
            all.kvs.append(&mut page.kvs);
            let Some(last) = all.kvs.last().filter(|_| page.more) else { return Ok(all) };
            if all.kvs.len() >= MAX_KEYS {
                return Err(too_many(prefix));
            }
            // The next key that can be.
            range.key = Base64([&last.key[..], &[0]].concat());
        }
    }

    /// Follows the keys below a prefix from a snapshot on.
    ///
    /// # Errors
    /// No answer in time.
    pub async fn follow(&self, prefix: &[u8], from: &Snapshot) -> Result<Follow, EtcdError> {
        let watch = body(&Watch::below(prefix, from.revision + 1))?;
        let start = async |path: &str| {
            self.http.lines(Method::POST, path, HeaderMap::new(), watch.clone(), ANSWER_WITHIN).await
        };
        let mut lines = start(&self.path("/watch")).await;
        if let Err(error) = &lines
            && error.status == Some(StatusCode::NOT_FOUND)
            && self.is_older(StatusCode::NOT_FOUND, &[])
        {
            lines = start(&self.path("/watch")).await;
        }
        Ok(Follow {
            lines: lines?,
            check: check(self.clone(), prefix.into()),
            node: self.clone(),
            prefix: prefix.into(),
            last: Head { cluster: from.cluster, revision: from.revision, keys: 0 },
            differs: false,
        })
    }
}

/// The keys below a prefix, as they change.
pub struct Follow {
    lines: Lines,
    node: Node,
    prefix: Vec<u8>,
    check: Pin<Box<dyn Future<Output = Result<Head, EtcdError>> + Send>>,
    last: Head,
    /// Whether the last answer had another number of keys than is known, and nothing has changed since.
    differs: bool,
}

impl Follow {
    /// Waits for news. `known` is how many keys the caller knows by now.
    ///
    /// # Errors
    /// The server is gone, silent, another one, or does not tell all: read everything anew. At once, if it was a compaction.
    pub async fn next(&mut self, known: usize) -> Result<News, EtcdError> {
        if known > MAX_KEYS {
            return Err(too_many(&self.prefix));
        }
        tokio::select! {
            line = self.lines.next() => {
                let line = line?.ok_or_else(|| self.ended("the watch ended"))?;
                let read = serde_json::from_slice(&line);
                let read: Line = read.map_err(|error| self.ended(&format!("a line of the watch: {error}")))?;
                self.told(read)
            }
            head = &mut self.check => {
                self.check = check(self.node.clone(), self.prefix.clone());
                self.compare(head?, known)
            }
        }
    }

    fn told(&mut self, line: Line) -> Result<News, EtcdError> {
        if let Some(error) = line.error {
            return Err(self.ended(&error.message));
        }
        let Watched { header, canceled, cancel_reason, compact_revision, events } =
            line.result.unwrap_or_default();
        if compact_revision > 0 {
            let text = format!("what came before revision {compact_revision} was compacted");
            return Err(EtcdError::Compacted(text));
        }
        if canceled {
            return Err(self.ended(&format!("the watch was cancelled: {cancel_reason}")));
        }
        self.last.revision = self.last.revision.max(header.revision);
        if events.is_empty() {
            return Ok(News::Alive);
        }
        self.differs = false;
        let event = |change: Change| match change.what {
            What::Put => Event::Put(change.kv),
            What::Delete => Event::Deleted(change.kv.key),
        };
        Ok(News::Changed(events.into_iter().map(event).collect()))
    }

    fn compare(&mut self, head: Head, known: usize) -> Result<News, EtcdError> {
        if head.cluster != self.last.cluster || head.revision < self.last.revision {
            return Err(self.ended("it has come back as another one, or without what was written last"));
        }
        self.last.revision = head.revision;
        // The watch may be a little behind, but not until the next answer without a word.
        let differs = head.keys != known as u64;
        if differs && self.differs {
            return Err(self.ended(&format!("there are {} keys, the watch told of {known}", head.keys)));
        }
        self.differs = differs;
        Ok(News::Alive)
    }

    fn ended(&self, why: &str) -> EtcdError {
        let prefix = String::from_utf8_lossy(&self.prefix);
        EtcdError::Unavailable(format!("etcd at {}, keys below {prefix}: {why}", self.node.http.base()))
    }
}

fn too_many(prefix: &[u8]) -> EtcdError {
    let prefix = String::from_utf8_lossy(prefix);
    EtcdError::Refused(format!("etcd has more than {MAX_KEYS} keys below {prefix}"))
}

fn check(node: Node, prefix: Vec<u8>) -> Pin<Box<dyn Future<Output = Result<Head, EtcdError>> + Send>> {
    Box::pin(async move {
        sleep(CHECK_EVERY).await;
        node.count(&prefix).await
    })
}
