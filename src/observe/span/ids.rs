//! The ids and flags of a trace as they stand on the wire (mux spec, section 15.1).

use muxgate_wire::mux::context::TraceContext;

/// Sample, whatever else is set.
const DEBUG: u64 = 1;
/// A sampling decision has been made.
const DECIDED: u64 = 2;
/// The decision: sample.
const SAMPLED: u64 = 4;

/// The sampling decision that a context brings; None while undecided. Debug set: sampled; else bit 1 clear: undecided;
/// else bit 2.
pub fn decision(flags: u64) -> Option<bool> {
    match flags {
        _ if flags & DEBUG != 0 => Some(true),
        _ if flags & DECIDED == 0 => None,
        _ => Some(flags & SAMPLED != 0),
    }
}

/// Whether the debug flag is set.
pub fn is_debug(flags: u64) -> bool {
    flags & DEBUG != 0
}

/// Flags with our decision: bits 1 and 2 are cleared before they are set, all others stay.
pub fn decide(flags: u64, sample: bool) -> u64 {
    flags & !(DECIDED | SAMPLED) | DECIDED | if sample { SAMPLED } else { 0 }
}

/// A new trace. Its id has 64 bits: the 32-byte context and the TTwitter header are read by every Finagle, while the long
/// form is refused by old ones and cannot stand in the TTwitter header's own fields. A long id that comes in stays long.
/// "Root span: parent and trace are written as copies of the span id."
pub fn root(flags: u64) -> TraceContext {
    let id = fresh();
    TraceContext { span_id: id, parent_id: id, trace_id: id, trace_id_high: None, flags }
}

/// The span of a call made on behalf of `parent`.
pub fn child(parent: TraceContext) -> TraceContext {
    TraceContext { span_id: fresh(), parent_id: parent.span_id, ..parent }
}

/// Whether the ids name a span: collectors refuse all-zero ids, and the whole batch with them.
pub fn is_named(trace: &TraceContext) -> bool {
    trace.span_id != 0 && (trace.trace_id != 0 || trace.trace_id_high.is_some_and(|high| high != 0))
}

/// The parent, unless this is a root: "a reader takes parent = span as no parent".
pub fn parent(trace: &TraceContext) -> Option<u64> {
    (trace.parent_id != trace.span_id && trace.parent_id != 0).then_some(trace.parent_id)
}

/// Whether a trace is among the share that is sampled. It follows from the trace id alone, so that gateways that meet the
/// same undecided trace decide alike. Ids need not be random: they are mixed first (the finish of SplitMix64).
pub fn is_chosen(trace_id: u64, rate: f64) -> bool {
    let mut mixed = trace_id.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    rate >= 1.0 || ((mixed >> 11) as f64) < rate * (1u64 << 53) as f64
}

fn fresh() -> u64 {
    rand::random::<u64>().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_are_read_and_written_as_the_spec_says() {
        assert_eq!(decision(0), None);
        assert_eq!(decision(1), Some(true));
        assert_eq!(decision(2), Some(false));
        assert_eq!(decision(4), None);
        assert_eq!(decision(6), Some(true));
        assert_eq!(decide(4, false), 2);
        assert_eq!(decide(6, false), 2);
        assert_eq!(decide(0x7000_0000_0000_0000, true), 0x7000_0000_0000_0006);
    }

    #[test]
    fn the_share_sampled_is_the_rate() {
        for rate in [0.0, 0.001, 0.3, 1.0] {
            let chosen = (0..100_000).filter(|id| is_chosen(*id, rate)).count() as f64 / 100_000.0;
            assert!((chosen - rate).abs() < 0.01, "{rate}: {chosen}");
        }
        assert!((0..1000).all(|id| !is_chosen(id, 0.0)));
    }

    #[test]
    fn a_child_keeps_trace_and_flags() {
        let root = root(6);
        assert_eq!(parent(&root), None);
        let child = child(root);
        assert_eq!((child.parent_id, child.trace_id, child.flags), (root.span_id, root.trace_id, 6));
        assert_eq!(parent(&child), Some(root.span_id));
    }
}
