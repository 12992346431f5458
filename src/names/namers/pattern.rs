//! Patterns of paths, and the namer `io.l5d.rewrite` that is made of one: `/{svc}/api` becomes `/out/{svc}`.
//!
//! `*` matches one element without keeping it, `{x}` keeps it; several may stand in one element with text between, the
//! first takes as much as it can. A pattern matches the beginning of a path. What follows the pattern is dropped by
//! the namer: the result is the template and nothing else.

use crate::names::namer::{Answer, Lookup, Namer};
use muxgate_wire::name::Path;
use std::collections::HashMap;
use std::fmt;

/// What a pattern kept, by name.
pub type Captures = HashMap<String, Vec<u8>>;

/// One element: text, then captures each with the text behind it.
#[derive(Clone, Debug, PartialEq)]
struct Element {
    lead: Vec<u8>,
    captures: Vec<(String, Vec<u8>)>,
    any: bool,
}

/// A pattern such as `/{svc}/*/api-{version}`, or a template such as `/out/{svc}`.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern(Vec<Element>);

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// A text that says what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some(rest) = text.strip_prefix('/') else {
            return Err(format!("a pattern begins with /: {text}"));
        };
        if rest.is_empty() {
            return Ok(Self(Vec::new()));
        }
        rest.split('/')
            .map(|element| {
                Element::parse(element).ok_or_else(|| format!("bad element {element:?} in {text}"))
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// The captures, if the beginning of `path` matches.
    pub fn matches(&self, path: &Path) -> Option<Captures> {
        let mut elements = path.raw_elements();
        let mut captures = Captures::new();
        for element in &self.0 {
            element.matches(&elements.next()?, &mut captures)?;
        }
        Some(captures)
    }

    /// The path that this template makes of captures; none if an element would be empty or a capture is unknown.
    pub fn fill(&self, captures: &Captures) -> Option<Path> {
        self.0.iter().try_fold(Path::empty(), |path, element| {
            let mut raw = element.lead.clone();
            for (name, text) in &element.captures {
                raw.extend_from_slice(captures.get(name)?);
                raw.extend_from_slice(text);
            }
            path.child(&raw).ok()
        })
    }

    /// The names of the captures.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|element| element.captures.iter().map(|(name, _)| name.as_str()))
    }
}

/// As it is written.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("/");
        }
        self.0.iter().try_for_each(|element| write!(f, "/{element}"))
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.any {
            return f.write_str("*");
        }
        f.write_str(&String::from_utf8_lossy(&self.lead))?;
        let mut captures = self.captures.iter();
        captures.try_for_each(|(name, text)| write!(f, "{{{name}}}{}", String::from_utf8_lossy(text)))
    }
}

impl Element {
    fn parse(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self { lead: Vec::new(), captures: Vec::new(), any: true });
        }
        let mut pieces = text.split('{');
        let lead = pieces.next().filter(|lead| !lead.contains('}'))?;
        let captures: Option<Vec<_>> = pieces
            .map(|piece| {
                let (name, behind) = piece.split_once('}')?;
                let fits = !name.is_empty() && !behind.contains('}');
                fits.then(|| (name.to_string(), behind.as_bytes().to_vec()))
            })
            .collect();
        (!text.is_empty()).then_some(Self { lead: lead.as_bytes().to_vec(), captures: captures?, any: false })
    }

    /// From right to left, each text as far right as it can be: so the first capture is as long as it can be.
    fn matches(&self, raw: &[u8], into: &mut Captures) -> Option<()> {
        if self.any {
            return Some(());
        }
        let mut left = raw.strip_prefix(&self.lead[..])?;
        let Some((_, tail)) = self.captures.last() else {
            return left.is_empty().then_some(());
        };
        left = left.strip_suffix(&tail[..])?;
        for (at, (name, _)) in self.captures.iter().enumerate().rev() {
            let Some((_, text)) = at.checked_sub(1).and_then(|before| self.captures.get(before)) else {
                into.insert(name.clone(), left.to_vec());
                break;
            };
            let found = (0..=left.len().checked_sub(text.len())?)
                .rev()
                .find(|at| left.get(*at..).is_some_and(|rest| rest.starts_with(text)))?;
            into.insert(name.clone(), left.get(found + text.len()..)?.to_vec());
            left = left.get(..found)?;
        }
        Some(())
    }
}

/// Which names become which.
#[derive(Clone, Debug, PartialEq)]
pub struct Rewrite {
    /// Matches the beginning of a name.
    pub pattern: Pattern,
    /// The name that is answered, made of what the pattern keeps.
    pub name: Pattern,
}

impl Rewrite {
    /// A capture that the name needs and the pattern does not have: then no name would ever be answered.
    pub fn unknown(&self) -> Option<&str> {
        self.name.names().find(|name| !self.pattern.names().any(|captured| captured == *name))
    }
}

/// As in "names below /#/x are ...".
impl fmt::Display for Rewrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} if they begin with {}", self.name, self.pattern)
    }
}

/// The namer `io.l5d.rewrite`.
pub struct Rewriter {
    prefix: Path,
    rewrite: Rewrite,
}

impl Rewriter {
    /// A namer for `prefix`, such as `/#/rewrite`.
    pub fn new(prefix: Path, rewrite: Rewrite) -> Self {
        Self { prefix, rewrite }
    }
}

impl Namer for Rewriter {
    fn prefix(&self) -> &Path {
        &self.prefix
    }

    fn lookup(&self, path: &Path) -> Lookup {
        let Rewrite { pattern, name } = &self.rewrite;
        let captures = pattern.matches(&path.skip(self.prefix.len()));
        Lookup::Fixed(Answer::path(captures.and_then(|captures| name.fill(&captures))))
    }
}
