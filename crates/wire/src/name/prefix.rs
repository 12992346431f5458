//! The left side of a table's entry: a path in which `*` stands for any one element.

use super::parse::Scan;
use super::{MAX_PATH_TEXT, NameError, Path, What};
use std::fmt;

/// A prefix such as `/svc`, `/zone/*/web` or `/`. Cloning costs one reference count.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    /// Canonical text; a bare `*` is the wildcard, an element of that one byte is escaped.
    text: Path,
    wild: bool,
}

impl Prefix {
    /// Reads a prefix; blanks and comments around it are skipped.
    ///
    /// # Errors
    /// Anything that is not exactly one prefix.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self, NameError> {
        let text = text.as_ref();
        if text.len() > MAX_PATH_TEXT {
            return Err(NameError::new(text, MAX_PATH_TEXT, What::TooLong(MAX_PATH_TEXT)));
        }
        let mut scan = Scan::new(text);
        scan.blanks();
        let prefix = scan.prefix()?;
        scan.end()?;
        Ok(prefix)
    }

    /// A canonical text that may hold wildcards.
    pub(super) fn canonical(text: Path) -> Self {
        let wild = text.elements().any(|element| element == "*");
        Self { text, wild }
    }

    /// The canonical text.
    pub fn as_str(&self) -> &str {
        self.text.as_str()
    }

    /// Whether some element is `*`. Finagle servers refuse a message with such a prefix.
    pub fn is_wild(&self) -> bool {
        self.wild
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether this is `/`, which matches every path.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Matches whole elements, `*` any one of them.
    pub fn matches(&self, path: &Path) -> bool {
        if !self.wild {
            return path.starts_with(&self.text);
        }
        let mut elements = path.elements();
        self.text.elements().all(|mine| elements.next().is_some_and(|theirs| mine == "*" || mine == theirs))
    }
}

impl From<Path> for Prefix {
    fn from(text: Path) -> Self {
        Self { text, wild: false }
    }
}

impl std::str::FromStr for Prefix {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::parse(text)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
