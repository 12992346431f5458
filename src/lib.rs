//! A Thrift and Mux RPC gateway.

pub mod admin;
pub mod flow;
pub mod names;
pub mod observe;
