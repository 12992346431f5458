//! Connections: listen, detect, session, drain; the span, stats and panic guard round all that follows.

mod connection;
mod edge;
mod events;
mod listener;
mod params;
mod secure;
mod spoken;

pub use edge::Edge;
pub use listener::Listener;
pub use params::{Params, Protocol, Tls};
