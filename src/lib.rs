//! A Thrift and Mux RPC gateway.
