//! A delegation table: an ordered list of `prefix => tree`, of which later entries win.

use super::parse::Scan;
use super::{MAX_DTAB_TEXT, MAX_ENTRIES, NameError, NameTree, Path, Prefix, What};
use crate::pairs::{Pairs, PairsError};
use std::fmt;
use std::sync::Arc;

/// One entry of a table. Cloning costs two reference counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dentry {
    /// Which paths it rewrites.
    pub prefix: Prefix,
    /// What they become; what is behind the prefix is appended to each of its leaves.
    pub dst: Arc<NameTree<Path>>,
}

impl Dentry {
    /// An entry.
    pub fn new(prefix: impl Into<Prefix>, dst: NameTree<Path>) -> Self {
        Self { prefix: prefix.into(), dst: Arc::new(dst) }
    }
}

impl fmt::Display for Dentry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=>{}", self.prefix, self.dst)
    }
}

/// A delegation table. Cloning costs one reference count; the empty one is free.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Dtab(Option<Arc<[Dentry]>>);

/// An entry whose prefix matched a path.
#[derive(Clone, Debug)]
pub struct Match<'a> {
    /// The entry's place in its table, from 0.
    pub index: usize,
    /// The entry.
    pub dentry: &'a Dentry,
    /// What of the path is behind the prefix.
    pub rest: Path,
}

impl Dtab {
    /// The table without entries.
    pub const fn empty() -> Self {
        Self(None)
    }

    /// Reads a table. Text without entries is the empty table.
    ///
    /// # Errors
    /// Anything that is not a table, or exceeds [`MAX_DTAB_TEXT`] or [`MAX_ENTRIES`].
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self, NameError> {
        let text = text.as_ref();
        if text.len() > MAX_DTAB_TEXT {
            return Err(NameError::new(text, MAX_DTAB_TEXT, What::TooLong(MAX_DTAB_TEXT)));
        }
        Ok(Scan::new(text).table()?.into())
    }

    /// Reads a table as Mux carries it: pairs of prefix and tree, both text. Unlike Finagle's reader this one takes
    /// prefixes with wildcards, which Finagle's writer does write.
    ///
    /// # Errors
    /// Any pair that cannot be read: half a table would mean something else.
    pub fn from_pairs(pairs: &Pairs) -> Result<Self, NameError> {
        if pairs.len() > MAX_ENTRIES {
            return Err(NameError::new(b"", 0, What::TooManyEntries(MAX_ENTRIES)));
        }
        let entries: Result<Vec<_>, _> = pairs
            .iter()
            .enumerate()
            .map(|(at, (prefix, dst))| {
                let prefix = Prefix::parse(&prefix).map_err(|e| e.in_pair(at))?;
                Ok(Dentry::new(prefix, NameTree::parse(&dst).map_err(|e| e.in_pair(at))?))
            })
            .collect();
        Ok(entries?.into())
    }

    /// The pairs that carry this table in a Mux message. Do not send prefixes with wildcards to a server that is not
    /// known to take them (see [`Prefix::is_wild`]).
    ///
    /// # Errors
    /// If a tree's text or the number of entries is too large for the message.
    pub fn to_pairs(&self) -> Result<Pairs, PairsError> {
        let texts: Vec<_> = self.entries().iter().map(|e| (e.prefix.as_str(), e.dst.to_string())).collect();
        Pairs::build(texts.iter().map(|(prefix, dst)| (prefix.as_bytes(), dst.as_bytes())))
    }

    /// The entries in order.
    pub fn entries(&self) -> &[Dentry] {
        self.0.as_deref().unwrap_or_default()
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries().len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The entries that match `path` in the order they are tried: from the last to the first, whatever the length of
    /// their prefixes.
    pub fn matches<'a>(&'a self, path: &Path) -> impl Iterator<Item = Match<'a>> {
        let entries = self.entries().iter().enumerate().rev();
        entries.filter(|(_, dentry)| dentry.prefix.matches(path)).map(|(index, dentry)| Match {
            index,
            dentry,
            rest: path.skip(dentry.prefix.len()),
        })
    }

    /// One step: the trees of all matching entries, the rest of the path appended to their leaves. None matched:
    /// negative; one: its tree; several: an alternation of their trees. Nothing is simplified.
    pub fn lookup(&self, path: &Path) -> NameTree<Path> {
        let dst =
            |found: Match<'_>| NameTree::clone(&found.dentry.dst).map(&mut |leaf| leaf.concat(&found.rest));
        let mut trees: Vec<_> = self.matches(path).map(dst).collect();
        match trees.pop() {
            None => NameTree::Neg,
            Some(only) if trees.is_empty() => only,
            Some(last) => {
                trees.push(last);
                NameTree::Alt(trees)
            }
        }
    }

    /// This table with the entries of `later` behind its own, where they win.
    pub fn concat(&self, later: &Dtab) -> Self {
        match (self.is_empty(), later.is_empty()) {
            (_, true) => self.clone(),
            (true, false) => later.clone(),
            (false, false) => self.entries().iter().chain(later.entries()).cloned().collect(),
        }
    }

    /// Each tree simplified, entries that are negative left out.
    pub fn simplified(&self) -> Self {
        let simple = |e: &Dentry| Dentry::new(e.prefix.clone(), NameTree::clone(&e.dst).simplify());
        self.entries().iter().map(simple).filter(|e| *e.dst != NameTree::Neg).collect()
    }
}

impl From<Vec<Dentry>> for Dtab {
    fn from(entries: Vec<Dentry>) -> Self {
        Self((!entries.is_empty()).then(|| entries.into()))
    }
}

impl FromIterator<Dentry> for Dtab {
    fn from_iter<I: IntoIterator<Item = Dentry>>(entries: I) -> Self {
        entries.into_iter().collect::<Vec<_>>().into()
    }
}

impl std::str::FromStr for Dtab {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::parse(text)
    }
}

impl fmt::Display for Dtab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, entry) in self.entries().iter().enumerate() {
            write!(f, "{}{entry}", if at > 0 { ";" } else { "" })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Dtab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
