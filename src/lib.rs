//! A Thrift and Mux RPC gateway.

pub mod admin;
pub mod app;
pub mod cli;
pub mod config;
pub mod demo;
pub mod flow;
pub mod names;
pub mod observe;
pub mod outside;
pub mod store;
