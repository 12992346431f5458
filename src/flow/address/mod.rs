//! Which name a call means.

mod params;

pub use params::Params;
