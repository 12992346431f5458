//! A session: calls with a time limit, and watches that end with the connection.

use super::error::ZkError;
use super::{ANSWER_WITHIN, Stat};
use bytes::Bytes;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use zookeeper_client::{
    Acls, AddWatchMode, Client, CreateMode, Error, EventType, MultiWriteResult, MultiWriter, OneshotWatcher,
    PersistentWatcher, SessionState,
};

/// Calls of one session that wait for their answers; others wait for them.
const IN_FLIGHT: usize = 256;

/// The connection is lost, and every watch with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost;

impl Lost {
    /// The library panics when its own task ended badly: for us that is a lost connection, not the end of a task of ours.
    pub(super) async fn guard<T>(future: impl Future<Output = T>) -> Result<T, Self> {
        AssertUnwindSafe(future).catch_unwind().await.map_err(|_| Self)
    }
}

/// A session. It ends when nobody holds it.
pub struct Session {
    client: Client,
    hosts: Arc<str>,
    in_flight: Semaphore,
}

impl Session {
    pub(super) fn new(client: Client, hosts: Arc<str>) -> Self {
        Self { client, hosts, in_flight: Semaphore::new(IN_FLIGHT) }
    }

    /// Whether it is connected now.
    pub fn is_connected(&self) -> bool {
        self.client.state() == SessionState::SyncConnected
    }

    /// Its number, as the server's tools show it. Ephemeral nodes name it as their owner.
    pub fn id(&self) -> i64 {
        self.client.session_id().0
    }

    /// The servers, for people.
    pub fn hosts(&self) -> &str {
        &self.hosts
    }

    /// How long it lives without a connection, as agreed with the server.
    pub fn life(&self) -> Duration {
        self.client.session_timeout()
    }

    /// Waits until the connection is lost.
    pub async fn until_lost(&self) {
        let mut states = self.client.state_watcher();
        while states.state() == SessionState::SyncConnected {
            if Lost::guard(states.changed()).await.is_err() {
                return;
            }
        }
    }

    /// Waits until it is connected again, for so long at most; says whether it is.
    pub async fn is_back(&self, within: Duration) -> bool {
        let mut states = self.client.state_watcher();
        let back = async {
            loop {
                match states.state() {
                    SessionState::SyncConnected => return true,
                    state if state.is_terminated() => return false,
                    _ => {}
                }
                if Lost::guard(states.changed()).await.is_err() {
                    return false;
                }
            }
        };
        timeout(within, back).await.unwrap_or(false)
    }

    /// Why nothing can be asked while it is not connected.
    pub fn lost(&self) -> ZkError {
        let why = match self.client.state() {
            SessionState::Expired => "the session is expired",
            SessionState::AuthFailed => "it does not believe who we are",
            _ => "the connection is lost",
        };
        ZkError::away(&self.hosts, why)
    }

    /// A call. Its time begins when it may be sent.
    async fn call<T, E>(
        &self,
        what: &str,
        path: &str,
        call: impl AsyncFnOnce(&Client) -> Result<T, E>,
        error: impl FnOnce(&str, &str, &E) -> ZkError,
    ) -> Result<T, ZkError> {
        let _place = self.in_flight.acquire().await;
        if !self.is_connected() {
            return Err(self.lost());
        }
        match timeout(ANSWER_WITHIN, Lost::guard(call(&self.client))).await {
            Ok(Ok(Ok(value))) => Ok(value),
            Ok(Ok(Err(wrong))) => Err(error(&self.hosts, &format!("{what} {path}"), &wrong)),
            Ok(Err(Lost)) => Err(self.lost()),
            Err(_) => {
                let within = ANSWER_WITHIN.as_secs_f64();
                Err(ZkError::away(&self.hosts, &format!("{what} {path}: no answer within {within} s")))
            }
        }
    }

    async fn ask<T>(
        &self,
        what: &str,
        path: &str,
        call: impl AsyncFnOnce(&Client) -> Result<T, Error>,
    ) -> Result<T, ZkError> {
        self.call(what, path, call, ZkError::of).await
    }

    /// The names of a node's children, in no order; none if there is no such node.
    ///
    /// # Errors
    /// It cannot be asked, or we may not.
    pub async fn children(&self, path: &str) -> Result<Option<Vec<String>>, ZkError> {
        self.ask("children of", path, async |client| found(client.list_children(path).await)).await
    }

    /// Whether there is such a node.
    ///
    /// # Errors
    /// It cannot be asked.
    pub async fn stat(&self, path: &str) -> Result<Option<Stat>, ZkError> {
        self.ask("look for", path, async |client| client.check_stat(path).await).await
    }

    /// A node's content; none if there is no such node.
    ///
    /// # Errors
    /// It cannot be asked, or we may not.
    pub async fn read(&self, path: &str) -> Result<Option<(Bytes, Stat)>, ZkError> {
        let read = self.ask("read", path, async |client| found(client.get_data(path).await)).await?;
        Ok(read.map(|(data, stat)| (data.into(), stat)))
    }

    /// The same, and word of its next change.
    ///
    /// # Errors
    /// As [`Session::read`].
    pub async fn read_and_watch(&self, path: &str) -> Result<Option<(Bytes, Stat, Once)>, ZkError> {
        let read =
            self.ask("read", path, async |client| found(client.get_and_watch_data(path).await)).await?;
        Ok(read.map(|(data, stat, watcher)| (data.into(), stat, Once(watcher))))
    }

    /// The names of a node's children, and word of the next change of their list; or, if there is no such node, word of its
    /// coming.
    ///
    /// # Errors
    /// As [`Session::children`].
    pub async fn children_and_watch(&self, path: &str) -> Result<(Option<Vec<String>>, Once), ZkError> {
        let list = async |client: &Client| loop {
            match client.list_and_watch_children(path).await {
                Ok((children, watcher)) => return Ok((Some(children), Once(watcher))),
                Err(Error::NoNode) => {}
                Err(error) => return Err(error),
            }
            // If it has come in between, its children are asked for again.
            if let (None, watcher) = client.check_and_watch_stat(path).await? {
                return Ok((None, Once(watcher)));
            }
        };
        self.ask("children of", path, list).await
    }

    /// Word of every change of a node and of all nodes below, whether there is such a node or not. Needs ZooKeeper 3.6. Do not
    /// watch one of these nodes in another way in the same session: servers before 3.9 mix them up.
    ///
    /// # Errors
    /// It cannot be asked.
    pub async fn watch_all(&self, path: &str) -> Result<Watched, ZkError> {
        let mode = AddWatchMode::PersistentRecursive;
        self.ask("watch", path, async |client| client.watch(path, mode).await.map(Watched)).await
    }

    /// Makes a node and all that are missing above it. One that is there already is left as it is.
    ///
    /// # Errors
    /// It cannot be done.
    pub async fn make(&self, path: &str) -> Result<(), ZkError> {
        let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
        self.ask("make", path, async |client| client.mkdir(path, &options).await).await
    }

    /// Creates a node.
    ///
    /// # Errors
    /// It cannot be done; there is one.
    pub async fn create(&self, path: &str, data: &[u8]) -> Result<(), ZkError> {
        let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
        self.ask("create", path, async |client| client.create(path, data, &options).await.map(drop)).await
    }

    /// Creates a node that lives as long as the session; a number is put behind `path`. Gives the whole path.
    ///
    /// # Errors
    /// It cannot be done. Whether it was, is not known if the session was lost meanwhile.
    pub async fn join(&self, path: &str, data: &[u8]) -> Result<String, ZkError> {
        let options = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
        let create = async |client: &Client| client.create(path, data, &options).await;
        let (_, number) = self.ask("join", path, create).await?;
        Ok(format!("{path}{number}"))
    }

    /// Replaces a node's content, if it has this version.
    ///
    /// # Errors
    /// It cannot be done; there is no such node, or it has another version.
    pub async fn set(&self, path: &str, data: &[u8], version: Option<i32>) -> Result<Stat, ZkError> {
        self.ask("set", path, async |client| client.set_data(path, data, version).await).await
    }

    /// Deletes a node, if it has this version.
    ///
    /// # Errors
    /// It cannot be done; there is no such node, it has another version, or children.
    pub async fn delete(&self, path: &str, version: Option<i32>) -> Result<(), ZkError> {
        self.ask("delete", path, async |client| client.delete(path, version).await).await
    }

    /// Several changes, all or none. `what` stands in messages.
    ///
    /// # Errors
    /// It cannot be done: `part` of the error says because of which change.
    pub async fn all_or_none(
        &self,
        what: &str,
        changes: impl FnOnce(&mut MultiWriter<'_>) -> Result<(), Error>,
    ) -> Result<Vec<MultiWriteResult>, ZkError> {
        let commit = async |client: &Client| {
            let mut writer = client.new_multi_writer();
            changes(&mut writer)?;
            writer.commit().await
        };
        self.call(what, "", commit, ZkError::of_several).await
    }

    /// Waits until this server knows what all others knew when it was asked.
    ///
    /// # Errors
    /// It cannot be asked.
    pub async fn sync(&self, path: &str) -> Result<(), ZkError> {
        self.ask("sync", path, async |client| client.sync(path).await).await
    }
}

/// "No such node" is an answer.
fn found<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(Error::NoNode) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Word of one change of one node.
pub struct Once(OneshotWatcher);

impl Once {
    /// Waits for it.
    ///
    /// # Errors
    /// The session is lost.
    pub async fn changed(self) -> Result<(), Lost> {
        let event = Lost::guard(self.0.changed()).await?;
        if event.event_type == EventType::Session { Err(Lost) } else { Ok(()) }
    }
}

/// Word of changes.
pub struct Watched(PersistentWatcher);

impl Watched {
    /// Waits for the next change; gives the path of what changed.
    ///
    /// # Errors
    /// The connection is lost: changes may have been missed. Ask no more.
    pub async fn changed(&mut self) -> Result<String, Lost> {
        let event = Lost::guard(self.0.changed()).await?;
        if event.event_type == EventType::Session { Err(Lost) } else { Ok(event.path) }
    }
}
