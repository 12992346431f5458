//! Tables in etcd, under `/namerd/dtabs` if nothing else is said:
//!
//! ```text
//! /namerd/dtabs/default                              the table's text, and nothing else
//! /namerd/dtabs-history/default                      the number of its last change
//! /namerd/dtabs-history/default/00000000000000000012 what that change was: a line of JSON, and the text behind it
//! ```
//!
//! A change writes all three in one transaction, on condition that the first two are as they were read. Its version is the
//! revision of that transaction. The change that is the thousandth before it is deleted with it.

mod follow;
mod past;

use super::{MAX_HISTORY, Mirror, Past, Storage, StorageError, Version, Write, check_namespace};
use crate::outside::etcd::{Etcd, EtcdError, KeyValue, Node, Txn};
use crate::outside::http::{self, HttpError};
use async_trait::async_trait;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;

/// Longest table, in bytes: etcd takes requests of 1.5 MiB, and one holds the table twice.
pub const MAX_TABLE: usize = 700 << 10;

/// Time for a change, with all that it takes to be the one that wins.
const WRITE_WITHIN: Duration = Duration::from_secs(10);

/// Tables in one answer of etcd: as many as fit, if all are of the greatest length.
const PAGE: u64 = 50;

/// Settings of this backend.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// Members of one cluster.
    pub nodes: Vec<http::Params>,
    /// `pathPrefix`: the folder with the tables.
    pub path_prefix: String,
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes: Vec<_> = self.nodes.iter().map(|node| node.base.as_str()).collect();
        write!(f, "{} in etcd at {}", self.path_prefix, nodes.join(", "))
    }
}

/// The backend.
pub struct EtcdStorage {
    etcd: Arc<Etcd>,
    prefix: String,
    mirror: watch::Receiver<Mirror>,
    following: AbortHandle,
}

impl EtcdStorage {
    /// Begins to follow all tables. Must be called on a runtime. A cluster that cannot be reached is no error: the mirror says so.
    ///
    /// # Errors
    /// Addresses or files of `tls` that cannot be used.
    pub fn start(params: &Params) -> Result<Self, HttpError> {
        let etcd = Arc::new(Etcd::open(&params.nodes)?);
        let prefix = params.path_prefix.trim_end_matches('/').to_owned();
        let (to, mirror) = watch::channel(Mirror::default());
        let follow = follow::forever(Arc::clone(&etcd), format!("{prefix}/"), to);
        let following = tokio::spawn(follow).abort_handle();
        Ok(Self { etcd, prefix, mirror, following })
    }

    async fn node(&self) -> Result<Node, EtcdError> {
        self.etcd.node(format!("{}/", self.prefix).as_bytes()).await
    }

    fn keys(&self, namespace: &str) -> Result<Keys, StorageError> {
        check_namespace(namespace).map_err(StorageError::Refused)?;
        let (table, count) =
            (format!("{}/{namespace}", self.prefix), format!("{}-history/{namespace}", self.prefix));
        Ok(Keys { table, count })
    }

    /// Reads, judges and writes; nothing, if somebody else has written in between.
    async fn attempt(
        &self,
        node: &Node,
        write: &Write,
        keys: &Keys,
    ) -> Result<Option<Version>, StorageError> {
        let (table, count) = keys.read(node).await.map_err(refused)?;
        write.expect.judge(table.as_ref().map(version), write.dtab.is_none())?;
        let number = number(count.as_ref()) + 1;
        let revision = |kv: &Option<KeyValue>| kv.as_ref().map_or(0, |kv| kv.revision);
        let mut txn = Txn::default()
            .when(keys.table.as_bytes(), revision(&table))
            .when(keys.count.as_bytes(), revision(&count))
            .put(keys.count.as_bytes(), number.to_string().as_bytes())
            .put(keys.change(number).as_bytes(), &past::written(write));
        txn = match &write.dtab {
            Some(dtab) => txn.put(keys.table.as_bytes(), dtab.as_bytes()),
            None => txn.delete(keys.table.as_bytes()),
        };
        if let Some(old) = number.checked_sub(MAX_HISTORY as u64) {
            txn = txn.delete(keys.change(old).as_bytes());
        }
        let done = node.txn(&txn).await.map_err(refused)?;
        Ok(done.succeeded.then_some(Version(done.revision)))
    }

    async fn tell(&self, keys: &Keys, limit: usize) -> Result<Vec<Past>, EtcdError> {
        let node = self.node().await?;
        let (table, count) = keys.read(&node).await?;
        let mut told = Vec::new();
        let limit = limit.min(MAX_HISTORY);
        // From behind: the newest first, as many at a time as fit into an answer.
        let (mut end, first) =
            (number(count.as_ref()) + 1, number(count.as_ref()).saturating_sub(limit as u64) + 1);
        while end > first {
            let begin = end.saturating_sub(PAGE).max(first);
            let some = node.range(keys.change(begin).as_bytes(), keys.change(end).as_bytes()).await?;
            told.extend(some.iter().rev().filter_map(past::read));
            end = begin;
        }
        let by_others = table.as_ref().map(past::by_others);
        if let Some(newer) =
            by_others.filter(|table| told.first().is_none_or(|past| past.version < table.version))
        {
            told.insert(0, newer);
        }
        told.truncate(limit);
        Ok(told)
    }
}

impl Drop for EtcdStorage {
    fn drop(&mut self) {
        self.following.abort();
    }
}

#[async_trait]
impl Storage for EtcdStorage {
    fn mirror(&self) -> watch::Receiver<Mirror> {
        self.mirror.clone()
    }

    async fn write(&self, write: Write) -> Result<Version, StorageError> {
        let keys = self.keys(&write.namespace)?;
        if write.dtab.as_ref().is_some_and(|dtab| dtab.len() > MAX_TABLE) {
            return Err(StorageError::Refused(format!("etcd keeps tables of {MAX_TABLE} bytes at most")));
        }
        let attempts = async {
            let node = self.node().await.map_err(refused)?;
            loop {
                if let Some(version) = self.attempt(&node, &write, &keys).await? {
                    return Ok(version);
                }
            }
        };
        let late = || StorageError::Unavailable(format!("not written within {} s", WRITE_WITHIN.as_secs()));
        timeout(WRITE_WITHIN, attempts).await.unwrap_or_else(|_| Err(late()))
    }

    async fn history(&self, namespace: &str, limit: usize) -> Result<Vec<Past>, StorageError> {
        let keys = self.keys(namespace)?;
        self.tell(&keys, limit).await.map_err(|error| StorageError::Unavailable(error.to_string()))
    }
}

/// The keys of a namespace.
struct Keys {
    table: String,
    count: String,
}

impl Keys {
    /// The key of a change; keys are in the order of their numbers.
    fn change(&self, number: u64) -> String {
        format!("{}/{number:020}", self.count)
    }

    /// The table, and the number of its last change, as they are in one revision.
    async fn read(&self, node: &Node) -> Result<(Option<KeyValue>, Option<KeyValue>), EtcdError> {
        let txn = Txn::default().read(self.table.as_bytes()).read(self.count.as_bytes());
        let mut read = node.txn(&txn).await?.read.into_iter();
        Ok((read.next().flatten(), read.next().flatten()))
    }
}

/// The version of a table.
fn version(kv: &KeyValue) -> Version {
    Version(kv.revision)
}

/// The number that is written there; 0, if there is none, or something else.
fn number(kv: Option<&KeyValue>) -> u64 {
    let text = kv.and_then(|kv| std::str::from_utf8(&kv.value).ok());
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn refused(error: EtcdError) -> StorageError {
    match error {
        EtcdError::Refused(text) => StorageError::Refused(text),
        EtcdError::Compacted(text) | EtcdError::Unavailable(text) => StorageError::Unavailable(text),
    }
}
