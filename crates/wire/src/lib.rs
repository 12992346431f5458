//! Bytes to meaning and back, for Mux, Thrift and names. No socket, no clock, no runtime: anyone may reuse it.

pub mod detect;
pub mod mux;
pub mod name;
pub mod pairs;
pub mod thrift;
