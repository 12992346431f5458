//! What a name means right now: from a path and a dtab to bound names with addresses that change.
//!
//! A path and a table come in; a tree of bound names goes out, and goes on changing. `resolve` is pure: it works on a
//! [`Book`], a snapshot of what each namer last said. `binder` runs it again whenever something it read has changed.
//! Namers ask the world. This room knows neither the flow of requests nor the configuration.

pub mod addr;
pub mod announce;
pub mod binder;
pub mod delegate;
pub mod explain;
pub mod namer;
pub mod namers;
pub mod resolve;
pub mod source;
pub mod standing;
pub mod table;
pub mod transform;
mod used;
mod view;

#[cfg(test)]
mod tests;

pub use addr::{Addr, Bound, EndpointAddr};
pub use binder::{Base, BindState, Binder, Binding, Origin, Table};
pub use delegate::{Delegation, Kind, delegate};
pub use explain::{Said, Step};
pub use namer::{Answer, Lookup, Named, Namer, Namers};
pub use resolve::{Book, Failure, Read, Resolution, State, Why, resolve};
pub use standing::{Standing, Stands};
