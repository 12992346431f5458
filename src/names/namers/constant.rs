//! `/$/nil`, which is empty, and `/$/fail`, which fails, with anything behind them.

use super::system_prefix;
use crate::names::namer::{Answer, Lookup, Named, Namer};
use muxgate_wire::name::{NameTree, Path};

/// A namer that always says the same.
pub struct Constant {
    prefix: Path,
    tree: NameTree<Named>,
}

/// `/$/nil`.
pub fn nil() -> Constant {
    Constant { prefix: system_prefix("nil"), tree: NameTree::Empty }
}

/// `/$/fail`.
pub fn fail() -> Constant {
    Constant { prefix: system_prefix("fail"), tree: NameTree::Fail }
}

impl Namer for Constant {
    fn prefix(&self) -> &Path {
        &self.prefix
    }

    fn lookup(&self, _: &Path) -> Lookup {
        Lookup::Fixed(Answer::Ok(self.tree.clone()))
    }
}
