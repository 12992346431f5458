//! Tables in ZooKeeper, for many store processes at once, and side by side with namerd.
//!
//! ```text
//!   /dtabs/<namespace>                 the text of the table, and nothing else: as namerd keeps it. Version: mzxid
//!   /dtabs.history/<namespace>         one for each namespace that we ever wrote, for good; set by every write, so its
//!                                      version guards against all other writes, and its mzxid is the write's own version
//!   /dtabs.history/<namespace>/c-...   one for each change: a line of JSON, and behind it the text
//! ```
//!
//! A write is one transaction over all three. What others change past us is seen by the mirror at once, and stands in the history
//! as long as it is the newest.

mod follow;
mod past;

use super::{MAX_HISTORY, Mirror, Past, Storage, StorageError, Version, Write};
use crate::outside::zk::{self, Kind, Session, Stat, Zk, ZkError};
use async_trait::async_trait;
use futures_util::stream::{StreamExt, TryStreamExt, iter};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use zookeeper_client::{Acls, CreateMode, CreateOptions, MultiWriteResult};

/// Where tables are, if nothing else is said (as in linkerd).
pub const PATH_PREFIX: &str = "/dtabs";

/// Longest table here, in bytes. Twice that, the table and what history keeps of it, must fit into the mebibyte that
/// ZooKeeper takes.
pub const MAX_TABLE: usize = 480_000;

/// Time limit of a write, with all the times that it is overtaken by others.
pub const WRITE_WITHIN: Duration = Duration::from_secs(10);

/// Changes beyond [`MAX_HISTORY`] are deleted when there are so many of them.
const PRUNE_AT: usize = 50;

/// Nodes that are read, or deleted, at the same time.
const TOGETHER: usize = 32;

/// Every node belongs to everybody, as namerd's do if nothing else is said.
const OPEN: CreateOptions<'static> = CreateMode::Persistent.with_acls(Acls::anyone_all());

/// The same, with a number behind its name.
const NUMBERED: CreateOptions<'static> = CreateMode::PersistentSequential.with_acls(Acls::anyone_all());

/// Where tables are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// The ensemble.
    pub zk: zk::Params,
    /// The node below which each namespace is a node.
    pub path_prefix: String,
}

/// Tables in ZooKeeper.
pub struct ZkStorage {
    zk: Arc<Zk>,
    prefix: String,
    mirror: watch::Receiver<Mirror>,
    following: AbortHandle,
}

impl ZkStorage {
    /// Begins to follow the tables. An ensemble that cannot be reached is no error: the mirror says so. Must be called on a
    /// runtime.
    pub fn start(params: Params) -> Self {
        let (to, mirror) = watch::channel(Mirror::default());
        let zk = Arc::new(Zk::new(params.zk));
        let prefix = params.path_prefix.trim_end_matches('/').to_owned();
        let following = tokio::spawn(follow::forever(Arc::clone(&zk), prefix.clone(), to));
        Self { zk, prefix, mirror, following: following.abort_handle() }
    }

    fn table(&self, namespace: &str) -> String {
        format!("{}/{namespace}", self.prefix)
    }

    fn folder(&self, namespace: &str) -> String {
        format!("{}.history/{namespace}", self.prefix)
    }

    /// One attempt; nothing, if somebody else was faster.
    async fn attempt(&self, session: &Session, write: &Write) -> Result<Option<Version>, StorageError> {
        let (table, folder) = (self.table(&write.namespace), self.folder(&write.namespace));
        // First the guard: what is read behind it cannot be older.
        let guard = session.stat(&folder).await.map_err(unavailable)?;
        let head = session.stat(&table).await.map_err(unavailable)?;
        write.expect.judge(head.as_ref().map(version), write.dtab.is_none())?;
        let Some(guard) = guard else {
            session.make(&folder).await.map_err(refused)?;
            session.make(&self.prefix).await.map_err(refused)?;
            return Ok(None);
        };
        let past = past::written(write);
        let what = format!("write {table}");
        let done = session.all_or_none(&what, |changes| {
            changes.add_set_data(&folder, b"", Some(guard.version))?;
            changes.add_create(&format!("{folder}/c-"), &past, &NUMBERED)?;
            match (&write.dtab, &head) {
                (Some(dtab), Some(head)) => changes.add_set_data(&table, dtab.as_bytes(), Some(head.version)),
                (Some(dtab), None) => changes.add_create(&table, dtab.as_bytes(), &OPEN),
                (None, head) => changes.add_delete(&table, head.as_ref().map(|head| head.version)),
            }
        });
        match done.await {
            Ok(results) => match results.first() {
                Some(MultiWriteResult::SetData { stat }) => {
                    self.prune(session, &folder, stat).await;
                    Ok(Some(version(stat)))
                }
                _ => Err(StorageError::Unavailable("ZooKeeper does not say what it did".into())),
            },
            Err(error) if overtaken(&error) => Ok(None),
            Err(error) => Err(refused(error)),
        }
    }

    /// Forgets the oldest changes. What goes wrong here is done by the next write.
    async fn prune(&self, session: &Session, folder: &str, stat: &Stat) {
        let known = usize::try_from(stat.num_children).unwrap_or_default();
        if known <= MAX_HISTORY + PRUNE_AT {
            return;
        }
        let Ok(changes) = self.changes(session, folder).await else { return };
        let old = changes.iter().skip(MAX_HISTORY).map(|change| format!("{folder}/{change}"));
        iter(old)
            .for_each_concurrent(TOGETHER, |node| async move {
                if let Err(error) = session.delete(&node, None).await
                    && error.kind != Kind::Missing
                {
                    tracing::debug!(%error, "an old change is not deleted yet");
                }
            })
            .await;
    }

    /// The names of all changes, newest first.
    async fn changes(&self, session: &Session, folder: &str) -> Result<Vec<String>, ZkError> {
        let mut changes = session.children(folder).await?.unwrap_or_default();
        changes.retain(|change| past::number(change).is_some());
        changes.sort_by_key(|change| std::cmp::Reverse(past::number(change)));
        Ok(changes)
    }

    async fn tell(&self, namespace: &str, limit: usize) -> Result<Vec<Past>, ZkError> {
        let (table, folder) = (self.table(namespace), self.folder(namespace));
        let session = self.zk.session().await?;
        session.sync(&self.prefix).await?;
        let changes = self.changes(&session, &folder).await?;
        let read = |change: String| {
            let (session, node) = (&session, format!("{folder}/{change}"));
            async move { session.read(&node).await }
        };
        let nodes = iter(changes.into_iter().take(limit.min(MAX_HISTORY)).map(read));
        let nodes: Vec<_> = nodes.buffered(TOGETHER).try_collect().await?;
        let mut told: Vec<Past> = nodes
            .into_iter()
            .flatten()
            .filter_map(|(content, stat)| past::read(&content, stat.czxid))
            .collect();
        if let Some((content, stat)) = session.read(&table).await? {
            let by_others = past::by_others(&content, &stat);
            if told.first().is_none_or(|newest| newest.version < by_others.version) {
                told.insert(0, by_others);
                told.truncate(limit);
            }
        }
        Ok(told)
    }
}

impl Drop for ZkStorage {
    fn drop(&mut self) {
        self.following.abort();
    }
}

#[async_trait]
impl Storage for ZkStorage {
    fn mirror(&self) -> watch::Receiver<Mirror> {
        self.mirror.clone()
    }

    async fn write(&self, write: Write) -> Result<Version, StorageError> {
        if write.dtab.as_ref().is_some_and(|dtab| dtab.len() > MAX_TABLE) {
            return Err(StorageError::Refused(format!(
                "ZooKeeper keeps tables of {MAX_TABLE} bytes at most"
            )));
        }
        let attempts = async {
            let session = self.zk.session().await.map_err(unavailable)?;
            // What the caller knows, perhaps from another server, must be known here.
            session.sync(&self.prefix).await.map_err(unavailable)?;
            loop {
                if let Some(version) = self.attempt(&session, &write).await? {
                    return Ok(version);
                }
            }
        };
        let late = || StorageError::Unavailable(format!("not written within {} s", WRITE_WITHIN.as_secs()));
        timeout(WRITE_WITHIN, attempts).await.unwrap_or_else(|_| Err(late()))
    }

    async fn history(&self, namespace: &str, limit: usize) -> Result<Vec<Past>, StorageError> {
        self.tell(namespace, limit).await.map_err(unavailable)
    }
}

/// The version of a table.
fn version(stat: &Stat) -> Version {
    Version(u64::try_from(stat.mzxid).unwrap_or_default())
}

/// Somebody else has changed one of the nodes in the meantime.
fn overtaken(error: &ZkError) -> bool {
    matches!(error.kind, Kind::Differs | Kind::Exists | Kind::Missing)
}

fn unavailable(error: ZkError) -> StorageError {
    StorageError::Unavailable(error.text)
}

fn refused(error: ZkError) -> StorageError {
    match error.kind {
        Kind::Forbidden | Kind::Refused | Kind::NotEmpty => StorageError::Refused(error.text),
        _ => StorageError::Unavailable(error.text),
    }
}
