//! Connections: listen, detect, session, drain; the span, stats and panic guard round all that follows.

mod connection;
mod edge;
mod events;
mod limits;
mod listener;
pub mod overrides;
mod params;
mod peers;
mod secure;
mod spoken;
mod trust;

pub use edge::Edge;
pub use events::Counted;
pub use limits::{Bounded, CallLimits};
pub use listener::Listener;
pub use params::{Params, Protocol, Tls};
pub use trust::{Screen, Trust};

#[cfg(test)]
mod tests;
