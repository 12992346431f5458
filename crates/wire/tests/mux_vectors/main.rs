//! Mux against the golden vectors: bytes that Finagle wrote, read, or answered. Vectors about Thrift, TTwitter and THeader
//! are not looked at here; each test says how many it looked at, so that none is skipped in silence.

mod client;
mod compress;
mod data;
mod decoder;
mod golden;
mod server;
