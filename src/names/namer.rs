//! The seam for discovery: what a namer is asked and how it answers. A new one adds a folder under `namers` and nothing
//! else: it answers [`Lookup::Live`], pushes changes, and stops its work for a name when nobody holds the receiver.

use super::addr::Bound;
use muxgate_wire::name::{NameTree, Path};
use std::fmt;
use std::sync::Arc;
use tokio::sync::watch;

/// A leaf of a namer's answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Named {
    /// Another name, which goes through the table again.
    Path(Path),
    /// A replica set.
    Bound(Bound),
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.fmt(f),
            Self::Bound(bound) => bound.fmt(f),
        }
    }
}

/// What a namer says about a path.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Not known yet.
    Pending,
    /// The source could not be asked. Unlike a negative answer this never leads to a fallback.
    Failed(String),
    /// The answer; `~` if there is no such name.
    Ok(NameTree<Named>),
}

impl Answer {
    /// There is no such name.
    pub const NEG: Self = Self::Ok(NameTree::Neg);

    /// One replica set.
    pub fn bound(bound: Bound) -> Self {
        Self::Ok(NameTree::Leaf(Named::Bound(bound)))
    }

    /// Another name, or negative.
    pub fn path(path: Option<Path>) -> Self {
        path.map_or(Self::NEG, |path| Self::Ok(NameTree::Leaf(Named::Path(path))))
    }

    /// Equal, and every bound name takes its addresses from the same place.
    pub(super) fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Ok(a), Self::Ok(b)) => {
                a == b
                    && a.leaves().into_iter().zip(b.leaves()).all(|pair| match pair {
                        (Named::Bound(a), Named::Bound(b)) => a.same(b),
                        _ => true,
                    })
            }
            _ => self == other,
        }
    }
}

/// How a namer answers.
#[derive(Clone, Debug)]
pub enum Lookup {
    /// Once and for all: nothing needs to wait for a change.
    Fixed(Answer),
    /// For now: changes are pushed as long as somebody holds the receiver.
    Live(watch::Receiver<Answer>),
}

/// A piece of code that answers paths from outside the table.
pub trait Namer: Send + Sync {
    /// Which paths it answers, such as `/#/io.l5d.fs`. Must begin with `/$/` or `/#/`; other paths never reach a namer.
    fn prefix(&self) -> &Path;

    /// Starts asking for `path` (the whole, prefix included), or joins those who asked already. Must return at once.
    /// The id of what it finds begins with the prefix and goes on with what was used of the path.
    fn lookup(&self, path: &Path) -> Lookup;
}

/// The namers in order of configuration, weakest first.
#[derive(Clone, Default)]
pub struct Namers(Arc<[Arc<dyn Namer>]>);

impl Namers {
    /// Whether namers are asked about such a path at all: `/$/...` or `/#/...`.
    pub fn reaches(path: &Path) -> bool {
        let mut elements = path.elements();
        matches!(elements.next(), Some("$" | "#")) && elements.next().is_some()
    }

    /// Places of the namers to ask about `path`, in this order: the one configured later comes first.
    pub fn candidates(&self, path: &Path) -> Vec<usize> {
        if !Self::reaches(path) {
            return Vec::new();
        }
        let fits = |(at, namer): (usize, &Arc<dyn Namer>)| path.starts_with(namer.prefix()).then_some(at);
        self.0.iter().enumerate().rev().filter_map(fits).collect()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Namer>> {
        self.0.iter()
    }

    /// The namer at a place.
    pub fn get(&self, at: usize) -> Option<&dyn Namer> {
        self.0.get(at).map(|namer| &**namer)
    }
}

impl FromIterator<Arc<dyn Namer>> for Namers {
    fn from_iter<I: IntoIterator<Item = Arc<dyn Namer>>>(namers: I) -> Self {
        Self(namers.into_iter().collect())
    }
}
