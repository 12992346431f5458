//! Something made from files that follows them.

use super::files::{Content, FileError, Role};
use arc_swap::ArcSwap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};
use tokio::time::{MissedTickBehavior, interval};

/// How often the files are looked at.
pub const LOOK_EVERY: Duration = Duration::from_secs(2);

/// What whoever counts is told of changes.
pub trait Reloading: Send + Sync + 'static {
    /// New files are in use.
    fn reloaded(&self) {}
    /// New files make no sense; what was in use still is.
    fn refused(&self) {}
}

/// Counts nothing.
impl Reloading for () {}

/// The files that something is made of.
pub(super) trait Source: Send + Sync + 'static {
    /// What is made of them.
    type Made: Send + Sync + 'static;

    /// The files, in the order in which [`Source::make`] gets them.
    fn files(&self) -> Vec<(Role, PathBuf)>;

    /// Makes it.
    fn make(&self, contents: &[Content]) -> Result<Self::Made, FileError>;

    /// Reads the files and makes it.
    fn load(&self) -> Result<(Self::Made, Vec<Content>), FileError> {
        let contents = read(&self.files())?;
        Ok((self.make(&contents)?, contents))
    }
}

fn read(files: &[(Role, PathBuf)]) -> Result<Vec<Content>, FileError> {
    files.iter().map(|(role, path)| Content::read(*role, path)).collect()
}

/// What is in use; follows its files until it is dropped.
pub(super) struct Live<S: Source> {
    source: S,
    made: ArcSwap<S::Made>,
}

impl<S: Source> Live<S> {
    /// Makes it from its files as they are now, and starts the task that follows them. Must be called on a runtime.
    pub(super) fn start(
        source: S,
        look_every: Duration,
        events: Arc<dyn Reloading>,
    ) -> Result<Arc<Self>, FileError> {
        let stamps = Stamp::all(&source.files());
        let (made, contents) = source.load()?;
        let live = Arc::new(Self { source, made: ArcSwap::from_pointee(made) });
        let follower = Follower { live: Arc::downgrade(&live), events, stamps, contents, refused: None };
        tokio::spawn(follower.run(look_every));
        Ok(live)
    }

    pub(super) fn source(&self) -> &S {
        &self.source
    }

    pub(super) fn now(&self) -> Arc<S::Made> {
        self.made.load_full()
    }
}

/// A file that changed less than this before it was looked at is read again at the next look: clocks of file systems are
/// coarse, and it may have changed twice within one tick.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// What tells that a file has not changed, without reading it.
#[derive(PartialEq, Eq)]
struct Stamp {
    modified: SystemTime,
    len: u64,
    inode: u64,
}

impl Stamp {
    /// None if the file is not there, or has changed just now.
    fn of(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        let modified = metadata.modified().ok()?;
        // A time to come says nothing either.
        let settled = modified.elapsed().is_ok_and(|age| age >= SETTLED_AFTER);
        settled.then(|| Self { modified, len: metadata.len(), inode: metadata.ino() })
    }

    /// None if any of the files has none.
    fn all(files: &[(Role, PathBuf)]) -> Option<Vec<Self>> {
        files.iter().map(|(_, path)| Self::of(path)).collect()
    }
}

/// Files that make no sense.
struct Refused {
    error: FileError,
    /// None if they could not even be read.
    contents: Option<Vec<Content>>,
    told: bool,
}

/// Looks at the files. What makes no sense is said at the second look only: a certificate and its key are two files, and
/// whoever replaces them cannot do it at once.
struct Follower<S: Source> {
    live: Weak<Live<S>>,
    events: Arc<dyn Reloading>,
    stamps: Option<Vec<Stamp>>,
    /// What is in use.
    contents: Vec<Content>,
    /// What is not in use although it is there.
    refused: Option<Refused>,
}

impl<S: Source> Follower<S> {
    async fn run(mut self, every: Duration) {
        let mut ticks = interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        loop {
            ticks.tick().await;
            let Some(live) = self.live.upgrade() else { return };
            // Files may lie on a disk that takes its time, or all of it: then this one thread of the runtime's 512 is lost, and
            // these files are not followed any more, while all others are.
            let looked = tokio::task::spawn_blocking(move || {
                self.look(&live);
                self
            });
            match looked.await {
                Ok(follower) => self = follower,
                Err(_) => return,
            }
        }
    }

    fn look(&mut self, live: &Live<S>) {
        let files = live.source.files();
        // Before they are read: a change in between is seen at the next look.
        let stamps = Stamp::all(&files);
        if stamps.is_some() && stamps == self.stamps {
            return self.tell();
        }
        self.stamps = stamps;
        match read(&files) {
            Err(error) => self.refuse(error, None),
            Ok(contents) if contents == self.contents => self.refused = None,
            Ok(contents) if self.is_refused(&contents) => self.tell(),
            Ok(contents) => match live.source.make(&contents) {
                Err(error) => self.refuse(error, Some(contents)),
                Ok(made) => {
                    live.made.store(Arc::new(made));
                    self.contents = contents;
                    self.refused = None;
                    let names: Vec<_> = files.iter().map(|(_, path)| path.display().to_string()).collect();
                    tracing::info!(files = names.join(", "), "certificates reloaded");
                    self.events.reloaded();
                }
            },
        }
    }

    fn is_refused(&self, contents: &Vec<Content>) -> bool {
        self.refused.as_ref().is_some_and(|refused| refused.contents.as_ref() == Some(contents))
    }

    fn refuse(&mut self, error: FileError, contents: Option<Vec<Content>>) {
        let again = self.refused.as_ref().is_some_and(|refused| refused.error == error);
        if again && contents.is_none() {
            return self.tell();
        }
        self.refused = Some(Refused { error, contents, told: false });
    }

    /// Says once why what is there is not in use.
    fn tell(&mut self) {
        let Some(refused) = self.refused.as_mut().filter(|refused| !refused.told) else { return };
        refused.told = true;
        let FileError { path, text, .. } = &refused.error;
        tracing::warn!(file = %path.display(), reason = %text, "new certificates make no sense: the old ones stay");
        self.events.refused();
    }
}
