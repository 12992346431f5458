//! Tables in a file of this machine: embedded, durable, for one store process.
//!
//! One thread owns the file. Changes that wait for it are made together, in one transaction: each is as durable as alone,
//! and many cost little more than one. A file that fails is opened anew for the next change.

mod book;
#[cfg(test)]
mod tests;

use super::{Mirror, Past, Storage, StorageError, Table, Version, Write};
use async_trait::async_trait;
use book::Book;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

/// The file in the folder.
pub const FILE: &str = "dtabs.redb";

/// Requests that may wait for the thread; more wait to be queued, as long as [`WITHIN`] lets them.
const QUEUE: usize = 256;

/// Most changes in one transaction.
const BATCH: usize = 128;

/// How long a disk may take.
pub const WITHIN: Duration = Duration::from_secs(10);

/// Tables in a folder.
#[derive(Debug)]
pub struct Embedded {
    asks: Option<mpsc::Sender<Ask>>,
    mirror: watch::Receiver<Mirror>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread is asked.
enum Ask {
    Write(Write, oneshot::Sender<Result<Version, StorageError>>),
    History(String, usize, oneshot::Sender<Result<Vec<Past>, StorageError>>),
}

impl Embedded {
    /// Opens the tables in a folder; makes it, readable for the user alone, if it is not there. Blocks on the disk.
    ///
    /// # Errors
    /// The folder cannot be made or written, the file is not ours, or another process has it open. Says which.
    pub fn open(dir: &Path) -> Result<Self, String> {
        make(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        let (book, tables) = Book::open(&dir.join(FILE))?;
        let (asks, waiting) = mpsc::channel(QUEUE);
        let (sender, mirror) = watch::channel(Mirror { tables: Arc::new(tables), known: true, outage: None });
        let keeper = Keeper { path: dir.join(FILE), book: Some(book), mirror: sender };
        let thread = std::thread::Builder::new().name("store".into()).spawn(move || keeper.run(waiting));
        let thread = thread.map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(Self { asks: Some(asks), mirror, thread: Some(thread) })
    }

    async fn ask<T>(
        &self,
        ask: impl FnOnce(oneshot::Sender<Result<T, StorageError>>) -> Ask,
    ) -> Result<T, StorageError> {
        let gone = || StorageError::Unavailable("the thread that owns the file has ended".into());
        let (answer, answered) = oneshot::channel();
        let exchange = async {
            let asks = self.asks.as_ref().ok_or_else(gone)?;
            asks.send(ask(answer)).await.map_err(|_| gone())?;
            answered.await.map_err(|_| gone())?
        };
        let late = || Err(StorageError::Unavailable(format!("the disk takes more than {WITHIN:?}")));
        timeout(WITHIN, exchange).await.unwrap_or_else(|_| late())
    }
}

fn make(dir: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(dir)
}

/// Waits for the thread: what was taken is written, and the file is closed.
impl Drop for Embedded {
    fn drop(&mut self) {
        self.asks = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

#[async_trait]
impl Storage for Embedded {
    fn mirror(&self) -> watch::Receiver<Mirror> {
        self.mirror.clone()
    }

    async fn write(&self, write: Write) -> Result<Version, StorageError> {
        self.ask(|answer| Ask::Write(write, answer)).await
    }

    async fn history(&self, namespace: &str, limit: usize) -> Result<Vec<Past>, StorageError> {
        self.ask(|answer| Ask::History(namespace.into(), limit, answer)).await
    }
}

/// What the thread works with.
struct Keeper {
    path: PathBuf,
    /// None after a failure, until it could be opened again.
    book: Option<Book>,
    mirror: watch::Sender<Mirror>,
}

type Waiting = Vec<(Write, oneshot::Sender<Result<Version, StorageError>>)>;

impl Keeper {
    fn run(mut self, mut asks: mpsc::Receiver<Ask>) {
        let mut asked = Vec::new();
        while asks.blocking_recv_many(&mut asked, BATCH) > 0 {
            let mut writes = Waiting::new();
            for ask in asked.drain(..) {
                match ask {
                    Ask::Write(write, answer) => writes.push((write, answer)),
                    Ask::History(namespace, limit, answer) => {
                        // Whoever asked after a change was made sees it; nobody waits to be shown what was asked later.
                        self.write(std::mem::take(&mut writes));
                        let read = self.book().and_then(|book| book.history(&namespace, limit));
                        // Whoever has gone does not want it.
                        let _ = answer.send(read.map_err(|why| self.lost(why)));
                    }
                }
            }
            self.write(writes);
        }
    }

    /// Makes changes, and answers when they are on disk and in the mirror.
    fn write(&mut self, mut writes: Waiting) {
        // Whoever gave up while waiting is told nothing, and nothing is done.
        writes.retain(|(_, answer)| !answer.is_closed());
        if writes.is_empty() {
            return;
        }
        let (writes, answers): (Vec<_>, Vec<_>) = writes.into_iter().unzip();
        let done = match self.book().and_then(|book| book.apply(&writes)) {
            Ok(done) => done,
            Err(why) => {
                let lost = self.lost(why);
                vec![Err(lost); writes.len()]
            }
        };
        self.publish(writes, &done);
        for (answer, done) in answers.into_iter().zip(done) {
            let _ = answer.send(done);
        }
    }

    fn publish(&self, writes: Vec<Write>, done: &[Result<Version, StorageError>]) {
        let made =
            writes.into_iter().zip(done).filter_map(|(write, done)| Some((write, done.as_ref().ok()?)));
        let mut made = made.peekable();
        if made.peek().is_none() {
            return;
        }
        self.mirror.send_modify(|mirror| {
            let tables: &mut BTreeMap<_, _> = Arc::make_mut(&mut mirror.tables);
            for (write, version) in made {
                match write.dtab {
                    Some(dtab) => tables.insert(write.namespace, Table { dtab, version: *version }),
                    None => tables.remove(&write.namespace),
                };
            }
        });
    }

    fn book(&mut self) -> Result<&Book, String> {
        if self.book.is_none() {
            let (book, tables) = Book::open(&self.path)?;
            self.mirror.send_modify(|mirror| (mirror.tables, mirror.outage) = (Arc::new(tables), None));
            self.book = Some(book);
        }
        self.book.as_ref().ok_or_else(|| "the file is closed".into())
    }

    fn lost(&mut self, why: String) -> StorageError {
        tracing::error!(file = %self.path.display(), why, "the tables cannot be written or read");
        self.book = None;
        self.mirror.send_modify(|mirror| mirror.outage = Some(why.clone()));
        StorageError::Unavailable(why)
    }
}
