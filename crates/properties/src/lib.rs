//! What must hold of any bytes that meet `muxgate-wire`: one function per target, which panics when it does not hold.
//!
//! The same functions are run by the fuzzer (`fuzz/`), on the inputs it has kept (`tests/corpus.rs`), under a count of
//! what they allocate (`tests/memory.rs`), and by the property tests of the wire crate. Nothing here is part of the
//! gateway.

mod client_session;
mod mux;
mod names;
mod peer;
mod script;
mod server_session;
mod stream;
mod tap;
mod theader;
mod thrift;
mod translate;

pub use client_session::client_session;
pub use mux::mux;
pub use names::names;
pub use server_session::server_session;
pub use stream::{feed_client, feed_server};
pub use theader::theader;
pub use thrift::thrift;
pub use translate::translate;

/// A name, and what is to be run on the bytes.
pub type Target = (&'static str, fn(&[u8]));

/// All of them, by the names that the fuzzer knows them by.
pub const TARGETS: [Target; 6] = [
    ("mux", mux),
    ("thrift", thrift),
    ("translate", translate),
    ("names", names),
    ("client_session", client_session),
    ("server_session", server_session),
];
