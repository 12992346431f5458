//! Trace ids: span first, then parent, then trace, then flags, then perhaps the high half of the trace id.

/// Identity of a span and what has been decided about sampling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceContext {
    /// This span.
    pub span_id: u64,
    /// Its parent; equal to the span id for a root.
    pub parent_id: u64,
    /// Low half of the trace id.
    pub trace_id: u64,
    /// High half of the trace id. `Some(0)` is not `None`: it makes the long form.
    pub trace_id_high: Option<u64>,
    /// All flags, also those nobody knows; kept and sent on.
    pub flags: u64,
}

impl TraceContext {
    /// Flag: sample, whatever else is set.
    pub const DEBUG: u64 = 1;
    /// Flag: a sampling decision has been made.
    pub const DECIDED: u64 = 1 << 1;
    /// Flag: the decision; means nothing without [`Self::DECIDED`].
    pub const SAMPLED: u64 = 1 << 2;
    /// Length of the long form, in bytes.
    pub const MAX_LEN: usize = 40;

    /// Reads a value of 32 or 40 bytes.
    pub fn decode(value: &[u8]) -> Option<Self> {
        let (words, rest) = value.as_chunks::<8>();
        let word = |at: usize| words.get(at).map(|bytes| u64::from_be_bytes(*bytes));
        if !rest.is_empty() || !matches!(words.len(), 4 | 5) {
            return None;
        }
        Some(Self {
            span_id: word(0)?,
            parent_id: word(1)?,
            trace_id: word(2)?,
            flags: word(3)?,
            trace_id_high: word(4),
        })
    }

    /// The 24 bytes of a Treq: no flags, no high half.
    pub(in super::super) fn from_treq(value: &[u8]) -> Option<Self> {
        let &[span_id, parent_id, trace_id] = value.as_chunks::<8>().0 else { return None };
        let [span_id, parent_id, trace_id] = [span_id, parent_id, trace_id].map(u64::from_be_bytes);
        (value.len() == 24).then_some(Self { span_id, parent_id, trace_id, trace_id_high: None, flags: 0 })
    }

    /// The value and its length, 32 or 40.
    pub fn encode(&self) -> ([u8; Self::MAX_LEN], usize) {
        let mut value = [0; Self::MAX_LEN];
        let high = self.trace_id_high.unwrap_or(0);
        let words = [self.span_id, self.parent_id, self.trace_id, self.flags, high];
        for (bytes, word) in value.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *bytes = word.to_be_bytes();
        }
        (value, if self.trace_id_high.is_some() { 40 } else { 32 })
    }

    /// Parent span, if this is not a root.
    pub fn parent(&self) -> Option<u64> {
        (self.parent_id != self.span_id).then_some(self.parent_id)
    }

    /// Whether the debug flag is set.
    pub fn is_debug(&self) -> bool {
        self.flags & Self::DEBUG != 0
    }

    /// The sampling decision: forced by debug, else as decided, else none yet.
    pub fn sampled(&self) -> Option<bool> {
        if self.is_debug() {
            Some(true)
        } else {
            (self.flags & Self::DECIDED != 0).then_some(self.flags & Self::SAMPLED != 0)
        }
    }

    /// The same with this decision; an earlier one is cleared first, which Finagle forgets.
    #[must_use]
    pub fn with_sampled(self, sampled: bool) -> Self {
        let flags = self.flags & !(Self::DECIDED | Self::SAMPLED) | Self::DECIDED;
        Self { flags: if sampled { flags | Self::SAMPLED } else { flags }, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_round_trip_and_no_other_is_read() {
        let short = TraceContext { span_id: 1, parent_id: 2, trace_id: 3, trace_id_high: None, flags: 6 };
        let long = TraceContext { trace_id_high: Some(0), flags: 1 << 50, ..short };
        for trace in [short, long] {
            let (value, len) = trace.encode();
            assert_eq!(TraceContext::decode(&value[..len]), Some(trace));
        }
        for len in (0..50).filter(|len| ![32, 40].contains(len)) {
            assert_eq!(TraceContext::decode(&vec![0; len]), None);
        }
    }

    #[test]
    fn a_decision_can_be_taken_back() {
        let fresh = TraceContext { flags: 1 << 43, ..TraceContext::default() };
        assert_eq!(fresh.sampled(), None);
        let yes = fresh.with_sampled(true);
        assert_eq!((yes.sampled(), yes.flags), (Some(true), 6 | 1 << 43));
        assert_eq!(yes.with_sampled(false).sampled(), Some(false));
        let debug = TraceContext { flags: TraceContext::DEBUG, ..fresh }.with_sampled(false);
        assert_eq!(debug.sampled(), Some(true));
    }
}
