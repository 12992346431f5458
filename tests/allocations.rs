//! What a call allocates in the gateway may fall and must not rise. `benches/flow.rs` prints the same numbers, and the
//! bytes behind them.

#[path = "../benches/peers/allocations.rs"]
mod allocations;
#[path = "../benches/peers/inside.rs"]
mod inside;
#[path = "../benches/peers/mod.rs"]
mod peers;

use allocations::per_call;
use peers::Proto::{self, Framed, Mux};

/// Allocations of a call with 64 bytes and with 16 KiB, one call at a time: as measured when this was written. Lower
/// them when they fall; a change that needs more of them says why.
const FRAMED_TO_FRAMED: [u32; 2] = [8, 11];
const FRAMED_TO_MUX: [u32; 2] = [8, 10];
const MUX_TO_FRAMED: [u32; 2] = [11, 12];
const MUX_TO_MUX: [u32; 2] = [11, 11];

/// Tables and queues grow now and then, and a large frame may come in more pieces than usual: an allocation in so many
/// calls is none.
const RARE: f64 = 0.2;

#[track_caller]
fn at_most(most: [u32; 2], callers: Proto, services: Proto) {
    for (size, most) in [64, 16384].into_iter().zip(most) {
        let call = per_call(callers, services, size).unwrap();
        assert!(
            call.count <= f64::from(most) + RARE,
            "{callers} -> {services}: a call with {size} bytes makes {} allocations ({} bytes); it made {most}",
            call.count,
            call.bytes,
        );
    }
}

#[test]
fn framed_to_framed() {
    at_most(FRAMED_TO_FRAMED, Framed, Framed);
}

#[test]
fn framed_to_mux() {
    at_most(FRAMED_TO_MUX, Framed, Mux);
}

#[test]
fn mux_to_framed() {
    at_most(MUX_TO_FRAMED, Mux, Framed);
}

#[test]
fn mux_to_mux() {
    at_most(MUX_TO_MUX, Mux, Mux);
}
