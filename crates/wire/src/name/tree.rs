//! A name tree: an expression over names, and its algebra.

use super::parse::Scan;
use super::{MAX_DTAB_TEXT, NameError, Path, What};
use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};

/// An expression over names of type `T`: paths as written, bound names once they are known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NameTree<T> {
    /// The first branch that is not negative.
    Alt(Vec<NameTree<T>>),
    /// All branches, traffic split by weight.
    Union(Vec<Weighted<T>>),
    /// One name.
    Leaf(T),
    /// `~`: this name is not known here; look further.
    Neg,
    /// `!`: stop looking, there is no answer.
    Fail,
    /// `$`: an answer: the name exists and has no members.
    Empty,
}

/// A branch of a union.
#[derive(Clone, Debug)]
pub struct Weighted<T> {
    /// Its weight, finite and not negative; 1 if none was written.
    pub weight: f64,
    /// What it leads to.
    pub tree: NameTree<T>,
}

/// Weights are compared by their bits, so that trees and tables can be keys.
impl<T: PartialEq> PartialEq for Weighted<T> {
    fn eq(&self, other: &Self) -> bool {
        self.weight.to_bits() == other.weight.to_bits() && self.tree == other.tree
    }
}

impl<T: Eq> Eq for Weighted<T> {}

impl<T: Hash> Hash for Weighted<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.weight.to_bits().hash(state);
        self.tree.hash(state);
    }
}

/// What the branches of a union with these weights get of the traffic: weight / sum of weights, or even shares if all
/// weights are 0.
pub fn shares(weights: &[f64]) -> Vec<f64> {
    let sum: f64 = weights.iter().sum();
    let even = 1.0 / weights.len() as f64;
    weights.iter().map(|weight| if sum > 0.0 { weight / sum } else { even }).collect()
}

impl NameTree<Path> {
    /// Reads a tree of paths; blanks and comments around it are skipped.
    ///
    /// # Errors
    /// Anything that is not exactly one tree.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self, NameError> {
        let text = text.as_ref();
        if text.len() > MAX_DTAB_TEXT {
            return Err(NameError::new(text, MAX_DTAB_TEXT, What::TooLong(MAX_DTAB_TEXT)));
        }
        let mut scan = Scan::new(text);
        scan.blanks();
        let tree = scan.tree()?;
        scan.end()?;
        Ok(tree)
    }
}

impl<T> NameTree<T> {
    /// The same tree over other names.
    pub fn map<U>(self, f: &mut impl FnMut(T) -> U) -> NameTree<U> {
        match self {
            Self::Alt(branches) => NameTree::Alt(branches.into_iter().map(|branch| branch.map(f)).collect()),
            Self::Union(branches) => NameTree::Union(
                branches.into_iter().map(|b| Weighted { weight: b.weight, tree: b.tree.map(f) }).collect(),
            ),
            Self::Leaf(name) => NameTree::Leaf(f(name)),
            Self::Neg => NameTree::Neg,
            Self::Fail => NameTree::Fail,
            Self::Empty => NameTree::Empty,
        }
    }

    /// A smaller tree of the same meaning: an alternation loses its negative branches and everything behind a fail,
    /// a union its negative and failing branches; a group of one is unwrapped, an empty one is negative. An alternation
    /// keeps the branches behind a leaf, as what a path leads to is not known yet.
    pub fn simplify(self) -> Self {
        match self {
            Self::Alt(branches) => {
                let mut kept = Vec::new();
                for branch in branches.into_iter().map(Self::simplify) {
                    match branch {
                        Self::Neg => {}
                        Self::Fail => {
                            kept.push(Self::Fail);
                            break;
                        }
                        other => kept.push(other),
                    }
                }
                match kept.pop() {
                    None => Self::Neg,
                    Some(only) if kept.is_empty() => only,
                    Some(last) => {
                        kept.push(last);
                        Self::Alt(kept)
                    }
                }
            }
            Self::Union(branches) => Self::union(
                branches.into_iter().map(|b| Weighted { weight: b.weight, tree: b.tree.simplify() }),
            ),
            other => other,
        }
    }

    /// The union of branches that are simple already: negative and failing ones are dropped, one that is left alone
    /// loses its weight, none is negative.
    pub fn union(branches: impl IntoIterator<Item = Weighted<T>>) -> Self {
        let known = |branch: &Weighted<T>| !matches!(branch.tree, Self::Neg | Self::Fail);
        let mut kept: Vec<_> = branches.into_iter().filter(known).collect();
        match kept.pop() {
            None => Self::Neg,
            Some(only) if kept.is_empty() => only.tree,
            Some(last) => {
                kept.push(last);
                Self::Union(kept)
            }
        }
    }

    /// The leaves from left to right, whatever stands between them.
    pub fn leaves(&self) -> Vec<&T> {
        let (mut found, mut todo) = (Vec::new(), vec![self]);
        while let Some(tree) = todo.pop() {
            match tree {
                Self::Alt(branches) => todo.extend(branches.iter().rev()),
                Self::Union(branches) => todo.extend(branches.iter().rev().map(|branch| &branch.tree)),
                Self::Leaf(name) => found.push(name),
                Self::Neg | Self::Fail | Self::Empty => {}
            }
        }
        found
    }
}

/// What a tree evaluates to.
enum Set<'a, T> {
    Neg,
    Fail,
    Names(Vec<&'a T>),
}

impl<T: Eq + Hash> NameTree<T> {
    /// The set of names the tree stands for, each once, in order; `None` for negative and fail. An empty set is an
    /// answer. The leaves must be final: a path that turns out negative is not looked behind.
    pub fn eval(&self) -> Option<Vec<&T>> {
        match self.set() {
            Set::Neg | Set::Fail => None,
            Set::Names(names) => {
                let mut seen = HashSet::new();
                Some(names.into_iter().filter(|name| seen.insert(*name)).collect())
            }
        }
    }

    fn set(&self) -> Set<'_, T> {
        match self {
            Self::Alt(branches) => {
                branches.iter().map(Self::set).find(|set| !matches!(set, Set::Neg)).unwrap_or(Set::Neg)
            }
            Self::Union(branches) => {
                let sets = branches.iter().filter_map(|branch| match branch.tree.set() {
                    Set::Names(names) => Some(names),
                    Set::Neg | Set::Fail => None,
                });
                sets.reduce(|mut all, more| {
                    all.extend(more);
                    all
                })
                .map_or(Set::Neg, Set::Names)
            }
            Self::Leaf(name) => Set::Names(vec![name]),
            Self::Neg => Set::Neg,
            Self::Fail => Set::Fail,
            Self::Empty => Set::Names(Vec::new()),
        }
    }
}

impl std::str::FromStr for NameTree<Path> {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::parse(text)
    }
}

/// The printed form: ` | `, ` & `, `weight*` with all digits that reading it back needs, parentheses where groups are.
impl<T: fmt::Display> fmt::Display for NameTree<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alt(branches) => match branches.as_slice() {
                [] => f.write_str("~"),
                [only] => only.fmt(f),
                all => write_joined(f, " | ", all, |f, branch| branch.fmt_in(f, false)),
            },
            Self::Union(branches) => match branches.as_slice() {
                [] => f.write_str("~"),
                [only] => only.tree.fmt(f),
                all => write_joined(f, " & ", all, |f, branch| {
                    if branch.weight != 1.0 {
                        write!(f, "{}*", branch.weight)?;
                    }
                    branch.tree.fmt_in(f, true)
                }),
            },
            Self::Leaf(name) => name.fmt(f),
            Self::Neg => f.write_str("~"),
            Self::Fail => f.write_str("!"),
            Self::Empty => f.write_str("$"),
        }
    }
}

impl<T: fmt::Display> NameTree<T> {
    /// Prints a branch, in parentheses if it would otherwise be read as part of the group around it.
    fn fmt_in(&self, f: &mut fmt::Formatter<'_>, in_union: bool) -> fmt::Result {
        let grouped = match self {
            Self::Alt(branches) => branches.len() > 1,
            Self::Union(branches) => in_union && branches.len() > 1,
            _ => false,
        };
        if grouped { write!(f, "({self})") } else { write!(f, "{self}") }
    }
}

fn write_joined<I>(
    f: &mut fmt::Formatter<'_>,
    between: &str,
    items: &[I],
    mut write: impl FnMut(&mut fmt::Formatter<'_>, &I) -> fmt::Result,
) -> fmt::Result {
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            f.write_str(between)?;
        }
        write(f, item)?;
    }
    Ok(())
}
