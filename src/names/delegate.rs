//! The delegation tree: the explanation of a lookup. Unlike a binding it follows every alternative, also behind the one
//! that would be used, and an error is a node rather than the end.

use super::addr::Bound;
use super::namer::{Answer, Named, Namers};
use super::resolve::{Book, Failure, MAX_BYTES, MAX_CHAIN, MAX_LOOKUPS, MAX_NODES, Read, Why};
use muxgate_wire::name::{Dentry, Dtab, MAX_PATH_TEXT, Match, NameTree, Path};

/// Nodes above one node. Building recurses, so this bounds the stack that hostile tables can take; a chain of the
/// longest kind, each step an alternation of its own, needs two for each lookup.
const MAX_DEPTH: usize = 2 * MAX_CHAIN + 50;

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub struct Delegation {
    /// The path looked up here.
    pub path: Path,
    /// The entry that led here; none at the root and behind a namer's rewrite.
    pub dentry: Option<Dentry>,
    /// What was found.
    pub kind: Kind,
}

/// What a node says.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// One step was taken.
    Delegate(Box<Delegation>),
    /// Alternatives in the order they would be tried.
    Alt(Vec<Delegation>),
    /// Branches with their weights.
    Union(Vec<(f64, Delegation)>),
    /// A replica set.
    Leaf(Bound),
    /// No such name.
    Neg,
    /// `!`.
    Fail,
    /// `$`.
    Empty,
    /// The namer has not answered yet.
    Pending,
    /// An error, with its message.
    Exception(String),
}

/// The tree of all that `path` could mean, and what it depends on.
///
/// # Errors
/// A loop, or a tree that exceeds the limits of a resolution: that is no node but the end of the whole answer.
pub fn delegate(dtab: &Dtab, path: &Path, book: &dyn Book) -> Result<(Delegation, Vec<Read>), Failure> {
    let mut build = Build { dtab, book, lookups: 0, nodes: 0, bytes: 0, reads: Vec::new() };
    let root = build.lookup(path.clone(), None, At { chain: 0, depth: 0 })?;
    Ok((root, build.reads))
}

#[derive(Clone, Copy)]
struct At {
    chain: usize,
    depth: usize,
}

impl At {
    fn below(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }
}

struct Build<'a> {
    dtab: &'a Dtab,
    book: &'a dyn Book,
    lookups: usize,
    nodes: usize,
    bytes: usize,
    reads: Vec<Read>,
}

/// Which lookup a tree belongs to.
struct Origin<'a> {
    path: &'a Path,
    dentry: Option<&'a Dentry>,
}

impl Origin<'_> {
    fn node(&self, kind: Kind) -> Delegation {
        Delegation { path: self.path.clone(), dentry: self.dentry.cloned(), kind }
    }
}

impl Build<'_> {
    fn lookup(&mut self, path: Path, dentry: Option<&Dentry>, at: At) -> Result<Delegation, Failure> {
        let at = At { chain: at.chain + 1, depth: at.depth + 1 };
        self.lookups += 1;
        self.bytes += path.as_bytes().len();
        if let Some(why) = self.limit(&path, at) {
            return Err(Failure { path: path.take(1), why });
        }
        let dtab = self.dtab;
        let found: Vec<_> = dtab.matches(&path).take(MAX_NODES + 1).collect();
        match found.as_slice() {
            [] => self.ask(&path, dentry, at),
            [only] if *only.dentry.dst == NameTree::Neg => {
                let asked = self.ask(&path, dentry, at)?;
                let neg = asked.kind == Kind::Neg;
                let child =
                    Delegation { path: path.clone(), dentry: Some(only.dentry.clone()), kind: Kind::Neg };
                Ok(if neg { Delegation { kind: Kind::Delegate(Box::new(child)), ..asked } } else { asked })
            }
            [only] => {
                let child = self.entry(&path, only, at)?;
                Ok(fold(path.clone(), dentry.cloned(), child))
            }
            several => {
                let children: Result<_, _> =
                    several.iter().map(|found| self.entry(&path, found, at)).collect();
                Ok(Origin { path: &path, dentry }.node(Kind::Alt(children?)))
            }
        }
    }

    fn limit(&self, path: &Path, at: At) -> Option<Why> {
        let too_wide = self.lookups > MAX_LOOKUPS || self.nodes > MAX_NODES || self.bytes > MAX_BYTES;
        let limits = [
            (at.chain > MAX_CHAIN || at.depth > MAX_DEPTH, Why::TooDeep),
            (path.as_bytes().len() > MAX_PATH_TEXT, Why::TooLong),
            (too_wide, Why::TooWide),
        ];
        limits.into_iter().find(|(exceeded, _)| *exceeded).map(|(_, why)| why)
    }

    fn entry(&mut self, path: &Path, found: &Match<'_>, at: At) -> Result<Delegation, Failure> {
        let origin = Origin { path, dentry: Some(found.dentry) };
        self.tree(
            &found.dentry.dst,
            &mut |build, leaf, at| build.lookup(leaf.concat(&found.rest), origin.dentry, at),
            &origin,
            at,
        )
    }

    /// A node for each node of a tree; `leaf` makes those of its leaves.
    fn tree<T>(
        &mut self,
        tree: &NameTree<T>,
        leaf: &mut dyn FnMut(&mut Self, &T, At) -> Result<Delegation, Failure>,
        origin: &Origin<'_>,
        at: At,
    ) -> Result<Delegation, Failure> {
        self.nodes += 1;
        if let Some(why) = self.limit(origin.path, at) {
            return Err(Failure { path: origin.path.clone(), why });
        }
        let at = at.below();
        Ok(origin.node(match tree {
            NameTree::Alt(branches) => {
                let children: Result<_, _> =
                    branches.iter().map(|b| self.tree(b, leaf, origin, at)).collect();
                Kind::Alt(children?)
            }
            NameTree::Union(branches) => {
                let children: Result<_, _> =
                    branches.iter().map(|b| Ok((b.weight, self.tree(&b.tree, leaf, origin, at)?))).collect();
                Kind::Union(children?)
            }
            NameTree::Leaf(name) => return leaf(self, name, at),
            NameTree::Neg => Kind::Neg,
            NameTree::Fail => Kind::Fail,
            NameTree::Empty => Kind::Empty,
        }))
    }

    fn ask(&mut self, path: &Path, dentry: Option<&Dentry>, at: At) -> Result<Delegation, Failure> {
        let origin = Origin { path, dentry };
        let candidates = self.book.candidates(path);
        for namer in &candidates {
            let read = Read { namer: *namer, path: path.clone() };
            if !self.reads.contains(&read) {
                self.reads.push(read);
            }
            match self.book.said(*namer, path) {
                None | Some(Answer::Pending) => return Ok(origin.node(Kind::Pending)),
                Some(Answer::Failed(why)) => return Ok(origin.node(Kind::Exception(why))),
                Some(Answer::Ok(NameTree::Neg)) => {}
                Some(Answer::Ok(tree)) => return self.answer(&tree, &origin, at),
            }
        }
        let unknown = candidates.is_empty() && Namers::reaches(path) && path.elements().next() == Some("$");
        Ok(origin.node(if unknown { Kind::Exception(Why::UnknownNamer.to_string()) } else { Kind::Neg }))
    }

    fn answer(&mut self, tree: &NameTree<Named>, origin: &Origin<'_>, at: At) -> Result<Delegation, Failure> {
        let mut leaf = |build: &mut Self, named: &Named, at| match named {
            Named::Bound(bound) => Ok(origin.node(Kind::Leaf(bound.clone()))),
            Named::Path(next) => {
                let child = build.lookup(next.clone(), None, at)?;
                Ok(fold(origin.path.clone(), origin.dentry.cloned(), child))
            }
        };
        self.tree(tree, &mut leaf, origin, at)
    }
}

/// One step from `path` to `child`; a node of the same path takes its place, unless it says that nothing is here.
fn fold(path: Path, dentry: Option<Dentry>, child: Delegation) -> Delegation {
    let plain = matches!(child.kind, Kind::Neg | Kind::Fail | Kind::Empty);
    if child.path == path && !plain {
        return Delegation { dentry, ..child };
    }
    Delegation { path, dentry, kind: Kind::Delegate(Box::new(child)) }
}

impl Delegation {
    /// Whether some namer has not answered yet.
    pub fn has_pending(&self) -> bool {
        self.nodes().any(|node| matches!(node.kind, Kind::Pending))
    }

    /// The replica sets in the tree.
    pub fn leaves(&self) -> impl Iterator<Item = &Bound> {
        self.nodes().filter_map(|node| match &node.kind {
            Kind::Leaf(bound) => Some(bound),
            _ => None,
        })
    }

    fn nodes(&self) -> impl Iterator<Item = &Self> {
        let mut todo = vec![self];
        std::iter::from_fn(move || {
            let node = todo.pop()?;
            match &node.kind {
                Kind::Delegate(child) => todo.push(child),
                Kind::Alt(children) => todo.extend(children),
                Kind::Union(children) => todo.extend(children.iter().map(|(_, child)| child)),
                _ => {}
            }
            Some(node)
        })
    }
}
