//! Refuse early and cheaply: expired, too many.

mod params;

pub use params::Params;
