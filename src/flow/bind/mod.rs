//! Name and dtab to a tree of clusters; total deadline, retry budget.

mod params;

pub use params::{Budget, Params};
