//! A path: a list of non-empty byte strings, held as its one canonical text.

use super::parse::{self, Scan};
use super::{MAX_PATH_TEXT, NameError, What};
use bytes::Bytes;
use std::borrow::Cow;
use std::fmt;

/// A path such as `/svc/users`, `/` if it has no elements. Cloning costs one reference count.
///
/// Held in canonical text: an element whose bytes all stand for themselves is plain, any other is escaped as a whole,
/// with small hex digits. So equality of text is equality of paths.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(Bytes);

const EMPTY: Bytes = Bytes::from_static(b"/");

impl Default for Path {
    fn default() -> Self {
        Self::empty()
    }
}

impl Path {
    /// The path without elements, `/`.
    pub const fn empty() -> Self {
        Self(EMPTY)
    }

    /// Reads a path; blanks and comments around it are skipped. An empty text is no path.
    ///
    /// # Errors
    /// Anything that is not exactly one path.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self, NameError> {
        let text = text.as_ref();
        if text.len() > MAX_PATH_TEXT {
            return Err(NameError::new(text, MAX_PATH_TEXT, What::TooLong(MAX_PATH_TEXT)));
        }
        let mut scan = Scan::new(text);
        scan.blanks();
        let path = scan.path()?;
        scan.end()?;
        Ok(path)
    }

    /// Takes a path as a message holds it: zero bytes are the empty path. A text that is canonical already is kept
    /// in the memory it came in, without a copy.
    ///
    /// # Errors
    /// As [`Path::parse`].
    pub fn from_bytes(text: Bytes) -> Result<Self, NameError> {
        if text.is_empty() {
            return Ok(Self::empty());
        }
        if text.len() <= MAX_PATH_TEXT && is_canonical(&text) { Ok(Self(text)) } else { Self::parse(&text) }
    }

    /// A text that is known to be canonical.
    pub(super) fn canonical(text: impl Into<Bytes>) -> Self {
        Self(text.into())
    }

    /// The canonical text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("/")
    }

    /// The canonical text as bytes that share this path's memory.
    pub fn as_bytes(&self) -> &Bytes {
        &self.0
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.0.len() <= 1
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        if self.is_empty() { 0 } else { self.0.iter().filter(|b| **b == b'/').count() }
    }

    /// The elements, each as canonical text.
    pub fn elements(&self) -> impl DoubleEndedIterator<Item = &str> {
        let text = if self.is_empty() { None } else { self.as_str().get(1..) };
        text.into_iter().flat_map(|text| text.split('/'))
    }

    /// The elements as the bytes that they stand for.
    pub fn raw_elements(&self) -> impl DoubleEndedIterator<Item = Cow<'_, [u8]>> {
        self.elements().map(parse::unescape)
    }

    /// Whether the first elements are those of `prefix`.
    pub fn starts_with(&self, prefix: &Path) -> bool {
        let end = prefix.0.len();
        prefix.is_empty() || (self.0.starts_with(&prefix.0) && matches!(self.0.get(end), None | Some(b'/')))
    }

    /// The path without its first `count` elements, in the same memory; empty if there are not more.
    pub fn skip(&self, count: usize) -> Self {
        match self.offset(count) {
            Some(at) if at < self.0.len() => Self(self.0.slice(at..)),
            _ => Self::empty(),
        }
    }

    /// The first `count` elements, in the same memory; the whole path if there are not more.
    pub fn take(&self, count: usize) -> Self {
        match self.offset(count) {
            Some(0) => Self::empty(),
            Some(at) => Self(self.0.slice(..at)),
            None => self.clone(),
        }
    }

    /// Where element number `count` begins, at its slash; the length of the text for the one behind the last.
    fn offset(&self, count: usize) -> Option<usize> {
        if self.is_empty() {
            return (count == 0).then_some(0);
        }
        let slashes = self.0.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(at, _)| at);
        slashes.chain([self.0.len()]).nth(count)
    }

    /// The elements of this path and then those of `rest`.
    pub fn concat(&self, rest: &Path) -> Self {
        match (self.is_empty(), rest.is_empty()) {
            (_, true) => self.clone(),
            (true, false) => rest.clone(),
            (false, false) => Self([&self.0[..], &rest.0[..]].concat().into()),
        }
    }

    /// This path with one more element, given as the bytes that it stands for.
    ///
    /// # Errors
    /// If the element is empty, or the text would be longer than [`MAX_PATH_TEXT`].
    pub fn child(&self, raw: &[u8]) -> Result<Self, NameError> {
        if raw.is_empty() {
            return Err(NameError::new(raw, 0, What::EmptyElement));
        }
        let mut text = Vec::with_capacity(self.0.len() + 1 + raw.len());
        if !self.is_empty() {
            text.extend_from_slice(&self.0);
        }
        parse::push_element(&mut text, raw);
        if text.len() > MAX_PATH_TEXT {
            return Err(NameError::new(&text, MAX_PATH_TEXT, What::TooLong(MAX_PATH_TEXT)));
        }
        Ok(Self(text.into()))
    }

    /// A path of the given elements, as the bytes that they stand for.
    ///
    /// # Errors
    /// As [`Path::child`].
    pub fn from_elements<'a>(raw: impl IntoIterator<Item = &'a [u8]>) -> Result<Self, NameError> {
        raw.into_iter().try_fold(Self::empty(), |path, element| path.child(element))
    }
}

/// Whether `text` is a path in canonical text. `/` is; the empty text is not.
fn is_canonical(text: &[u8]) -> bool {
    match text {
        [b'/'] => true,
        // Most paths: one pass, nothing escaped.
        [b'/', rest @ ..] => rest.split(|b| *b == b'/').all(parse::is_canonical_element),
        _ => false,
    }
}

impl std::str::FromStr for Path {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::parse(text)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
