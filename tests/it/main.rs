//! The promises, over real loopback: a module for each.
//!
//! `cases` follows the field cases of `tests/golden/cases`, step by step and line by line; the rest is what the
//! architecture promises beside them.

mod alone;
mod answers;
mod callers;
mod cancel;
mod cases;
mod classes;
mod compression;
mod consul;
mod contexts;
mod discovery;
mod drain;
mod forms;
mod garbage;
mod hostile;
mod info;
mod kubernetes;
mod leases;
mod limits;
mod matching;
mod multiplexed;
mod overrides;
mod pieces;
mod refusals;
mod restart;
mod slow;
mod support;
mod table;
mod tls;
mod upstreams;
