//! Cluster to endpoint.

mod params;

pub use params::{Balancer, Params};
