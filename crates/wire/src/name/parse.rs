//! The grammar of paths, trees and tables, read by hand: one pass, bounded recursion, errors with their place.
//!
//! ```text
//! table   := [ entry { ";" entry } [ ";" ] ]
//! entry   := prefix "=>" tree
//! tree    := union { "|" union }
//! union   := term { "&" term }
//! term    := [ weight "*" ] simple
//! simple  := "(" tree ")" | path | "~" | "!" | "$"
//! ```

use super::dtab::Dentry;
use super::{MAX_ENTRIES, MAX_NESTING, MAX_PATH_TEXT, NameError, NameTree, Path, Prefix, Weighted, What};
use std::borrow::Cow;

/// Whether the byte stands for itself in an element.
pub(super) fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'.' | b'#' | b'$' | b'%' | b'-')
}

/// Whether `text` is what [`push_element`] writes behind the slash.
pub(super) fn is_canonical_element(text: &[u8]) -> bool {
    if text.iter().all(|b| is_plain(*b)) {
        return !text.is_empty();
    }
    let mut odd = false;
    let whole = text.chunks(4).all(|escape| match escape {
        &[b'\\', b'x', high, low] if is_small_hex(high) && is_small_hex(low) => {
            odd |= !is_plain(hex(high) << 4 | hex(low));
            true
        }
        _ => false,
    });
    whole && odd
}

fn is_small_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        b'A'..=b'F' => digit - b'A' + 10,
        _ => 0,
    }
}

/// Appends a slash and the element in canonical text.
pub(super) fn push_element(out: &mut Vec<u8>, raw: &[u8]) {
    out.push(b'/');
    if raw.iter().all(|b| is_plain(*b)) {
        out.extend_from_slice(raw);
        return;
    }
    for byte in raw {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        out.extend_from_slice(b"\\x");
        out.extend(
            [byte >> 4, byte & 15].map(|digit| DIGITS.get(usize::from(digit)).copied().unwrap_or(b'0')),
        );
    }
}

/// The bytes that an element in canonical text stands for.
pub(super) fn unescape(element: &str) -> Cow<'_, [u8]> {
    if !element.contains('\\') {
        return Cow::Borrowed(element.as_bytes());
    }
    let escapes = element.as_bytes().chunks_exact(4);
    Cow::Owned(
        escapes.map(|escape| escape.iter().skip(2).fold(0, |byte, digit| byte << 4 | hex(*digit))).collect(),
    )
}

/// A reader of one text.
pub(super) struct Scan<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
}

impl<'a> Scan<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0, depth: 0 }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn error(&self, what: What) -> NameError {
        NameError::new(self.text, self.at, what)
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Skips blanks and comments; a comment ends with its line.
    pub(super) fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\r' | b'\n') => self.at += 1,
                Some(b'#') => {
                    let rest = self.text.get(self.at..).unwrap_or_default();
                    self.at += rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    /// Nothing but blanks may follow.
    pub(super) fn end(&mut self) -> Result<(), NameError> {
        self.blanks();
        if self.at == self.text.len() { Ok(()) } else { Err(self.error(What::Expected("the end"))) }
    }

    pub(super) fn path(&mut self) -> Result<Path, NameError> {
        self.elements(false)
    }

    pub(super) fn prefix(&mut self) -> Result<Prefix, NameError> {
        Ok(Prefix::canonical(self.elements(true)?))
    }

    fn elements(&mut self, wildcards: bool) -> Result<Path, NameError> {
        let (start, mut out, mut raw) = (self.at, Vec::new(), Vec::new());
        if self.peek() != Some(b'/') {
            return Err(self.error(What::Expected("a path, which begins with /")));
        }
        while self.eat(b'/') {
            if wildcards && self.eat(b'*') {
                out.extend_from_slice(b"/*");
            } else {
                raw.clear();
                self.element(&mut raw)?;
                if raw.is_empty() && out.is_empty() {
                    return Ok(Path::empty());
                }
                if raw.is_empty() {
                    return Err(self.error(What::EmptyElement));
                }
                push_element(&mut out, &raw);
            }
            let glued = self.peek().is_some_and(|b| b == b'*' || b == b'\\' || is_plain(b));
            if wildcards && glued {
                return Err(self.error(What::Wildcard));
            }
        }
        if out.len() > MAX_PATH_TEXT {
            return Err(NameError::new(self.text, start, What::TooLong(MAX_PATH_TEXT)));
        }
        Ok(Path::canonical(out))
    }

    /// Reads the bytes of one element, none if there is none.
    fn element(&mut self, raw: &mut Vec<u8>) -> Result<(), NameError> {
        loop {
            match self.peek() {
                Some(byte) if is_plain(byte) => {
                    raw.push(byte);
                    self.at += 1;
                }
                Some(b'\\') => raw.push(self.escape()?),
                _ => return Ok(()),
            }
        }
    }

    fn escape(&mut self) -> Result<u8, NameError> {
        match self.text.get(self.at..self.at + 4) {
            Some(&[b'\\', b'x', high, low]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                self.at += 4;
                Ok(hex(high) << 4 | hex(low))
            }
            _ => Err(self.error(What::Escape)),
        }
    }

    pub(super) fn table(&mut self) -> Result<Vec<Dentry>, NameError> {
        let mut entries = Vec::new();
        self.blanks();
        while self.at < self.text.len() {
            if entries.len() == MAX_ENTRIES {
                return Err(self.error(What::TooManyEntries(MAX_ENTRIES)));
            }
            entries.push(self.entry()?);
            let more = self.eat(b';');
            self.blanks();
            if !more && self.at < self.text.len() {
                return Err(self.error(What::Expected("; or & or | or the end")));
            }
        }
        Ok(entries)
    }

    fn entry(&mut self) -> Result<Dentry, NameError> {
        let prefix = self.prefix()?;
        self.blanks();
        if self.text.get(self.at..self.at + 2) != Some(b"=>") {
            return Err(self.error(What::Expected("=>")));
        }
        self.at += 2;
        self.blanks();
        Ok(Dentry::new(prefix, self.tree()?))
    }

    /// Reads a tree and the blanks behind it.
    pub(super) fn tree(&mut self) -> Result<NameTree<Path>, NameError> {
        let mut branches = vec![self.union()?];
        while self.eat(b'|') {
            self.blanks();
            branches.push(self.union()?);
        }
        Ok(match branches.pop() {
            Some(only) if branches.is_empty() => only,
            last => NameTree::Alt(branches.into_iter().chain(last).collect()),
        })
    }

    fn union(&mut self) -> Result<NameTree<Path>, NameError> {
        let start = self.at;
        let mut branches = vec![self.term()?];
        while self.eat(b'&') {
            self.blanks();
            branches.push(self.term()?);
        }
        if !branches.iter().map(|branch| branch.weight).sum::<f64>().is_finite() {
            return Err(NameError::new(self.text, start, What::Weight));
        }
        Ok(match branches.pop() {
            // The weight of a lone branch has nothing to be compared with, and is dropped.
            Some(only) if branches.is_empty() => only.tree,
            last => NameTree::Union(branches.into_iter().chain(last).collect()),
        })
    }

    fn term(&mut self) -> Result<Weighted<Path>, NameError> {
        let weight = match self.peek() {
            Some(b'0'..=b'9' | b'.') => self.weight()?,
            _ => 1.0,
        };
        let tree = self.simple()?;
        self.blanks();
        Ok(Weighted { weight, tree })
    }

    fn weight(&mut self) -> Result<f64, NameError> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let len = rest.iter().position(|b| !matches!(b, b'0'..=b'9' | b'.')).unwrap_or(rest.len());
        // The grammar is narrower than Rust's: only digits and dots get here, so neither sign, exponent nor NaN.
        let text = std::str::from_utf8(rest.get(..len).unwrap_or_default()).unwrap_or_default();
        let weight: f64 = text.parse().map_err(|_| self.error(What::Weight))?;
        if !weight.is_finite() {
            return Err(self.error(What::Weight));
        }
        self.at += len;
        self.blanks();
        if !self.eat(b'*') {
            return Err(self.error(What::Expected("* behind a weight")));
        }
        self.blanks();
        Ok(weight)
    }

    fn simple(&mut self) -> Result<NameTree<Path>, NameError> {
        let special = match self.peek() {
            Some(b'/') => return Ok(NameTree::Leaf(self.path()?)),
            Some(b'(') => return self.group(),
            Some(b'~') => NameTree::Neg,
            Some(b'!') => NameTree::Fail,
            Some(b'$') => NameTree::Empty,
            _ => return Err(self.error(What::Expected("a path, ~, !, $ or ("))),
        };
        self.at += 1;
        Ok(special)
    }

    fn group(&mut self) -> Result<NameTree<Path>, NameError> {
        if self.depth == MAX_NESTING {
            return Err(self.error(What::TooDeep(MAX_NESTING)));
        }
        self.at += 1;
        self.depth += 1;
        self.blanks();
        let tree = self.tree()?;
        if !self.eat(b')') {
            return Err(self.error(What::Expected(")")));
        }
        self.depth -= 1;
        Ok(tree)
    }
}
