//! From a path to a tree of bound names: a pure function of a table and a [`Book`] of what namers last said.
//!
//! A machine with its own stack, so that a hostile table cannot overflow ours; the numbers of lookups and nodes are
//! bounded, so that it cannot cost much time either. What it read and what happened are recorded.
//!
//! ```text
//!            entries        one tree                leaf
//!   Path ─────────────▶ Entry ──▶ Tree ─────────────────────▶ Path (chain + 1)
//!    │ no entry, or one that says ~    │ | and &: push a frame, visit the first branch
//!    ▼                                 ▼
//!   namers ──▶ Answer ──▶ …          Done ──▶ pop a frame: next branch, or the frame is done
//! ```

use super::addr::Bound;
use super::explain::{Said, Short, Step};
use super::namer::{Answer, Named, Namers};
use muxgate_wire::name::{Dentry, Dtab, MAX_PATH_TEXT, Match, NameTree, Path, Weighted};
use std::fmt;

/// Lookups on one chain: 99 rewrites, and then the namer's answer. This is what catches loops, as in Finagle.
pub const MAX_CHAIN: usize = 100;

/// Lookups in one resolution. `/s => /s & /s` would make 2^100 before the chain limit ends them all.
pub const MAX_LOOKUPS: usize = 1000;

/// Branches that one resolution may open.
pub const MAX_NODES: usize = 1000;

/// Bytes of all paths that one resolution may look up. What is read and explained holds on to them, and both the name
/// and the table may come from a stranger.
pub const MAX_BYTES: usize = 256 * 1024;

/// A snapshot of what each namer last said.
pub trait Book {
    /// Places of the namers to ask about `path`, in this order (see [`Namers::candidates`]).
    fn candidates(&self, path: &Path) -> Vec<usize>;

    /// The prefix of the namer at a place.
    fn prefix(&self, namer: usize) -> Path;

    /// What it last said about `path`; `None`, if it was not asked yet, counts as pending.
    fn said(&self, namer: usize, path: &Path) -> Option<Answer>;
}

/// One thing a resolution depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Read {
    /// Place of the namer.
    pub namer: usize,
    /// The path that it was asked.
    pub path: Path,
}

/// Why a resolution went no further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// More than [`MAX_CHAIN`] lookups on one chain.
    TooDeep,
    /// More than [`MAX_LOOKUPS`] lookups, [`MAX_NODES`] branches or [`MAX_BYTES`] bytes of paths.
    TooWide,
    /// A path grew beyond [`MAX_PATH_TEXT`].
    TooLong,
    /// A path under `/$/` that no namer has.
    UnknownNamer,
    /// The namer could not ask its source.
    Namer(String),
    /// There is no table to look it up in.
    NoTable(String),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooDeep => write!(f, "too deep, more than {MAX_CHAIN} lookups on one chain"),
            Self::TooWide => {
                write!(
                    f,
                    "too wide, more than {MAX_LOOKUPS} lookups, {MAX_NODES} branches or {MAX_BYTES} bytes of paths"
                )
            }
            Self::TooLong => write!(f, "too long, more than {MAX_PATH_TEXT} bytes"),
            Self::UnknownNamer => f.write_str("no such system namer"),
            Self::Namer(why) | Self::NoTable(why) => f.write_str(why),
        }
    }
}

/// An error of a resolution, which is not a negative answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The path at which it arose.
    pub path: Path,
    /// Why.
    pub why: Why,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", Short(&self.path), self.why)
    }
}

impl std::error::Error for Failure {}

/// What a resolution came to.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// Not known yet.
    Pending,
    /// A tree without alternations.
    Ok(NameTree<Bound>),
    /// An error; there is no fallback on errors.
    Failed(Failure),
}

/// A resolution.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolution {
    /// What it came to.
    pub state: State,
    /// What it depends on besides the table, each once.
    pub reads: Vec<Read>,
    /// What happened, in order.
    pub steps: Vec<Step>,
}

/// Binds `path`: looks it up in the table, and if the answer is exactly negative (no entry matched, or one that says
/// `~`), asks the namers. Path leaves start again; alternations take the first branch that is not negative; unions
/// take all branches that are known.
pub fn resolve(dtab: &Dtab, path: &Path, book: &dyn Book) -> Resolution {
    let mut machine = Machine {
        dtab,
        book,
        lookups: 0,
        nodes: 0,
        bytes: 0,
        stack: Vec::new(),
        reads: Vec::new(),
        steps: Vec::new(),
    };
    let state = machine.run(path);
    Resolution { state, reads: machine.reads, steps: machine.steps }
}

/// Something to be worked out.
enum Todo<'a> {
    /// Look this path up.
    Path(Path),
    /// Follow an entry that matched `path`, `rest` being what is behind its prefix.
    Entry { path: Path, dentry: &'a Dentry, rest: Path },
    /// A tree of an entry, with what is to be appended to its leaves.
    Tree(&'a NameTree<Path>, Path),
    /// A tree that a namer answered.
    Answer(NameTree<Named>),
}

/// A group whose first branches are done; branches to come are in reverse order.
enum Frame<'a> {
    Alt {
        chain: usize,
        rest: Vec<Todo<'a>>,
    },
    Union {
        chain: usize,
        rest: Vec<(f64, Todo<'a>)>,
        weight: f64,
        known: Vec<Weighted<Bound>>,
        failed: Option<Failure>,
    },
}

enum Next<'a> {
    /// Work this out; the number counts lookups on the chain that led here.
    Visit(Todo<'a>, usize),
    /// This is what the last one came to.
    Done(State),
    /// A limit of the whole resolution was hit.
    Abort(Failure),
}

struct Machine<'a> {
    dtab: &'a Dtab,
    book: &'a dyn Book,
    lookups: usize,
    nodes: usize,
    bytes: usize,
    stack: Vec<Frame<'a>>,
    reads: Vec<Read>,
    steps: Vec<Step>,
}

impl<'a> Machine<'a> {
    fn run(&mut self, path: &Path) -> State {
        let mut next = Next::Visit(Todo::Path(path.clone()), 0);
        loop {
            next = match next {
                Next::Visit(todo, chain) => self.visit(todo, chain),
                Next::Abort(failure) => return State::Failed(failure),
                Next::Done(state) => match self.stack.pop() {
                    None => return state,
                    Some(frame) => self.branch_done(frame, state),
                },
            };
            if self.nodes > MAX_NODES {
                next = self.too_wide(path.clone());
            }
        }
    }

    fn visit(&mut self, todo: Todo<'a>, chain: usize) -> Next<'a> {
        match todo {
            Todo::Path(path) => self.lookup(path, chain + 1),
            Todo::Entry { path, dentry, rest } => {
                self.steps.push(Step::Entry { path, dentry: dentry.clone() });
                Next::Visit(Todo::Tree(&dentry.dst, rest), chain)
            }
            Todo::Tree(tree, rest) => match tree {
                NameTree::Alt(all) => {
                    self.alt(chain, all.iter().map(|branch| Todo::Tree(branch, rest.clone())).collect())
                }
                NameTree::Union(all) => {
                    let branches = all.iter().map(|b| (b.weight, Todo::Tree(&b.tree, rest.clone())));
                    self.union(chain, branches.collect())
                }
                NameTree::Leaf(path) => Next::Visit(Todo::Path(path.concat(&rest)), chain),
                NameTree::Neg => Next::Done(State::Ok(NameTree::Neg)),
                NameTree::Fail => Next::Done(State::Ok(NameTree::Fail)),
                NameTree::Empty => Next::Done(State::Ok(NameTree::Empty)),
            },
            Todo::Answer(tree) => match tree {
                NameTree::Alt(all) => self.alt(chain, all.into_iter().map(Todo::Answer).collect()),
                NameTree::Union(all) => {
                    self.union(chain, all.into_iter().map(|b| (b.weight, Todo::Answer(b.tree))).collect())
                }
                NameTree::Leaf(Named::Path(path)) => Next::Visit(Todo::Path(path), chain),
                NameTree::Leaf(Named::Bound(bound)) => Next::Done(State::Ok(NameTree::Leaf(bound))),
                NameTree::Neg => Next::Done(State::Ok(NameTree::Neg)),
                NameTree::Fail => Next::Done(State::Ok(NameTree::Fail)),
                NameTree::Empty => Next::Done(State::Ok(NameTree::Empty)),
            },
        }
    }

    fn lookup(&mut self, path: Path, chain: usize) -> Next<'a> {
        self.lookups += 1;
        if path.as_bytes().len() > MAX_PATH_TEXT {
            return self.failed(path.take(1), Why::TooLong);
        }
        self.bytes += path.as_bytes().len();
        if self.lookups > MAX_LOOKUPS || self.bytes > MAX_BYTES {
            return self.too_wide(path);
        }
        if chain > MAX_CHAIN {
            return self.failed(path, Why::TooDeep);
        }
        // One branch beyond the limit is enough to know that it is exceeded.
        let found: Vec<Match<'a>> = self.dtab.matches(&path).take(MAX_NODES + 2).collect();
        match found.as_slice() {
            [] => self.ask(path, chain),
            [only] if *only.dentry.dst == NameTree::Neg => {
                self.steps.push(Step::Entry { path: path.clone(), dentry: only.dentry.clone() });
                self.ask(path, chain)
            }
            _ => {
                let follow =
                    |m: Match<'a>| Todo::Entry { path: path.clone(), dentry: m.dentry, rest: m.rest };
                self.alt(chain, found.into_iter().map(follow).collect())
            }
        }
    }

    /// Asks the namers that fit, the one configured later first, until one says something else than negative.
    fn ask(&mut self, path: Path, chain: usize) -> Next<'a> {
        let candidates = self.book.candidates(&path);
        for namer in &candidates {
            let answer = self.book.said(*namer, &path).unwrap_or(Answer::Pending);
            let read = Read { namer: *namer, path: path.clone() };
            if !self.reads.contains(&read) {
                self.reads.push(read);
            }
            let said = Said::from(&answer);
            self.steps.push(Step::Asked { path: path.clone(), namer: self.book.prefix(*namer), said });
            match answer {
                Answer::Pending => return Next::Done(State::Pending),
                Answer::Failed(why) => {
                    return Next::Done(State::Failed(Failure { path, why: Why::Namer(why) }));
                }
                Answer::Ok(NameTree::Neg) => {}
                Answer::Ok(tree) => return Next::Visit(Todo::Answer(tree), chain),
            }
        }
        if candidates.is_empty() {
            if Namers::reaches(&path) && path.elements().next() == Some("$") {
                return self.failed(path, Why::UnknownNamer);
            }
            self.steps.push(Step::Unknown { path });
        }
        Next::Done(State::Ok(NameTree::Neg))
    }

    fn alt(&mut self, chain: usize, mut branches: Vec<Todo<'a>>) -> Next<'a> {
        branches.reverse();
        match branches.pop() {
            None => Next::Done(State::Ok(NameTree::Neg)),
            Some(first) => {
                self.nodes += branches.len();
                if !branches.is_empty() {
                    self.stack.push(Frame::Alt { chain, rest: branches });
                }
                Next::Visit(first, chain)
            }
        }
    }

    fn union(&mut self, chain: usize, mut branches: Vec<(f64, Todo<'a>)>) -> Next<'a> {
        branches.reverse();
        match branches.pop() {
            None => Next::Done(State::Ok(NameTree::Neg)),
            Some((weight, first)) => {
                self.nodes += branches.len();
                self.stack.push(Frame::Union {
                    chain,
                    rest: branches,
                    weight,
                    known: Vec::new(),
                    failed: None,
                });
                Next::Visit(first, chain)
            }
        }
    }

    fn branch_done(&mut self, frame: Frame<'a>, state: State) -> Next<'a> {
        match frame {
            Frame::Alt { chain, mut rest } => match (state, rest.pop()) {
                (State::Ok(NameTree::Neg), Some(branch)) => {
                    if !rest.is_empty() {
                        self.stack.push(Frame::Alt { chain, rest });
                    }
                    Next::Visit(branch, chain)
                }
                (state, _) => Next::Done(state),
            },
            Frame::Union { chain, mut rest, weight, mut known, mut failed } => {
                match state {
                    State::Ok(tree) => known.push(Weighted { weight, tree }),
                    State::Failed(failure) => failed = failed.or(Some(failure)),
                    State::Pending => {}
                }
                match rest.pop() {
                    Some((weight, branch)) => {
                        self.stack.push(Frame::Union { chain, rest, weight, known, failed });
                        Next::Visit(branch, chain)
                    }
                    None => Next::Done(union_of(known, failed)),
                }
            }
        }
    }

    /// An error like others: it blocks an alternation and is left out of a union.
    fn failed(&mut self, path: Path, why: Why) -> Next<'a> {
        self.steps.push(Step::Stopped { path: path.clone(), why: why.clone() });
        Next::Done(State::Failed(Failure { path, why }))
    }

    /// The end of all: which branches would still be known would depend on the order in which they were visited.
    fn too_wide(&mut self, path: Path) -> Next<'a> {
        self.steps.push(Step::Stopped { path: path.clone(), why: Why::TooWide });
        Next::Abort(Failure { path, why: Why::TooWide })
    }
}

/// What a union comes to: its known branches; else the first error; else pending.
fn union_of(mut known: Vec<Weighted<Bound>>, failed: Option<Failure>) -> State {
    match known.pop() {
        // One known branch stands for the whole even if it is a fail; of several, fails are dropped.
        Some(only) if known.is_empty() => State::Ok(only.tree),
        Some(last) => {
            known.push(last);
            State::Ok(NameTree::union(known))
        }
        None => failed.map_or(State::Pending, State::Failed),
    }
}
