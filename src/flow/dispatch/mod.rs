//! Endpoint to session: one attempt, with its span, accrual, judgement and deadline.

mod params;

pub use params::{Accrual, Params, Pool, Upstream};
