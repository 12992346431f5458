//! The promises, over real loopback: a module for each.
//!
//! `cases` follows the field cases of `tests/golden/cases`, step by step and line by line; the rest is what the
//! architecture promises beside them.

mod cases;
mod support;
