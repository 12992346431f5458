//! Names as text: paths, prefixes, name trees and delegation tables (dtabs), and their pure algebra.
//!
//! Text or wire bytes come in; values that are cheap to clone and compare go out. Nothing here looks a name up in the
//! world: that is the business of namers and of the binder. The rules are those of Finagle, so that tables written for
//! it keep their meaning.

mod dtab;
mod error;
mod parse;
mod path;
mod prefix;
mod tree;

#[cfg(test)]
mod tests;

pub use dtab::{Dentry, Dtab, Match};
pub use error::{NameError, What};
pub use path::Path;
pub use prefix::Prefix;
pub use tree::{NameTree, Weighted, shares};

/// Longest canonical text of one path that is read, in bytes: what a `str16` of Mux can hold.
pub const MAX_PATH_TEXT: usize = crate::pairs::MAX_STR16;

/// Longest text of a table or tree that is read, in bytes. Servers set tighter limits for tables from requests.
pub const MAX_DTAB_TEXT: usize = 1 << 20;

/// Most entries of one table.
pub const MAX_ENTRIES: usize = 10_000;

/// Deepest nesting of parentheses in a tree. Reading recurses, so this bounds the stack that hostile text can take.
pub const MAX_NESTING: usize = 64;
