//! What is remembered over a restart: small values on shelves, in one file that survives a crash. Library: `redb`.
//!
//! Putting returns at once; a thread of its own writes what was put, in one commit, at most one a second. A file that cannot
//! be read is moved aside: what is kept is a help in need, and must never stop a start.

mod file;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use file::File;
use parking_lot::{Condvar, Mutex};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};
use tokio::sync::oneshot;

/// Values on one shelf; for more there is no room.
pub const MAX_ENTRIES: usize = 100_000;

/// Bytes of one value; a larger one is not kept.
pub const MAX_VALUE: usize = 1 << 20;

/// Changes that wait to be written; more are dropped.
pub const MAX_WAITING: usize = 100_000;

/// Between two commits.
const EVERY: Duration = Duration::from_secs(1);

/// A shelf and a key on it.
type Place = (Arc<str>, Bytes);

/// What is put there, and when; nothing: it is taken away.
type Change = (Option<Bytes>, SystemTime);

type Changes = HashMap<Place, Change>;

/// A memory that outlives the process.
pub struct Kept {
    shared: Option<Arc<Shared>>,
    writer: Option<JoinHandle<()>>,
}

struct Shared {
    file: File,
    line: Mutex<Line>,
    changed: Condvar,
}

#[derive(Default)]
struct Line {
    waiting: Changes,
    /// What is being written right now.
    writing: Arc<Changes>,
    flushes: Vec<oneshot::Sender<()>>,
    dropped: bool,
    closed: bool,
}

impl Kept {
    /// Opens the memory in this folder, which is made if it is not there.
    ///
    /// # Errors
    /// A folder or file that cannot be used, or is in use by another process.
    pub fn open(folder: &Path) -> Result<Arc<Self>, String> {
        let shared =
            Arc::new(Shared { file: File::open(folder)?, line: Mutex::default(), changed: Condvar::new() });
        let writing = Arc::clone(&shared);
        let writer = std::thread::Builder::new().name("kept".into()).spawn(move || writing.write());
        let writer = writer.map_err(|error| format!("no thread: {error}"))?;
        Ok(Arc::new(Self { shared: Some(shared), writer: Some(writer) }))
    }

    /// A memory that remembers nothing.
    pub fn nowhere() -> Arc<Self> {
        Arc::new(Self { shared: None, writer: None })
    }

    /// What was put there last, and when.
    pub fn get(&self, shelf: &str, key: &[u8]) -> Option<(Bytes, SystemTime)> {
        let shared = self.shared.as_ref()?;
        let place: Place = (shelf.into(), Bytes::copy_from_slice(key));
        let line = shared.line.lock();
        let changed = line.waiting.get(&place).or_else(|| line.writing.get(&place)).cloned();
        drop(line);
        match changed {
            Some((value, when)) => Some((value?, when)),
            None => shared.file.get(&place),
        }
    }

    /// Puts a value there, or takes it away. Returns at once; it is written within a second or two, the last one wins.
    pub fn put(&self, shelf: &str, key: &[u8], value: Option<Bytes>) {
        let Some(shared) = &self.shared else { return };
        let value = value.filter(|value| value.len() <= MAX_VALUE);
        let mut line = shared.line.lock();
        let place: Place = (shelf.into(), Bytes::copy_from_slice(key));
        if line.waiting.len() >= MAX_WAITING && !line.waiting.contains_key(&place) {
            if !std::mem::replace(&mut line.dropped, true) {
                tracing::warn!("more changes than the disk can take: some are not kept");
            }
            return;
        }
        line.waiting.insert(place, (value, SystemTime::now()));
        shared.changed.notify_one();
    }

    /// Waits until all that was put is on disk.
    pub async fn flush(&self) {
        let Some(shared) = &self.shared else { return };
        let (done, wait) = oneshot::channel();
        shared.line.lock().flushes.push(done);
        shared.changed.notify_one();
        // The writer answers before it ends, and it lives as long as this.
        let _ = wait.await;
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared {
            shared.line.lock().closed = true;
            shared.changed.notify_one();
        }
        if let Some(writer) = self.writer.take() {
            // It has no reason to panic; and if it has, there is nothing left to do.
            let _ = writer.join();
        }
    }
}

impl Shared {
    /// Writes what waits, until the memory is dropped.
    fn write(&self) {
        let mut count = self.file.count();
        loop {
            let mut line = self.line.lock();
            while line.waiting.is_empty() && line.flushes.is_empty() && !line.closed {
                self.changed.wait(&mut line);
            }
            line.writing = Arc::new(std::mem::take(&mut line.waiting));
            let (batch, flushes) = (Arc::clone(&line.writing), std::mem::take(&mut line.flushes));
            let closed = line.closed;
            drop(line);
            if let Err(error) = self.file.write(&batch, &mut count) {
                tracing::warn!(error, "cannot write what should be kept");
            }
            self.line.lock().writing = Arc::default();
            for done in flushes {
                let _ = done.send(());
            }
            if closed {
                return;
            }
            let mut line = self.line.lock();
            if line.flushes.is_empty() && !line.closed {
                let urgent = |line: &mut Line| line.flushes.is_empty() && !line.closed;
                self.changed.wait_while_for(&mut line, urgent, EVERY);
            }
        }
    }
}
