//! Configuration: `file` is what people write, [`Plan`] is what can exist.
//!
//! Text comes in; a checked, immutable [`Plan`] goes out, or a [`Report`] that names every mistake with its line, its
//! column and what to do. Nothing here touches a socket or starts anything;
//! of all the files that are named only those with certificates are read, to see whether they can be used.

mod file;
mod locate;
mod node;
pub mod plan;
mod problem;
mod reader;
mod suggest;

#[cfg(test)]
mod tests;

pub use plan::{Plan, StorePlan};
pub use problem::Report;

/// Longest file that is read, in bytes: the largest table that is taken, and room for the rest.
pub const MAX_FILE: usize = 2 << 20;

/// Reads a configuration. `name` is how messages call it: the file's path, or `<stdin>`.
///
/// # Errors
/// Everything that is wrong with the text, at once where one mistake does not hide another.
pub fn parse(name: &str, text: &str) -> Result<Plan, Report> {
    file::read(name, text, None)
}

/// Reads a configuration, and lets stores of the command line take the place of those of the file.
///
/// # Errors
/// Those of [`parse`]; and addresses or a namespace that cannot be.
pub fn parse_with_store(
    name: &str,
    text: &str,
    addresses: &[String],
    namespace: Option<&str>,
) -> Result<Plan, String> {
    let store = file::of_flags(addresses, namespace)?;
    file::read(name, text, Some(store)).map_err(|report| report.to_string())
}

/// Reads the configuration of a store; as [`parse`].
///
/// # Errors
/// As of [`parse`].
pub fn parse_store(name: &str, text: &str) -> Result<StorePlan, Report> {
    file::tables::read(name, text)
}
