//! A Thrift and Mux RPC gateway.
pub mod names;
