//! What happened in a resolution, step by step and readable, for error texts and the admin server.

use super::binder::Origin;
use super::namer::{Answer, Named};
use super::resolve::{Resolution, State, Why};
use muxgate_wire::name::{Dentry, NameTree, Path};
use std::fmt::{self, Write};

/// Steps that an explanation spells out; the rest is counted.
const MAX_EXPLAINED: usize = 64;

/// Steps by one entry that are spelled out: what a loop goes on with says nothing new.
const MAX_ALIKE: usize = 3;

/// Longest explanation, in bytes: it ends up in error messages, and a stranger chooses the name.
const MAX_TEXT: usize = 1024;

/// Longest path inside a message, in bytes: a loop may make it grow with each round.
const MAX_PATH: usize = 120;

/// A path as messages show it.
pub(super) struct Short<'a>(pub &'a Path);

impl fmt::Display for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.as_str();
        let end = (0..=MAX_PATH.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        f.write_str(text.get(..end).unwrap_or_default())?;
        if end < text.len() { f.write_str("...") } else { Ok(()) }
    }
}

/// One step of a resolution.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// This entry was followed for this path.
    Entry {
        /// The path looked up.
        path: Path,
        /// The entry that matched.
        dentry: Dentry,
    },
    /// No entry matched and no namer is responsible.
    Unknown {
        /// The path looked up.
        path: Path,
    },
    /// A namer was asked.
    Asked {
        /// The path it was asked.
        path: Path,
        /// The namer's prefix.
        namer: Path,
        /// What it said.
        said: Said,
    },
    /// The resolution went no further here.
    Stopped {
        /// Where.
        path: Path,
        /// Why.
        why: Why,
    },
}

/// What a namer said, without what changes.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// No such name.
    Neg,
    /// Something else: a name, a tree, `!` or `$`.
    Tree(NameTree<Named>),
    /// Not known yet.
    Pending,
    /// It could not be asked.
    Failed(String),
}

impl From<&Answer> for Said {
    fn from(answer: &Answer) -> Self {
        match answer {
            Answer::Pending => Self::Pending,
            Answer::Failed(why) => Self::Failed(why.clone()),
            Answer::Ok(NameTree::Neg) => Self::Neg,
            Answer::Ok(tree) => Self::Tree(tree.clone()),
        }
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Neg => f.write_str("no such name"),
            Self::Tree(tree) => write!(f, "found {tree}"),
            Self::Pending => f.write_str("not known yet"),
            Self::Failed(why) => write!(f, "failed: {why}"),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entry { path, dentry } => write!(f, "{} by {dentry}", Short(path)),
            Self::Unknown { path } => write!(f, "{} has no entry", Short(path)),
            Self::Asked { path, said, .. } => write!(f, "{}: {said}", Short(path)),
            Self::Stopped { path, why } => write!(f, "{}: {why}", Short(path)),
        }
    }
}

/// One line: what became of `path`, and what was tried for it, in order.
pub fn explain(path: &Path, resolution: &Resolution) -> String {
    explain_by(path, resolution, None)
}

/// The same; says also where the table is from.
pub(super) fn explain_by(path: &Path, resolution: &Resolution, origin: Option<&Origin>) -> String {
    let mut text = Capped(String::new());
    // Writing to the capped text fails only when it is full; what fits is the explanation then.
    let _ = write_explanation(&mut text, path, resolution, origin);
    text.0
}

fn write_explanation(
    text: &mut Capped,
    path: &Path,
    resolution: &Resolution,
    origin: Option<&Origin>,
) -> fmt::Result {
    match &resolution.state {
        State::Pending => write!(text, "name not known yet: {path}")?,
        State::Failed(failure) => write!(text, "cannot resolve {path}: {failure}")?,
        State::Ok(NameTree::Neg) => write!(text, "no such name: {path}")?,
        State::Ok(NameTree::Fail) => write!(text, "name closed by !: {path}")?,
        State::Ok(NameTree::Empty) => write!(text, "name without members: {path}")?,
        State::Ok(tree) => write!(text, "{path} is {tree}")?,
    }
    if let Some(origin) = origin {
        write!(text, " ({origin})")?;
    }
    let told = worth_telling(&resolution.steps);
    for (at, step) in told.iter().enumerate() {
        write!(text, "{}{step}", if at == 0 { "; tried " } else { ", " })?;
    }
    match resolution.steps.len() - told.len() {
        0 => Ok(()),
        more => write!(text, ", and {more} more like these"),
    }
}

/// The first steps, without those that repeat.
fn worth_telling(steps: &[Step]) -> Vec<&Step> {
    let mut told: Vec<&Step> = Vec::new();
    for step in steps {
        if told.len() == MAX_EXPLAINED {
            break;
        }
        let alike = told.iter().filter(|earlier| earlier.is_by_the_same_entry(step)).count();
        if alike < MAX_ALIKE && !told.contains(&step) {
            told.push(step);
        }
    }
    told
}

impl Step {
    fn is_by_the_same_entry(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Entry { dentry: mine, .. }, Self::Entry { dentry: theirs, .. }) => mine == theirs,
            _ => false,
        }
    }
}

/// Text that stops growing.
struct Capped(String);

impl Write for Capped {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let room = MAX_TEXT.saturating_sub(self.0.len());
        if more.len() <= room {
            self.0.push_str(more);
            return Ok(());
        }
        let end = (0..=room).rev().find(|at| more.is_char_boundary(*at)).unwrap_or(0);
        self.0.push_str(more.get(..end).unwrap_or_default());
        self.0.push_str("...");
        Err(fmt::Error)
    }
}
