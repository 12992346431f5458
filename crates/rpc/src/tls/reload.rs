//! Something made from files that follows them.

use super::files::{Content, FileError, Role};
use arc_swap::ArcSwap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};
use tokio::time::{MissedTickBehavior, interval};

/// How often the files are looked at.
pub const LOOK_EVERY: Duration = Duration::from_secs(5);

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
        let stamps = stamps(&source.files());
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

/// What tells that a file may have changed, without reading it.
type Stamp = Option<(SystemTime, u64)>;

fn stamps(files: &[(Role, PathBuf)]) -> Vec<Stamp> {
    let stamp = |path: &PathBuf| {
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    files.iter().map(|(_, path)| stamp(path)).collect()
}

/// Looks at the files. What makes no sense is said at the second look only: a certificate and its key are two files, and
/// whoever replaces them cannot do it at once.
struct Follower<S: Source> {
    live: Weak<Live<S>>,
    events: Arc<dyn Reloading>,
    stamps: Vec<Stamp>,
    /// What is in use.
    contents: Vec<Content>,
    /// Why the files as they are now are not in use.
    refused: Option<FileError>,
}

impl<S: Source> Follower<S> {
    async fn run(mut self, every: Duration) {
        let mut ticks = interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        loop {
            ticks.tick().await;
            let Some(live) = self.live.upgrade() else { return };
            // Files may lie on a disk that takes its time.
            match tokio::task::spawn_blocking(move || self.look(&live).map(|()| self)).await {
                Ok(Some(follower)) => self = follower,
                _ => return,
            }
        }
    }

    /// One look; none when there is nothing to follow any more.
    fn look(&mut self, live: &Live<S>) -> Option<()> {
        let files = live.source.files();
        // Before they are read: a change in between is seen at the next look.
        let stamps = stamps(&files);
        if stamps == self.stamps {
            if let Some(error) = self.refused.take() {
                tracing::warn!(file = %error.path.display(), reason = error.text, "new certificates are not used");
                self.events.refused();
            }
            return Some(());
        }
        self.stamps = stamps;
        self.refused = None;
        let made = read(&files).and_then(|contents| {
            if contents == self.contents {
                Ok(None)
            } else {
                live.source.make(&contents).map(|made| Some((made, contents)))
            }
        });
        match made {
            Ok(None) => {}
            Ok(Some((made, contents))) => {
                live.made.store(Arc::new(made));
                self.contents = contents;
                let names: Vec<_> = files.iter().map(|(_, path)| path.display().to_string()).collect();
                tracing::info!(files = names.join(", "), "certificates reloaded");
                self.events.reloaded();
            }
            Err(error) => self.refused = Some(error),
        }
        Some(())
    }
}
