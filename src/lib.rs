//! A Thrift and Mux RPC gateway.

pub mod flow;
pub mod observe;
