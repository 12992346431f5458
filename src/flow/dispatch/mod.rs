//! Endpoint to session: one attempt, with its span, accrual, judgement and deadline.

pub mod accrual;
mod params;

pub use params::{Accrual, Params, Pool, Upstream};
