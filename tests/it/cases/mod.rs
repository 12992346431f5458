//! The cases from the field. Each test is named after its case and asserts the case's `expect` lines in order.
//!
//! Not here: BC-14 (a watched store).

mod bounds;
mod buffered;
mod chain;
mod mux;
mod names;
mod oneway;
mod plain;
mod retries;
mod trace;
mod trust;
