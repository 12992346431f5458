//! One pass over the directory: which files there are and what they say, read again only where something changed.

use super::file::{self, MAX_FILE};
use crate::names::namers::dns::Hosts;
use crate::names::source::Set;
use muxgate_wire::name::Path;
use std::collections::{HashMap, HashSet};
use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

/// Files and folders that are looked at; what is beyond is ignored, and said once in a while in the log.
pub const MAX_FILES: usize = 10_000;

/// Folders inside folders. Bounds what a link to a folder above itself can do.
pub const MAX_DEPTH: usize = 8;

/// What a name below the root stands for.
#[derive(Clone)]
pub(super) enum Node {
    Folder,
    File(Arc<File>),
    /// A file that is gone while somebody still holds its addresses: should it come back, they go on.
    Gone(Arc<File>),
}

/// A file as it was last read.
pub(super) struct File {
    stamp: Option<Stamp>,
    error: Option<String>,
    /// Whether there was good content before the error.
    has_content: bool,
    pub(super) set: Arc<Set>,
}

/// Tells versions of a file apart without reading it.
type Stamp = (u64, u64, u64, [i64; 4]);

fn stamp(meta: &Metadata) -> Stamp {
    (meta.dev(), meta.ino(), meta.len(), [meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()])
}

pub(super) type Nodes = HashMap<Path, Node>;

/// What is in the directory now.
///
/// # Errors
/// If the root itself cannot be read; what was known before is still the best there is then.
pub(super) fn scan(
    root: &FilePath,
    before: Option<&Nodes>,
    touched: &HashSet<PathBuf>,
    hosts: &Arc<Hosts>,
) -> io::Result<Nodes> {
    let none = Nodes::new();
    let before = before.unwrap_or(&none);
    let mut pass = Pass { before, touched, hosts, now: Nodes::new(), left_out: 0 };
    pass.folder(root, &Path::empty(), 0)?;
    if pass.left_out > 0 {
        tracing::warn!(root = %root.display(), left_out = pass.left_out, "too many files or folders too deep");
    }
    let mut now = pass.now;
    for (path, node) in before {
        if let (Node::File(file) | Node::Gone(file), false) =
            (node, matches!(now.get(path), Some(Node::File(_))))
        {
            file.set.gone();
            if file.set.is_held() && !now.contains_key(path) {
                now.insert(path.clone(), Node::Gone(file.clone()));
            }
        }
    }
    Ok(now)
}

struct Pass<'a> {
    before: &'a Nodes,
    touched: &'a HashSet<PathBuf>,
    hosts: &'a Arc<Hosts>,
    now: Nodes,
    left_out: usize,
}

impl Pass<'_> {
    fn folder(&mut self, at: &FilePath, path: &Path, depth: usize) -> io::Result<()> {
        for entry in fs::read_dir(at)? {
            let entry = entry?;
            let name = entry.file_name();
            // Hidden: half-written files of editors, and the folders behind a mounted config map's links.
            if name.as_bytes().starts_with(b".") {
                continue;
            }
            let (Ok(path), file_path) = (path.child(name.as_bytes()), entry.path()) else { continue };
            // Follows links: a mounted config map is made of them. Gone in between: as if never seen.
            let Ok(meta) = fs::metadata(&file_path) else { continue };
            if self.now.len() >= MAX_FILES || (meta.is_dir() && depth == MAX_DEPTH) {
                self.left_out += 1;
            } else if meta.is_dir() {
                self.now.insert(path.clone(), Node::Folder);
                // A folder that cannot be read has no names in it.
                if let Err(error) = self.folder(&file_path, &path, depth + 1) {
                    tracing::warn!(folder = %file_path.display(), %error, "cannot read");
                }
            } else if meta.is_file() {
                let file = self.file(&file_path, &path, &meta);
                self.now.insert(path, Node::File(file));
            }
        }
        Ok(())
    }

    fn file(&self, at: &FilePath, path: &Path, meta: &Metadata) -> Arc<File> {
        let stamp = Some(stamp(meta));
        let before = match self.before.get(path) {
            Some(Node::File(file)) if file.stamp == stamp && !self.touched.contains(at) => {
                return file.clone();
            }
            Some(Node::File(file) | Node::Gone(file)) => Some(file),
            Some(Node::Folder) | None => None,
        };
        let has_content = matches!(self.before.get(path), Some(Node::File(file)) if file.has_content);
        let error_before = before.and_then(|file| file.error.as_ref());
        let set = before.map_or_else(|| Arc::new(Set::new()), |file| file.set.clone());
        let read = read(at);
        let error = match read.as_deref().map_err(ToString::to_string).and_then(file::parse) {
            Ok(lines) => {
                set.update(&lines, self.hosts);
                if error_before.is_some() {
                    tracing::info!(file = %at.display(), "the file of names is good again");
                }
                None
            }
            Err(why) => Some(format!("{}: {why}", at.display())),
        };
        if let Some(error) = &error {
            match error_before == Some(error) {
                true => {}
                false if has_content => {
                    tracing::warn!(error, "bad file of names; its last good content goes on")
                }
                false => {
                    tracing::warn!(error, "bad file of names; the name has no endpoints until it is good")
                }
            }
            set.fail(error.clone());
        }
        // What could not be read at all is tried again on the next pass.
        let has_content = has_content || error.is_none();
        Arc::new(File { stamp: stamp.filter(|_| read.is_ok()), error, has_content, set })
    }
}

fn read(at: &FilePath) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    fs::File::open(at)?.take(MAX_FILE as u64 + 1).read_to_end(&mut content)?;
    Ok(content)
}
