//! A Thrift and Mux RPC gateway.

pub mod config;
pub mod flow;
