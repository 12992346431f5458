//! Connections: listen, detect, session, drain; the span, stats and panic guard round all that follows.

mod params;

pub use params::Params;
