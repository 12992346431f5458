//! Thrift in the wire crate against recorded bytes, field cases and the `thrift` crate as oracle.

mod cases;
mod clients;
mod detection;
mod frames;
mod golden;
mod live;
mod malformed;
mod oracle;
mod theader;
mod translate;
mod value;
mod vectors;
