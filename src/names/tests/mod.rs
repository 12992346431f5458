//! Tests of names as a whole, with namers that say what a test tells them.

mod base;
mod binding;
pub mod fake;
mod golden;
mod hostile;
mod inet;
mod moves;
