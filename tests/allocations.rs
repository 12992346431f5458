//! What a call allocates in the gateway may fall and must not rise. `benches/flow.rs` prints the same numbers, and the
//! bytes behind them.

#[path = "../benches/peers/allocations.rs"]
mod allocations;
#[path = "../benches/peers/compact.rs"]
mod compact;
#[path = "../benches/peers/inside.rs"]
mod inside;
#[path = "../benches/peers/mod.rs"]
mod peers;

use allocations::{PerCall, per_call, per_translated_call};
use peers::Proto::{self, Framed, Mux};

/// Allocations of a call with 64 bytes and with 16 KiB, one call at a time: as measured when this was written. Lower
/// them when they fall; a change that needs more of them says why.
const FRAMED_TO_FRAMED: [u32; 2] = [5, 7];
const FRAMED_TO_MUX: [u32; 2] = [8, 10];
const MUX_TO_FRAMED: [u32; 2] = [9, 9];
const MUX_TO_MUX: [u32; 2] = [11, 11];
/// To a service that speaks compact: a new message for the call and one for the reply.
const TRANSLATED: [u32; 2] = [8, 11];

/// Tables and queues grow now and then, and a large frame may come in more pieces than usual: an allocation in so many
/// calls is none.
const RARE: f64 = 0.2;

#[track_caller]
fn at_most(most: [u32; 2], callers: Proto, services: Proto) {
    counted(most, &format!("{callers} -> {services}"), |size| per_call(callers, services, size).unwrap());
}

#[track_caller]
fn counted(most: [u32; 2], name: &str, per_call: impl Fn(usize) -> PerCall) {
    for (size, most) in [64, 16384].into_iter().zip(most) {
        let call = per_call(size);
        println!("{name}, {size} bytes: {:.2} allocations, {:.0} bytes", call.count, call.bytes);
        assert!(
            call.count <= f64::from(most) + RARE,
            "{name}: a call with {size} bytes makes {} allocations ({} bytes); it made {most}",
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

#[test]
fn framed_to_framed_translated() {
    counted(TRANSLATED, "framed -> compact", |size| per_translated_call(Framed, size).unwrap());
}
