//! The cases from the field. Each test is named after its case and asserts the case's `expect` lines in order.
//!
//! Not here: BC-03 (unframed Thrift), BC-14 (a watched store).

mod bounds;
mod chain;
mod mux;
mod names;
mod oneway;
mod plain;
mod retries;
mod trace;
mod trust;
