//! Cluster to endpoint.
//!
//! In comes a call for a bound cluster, with its purse; out goes the answer of one endpoint. [`Cluster`] follows the set
//! of addresses, [`Balance`] picks, [`Endpoint`] remembers how an address fared. The room never sees a socket: what
//! answers for an address is a value that it is given ([`Build`]).

pub mod balance;
pub mod cluster;
mod dice;
pub mod endpoint;
mod fading;
mod params;

pub use balance::Balance;
pub use cluster::{Cluster, Events, Parts};
pub use endpoint::{Build, Endpoint};
pub use params::{Balancer, Params};

#[cfg(test)]
mod tests;
