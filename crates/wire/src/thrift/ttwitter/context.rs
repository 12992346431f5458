//! A TTwitter header as the contexts of a Mux dispatch, and back (spec sections 6.4 and 18).
//!
//! Over plain byte strings: the keys and the value layout are those of Mux, but nothing here knows a Mux message.

use super::request::RequestHeader;
use crate::pairs::{Pairs, PairsError};
use bytes::Bytes;

/// Key of the trace context.
pub const TRACE_KEY: &[u8] = b"com.twitter.finagle.tracing.TraceContext";
/// Key of the client id context; the value is the name.
pub const CLIENT_ID_KEY: &[u8] = b"com.twitter.finagle.thrift.ClientIdContext";

/// Flags bit 0: sample, whatever else is set.
const DEBUG: u64 = 1;
/// Flags bit 1: somebody has decided.
const DECIDED: u64 = 1 << 1;
/// Flags bit 2: the decision.
const SAMPLED: u64 = 1 << 2;

/// The value of a trace context, 32 or 40 bytes: span, parent, trace, flags, and the high half of a 128-bit trace id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceValue {
    bytes: [u8; 40],
    len: usize,
}

impl AsRef<[u8]> for TraceValue {
    fn as_ref(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&self.bytes)
    }
}

impl TraceValue {
    /// From the five words; without a high half the value has 32 bytes.
    pub fn new(span: u64, parent: u64, trace: u64, flags: u64, high: Option<u64>) -> Self {
        let mut bytes = [0; 40];
        let words = [span, parent, trace, flags, high.unwrap_or(0)];
        for (slot, word) in bytes.chunks_exact_mut(8).zip(words) {
            slot.copy_from_slice(&word.to_be_bytes());
        }
        Self { bytes, len: if high.is_some() { 40 } else { 32 } }
    }
}

/// The words of a trace context value; `None` for a length that is not valid.
fn words(value: &[u8]) -> Option<[u64; 5]> {
    if value.len() != 32 && value.len() != 40 {
        return None;
    }
    let mut words = [0; 5];
    for (word, chunk) in words.iter_mut().zip(value.as_chunks::<8>().0) {
        *word = u64::from_be_bytes(*chunk);
    }
    Some(words)
}

impl RequestHeader {
    /// The trace context that fields 1, 2, 3, 5, 7 and 11 amount to. A missing parent is the span itself; the
    /// decision becomes two bits on top of the flags.
    pub fn trace_value(&self) -> TraceValue {
        let decision = match self.sampled {
            Some(true) => DECIDED | SAMPLED,
            Some(false) => DECIDED,
            None => 0,
        };
        TraceValue::new(
            self.span_id,
            self.parent_span_id.unwrap_or(self.span_id),
            self.trace_id,
            self.flags.unwrap_or(0) | decision,
            self.trace_id_high,
        )
    }

    /// The contexts of the Mux dispatch that this header stands for. Field 8 is passed on as it is; an entry in it
    /// for the trace or the client id overrides the fields of the same meaning.
    ///
    /// # Errors
    /// A client id that is too long for a context.
    pub fn to_contexts(&self) -> Result<Pairs, PairsError> {
        let rest: Vec<(Bytes, Bytes)> = self.contexts.iter().collect();
        let overridden = |key: &[u8]| rest.iter().any(|(other, _)| other.as_ref() == key);
        let trace = self.trace_value();
        let mut all: Vec<(&[u8], &[u8])> = Vec::with_capacity(rest.len() + 2);
        if !overridden(TRACE_KEY) {
            all.push((TRACE_KEY, trace.as_ref()));
        }
        if let Some(name) = self.client_id.as_deref().filter(|_| !overridden(CLIENT_ID_KEY)) {
            all.push((CLIENT_ID_KEY, name));
        }
        all.extend(rest.iter().map(|(key, value)| (key.as_ref(), value.as_ref())));
        Pairs::build(all)
    }

    /// The header for a Mux dispatch with these contexts, destination and dtab. All contexts go into field 8; the
    /// trace and the client id also into the fields of their own. As Finagle, field 11 is left out: the high half
    /// of the trace id is in field 8. An empty destination is left out, and so is an empty client id, which means
    /// that there is none.
    pub fn from_mux(contexts: &Pairs, dest: &Bytes, dtab: &Pairs) -> Self {
        let mut header = Self {
            contexts: contexts.clone(),
            dest: (!dest.is_empty()).then(|| dest.clone()),
            delegations: dtab.clone(),
            ..Self::default()
        };
        for (key, value) in contexts.iter() {
            if key.as_ref() == CLIENT_ID_KEY {
                header.client_id = (!value.is_empty()).then_some(value);
            } else if key.as_ref() == TRACE_KEY
                && let Some([span, parent, trace, flags, _]) = words(&value)
            {
                header.trace_id = trace;
                header.span_id = span;
                header.parent_span_id = (parent != span).then_some(parent);
                header.sampled = decision(flags);
                header.flags = Some(flags);
            }
        }
        header
    }
}

/// What the flags say about sampling.
fn decision(flags: u64) -> Option<bool> {
    if flags & DEBUG != 0 {
        return Some(true);
    }
    (flags & DECIDED != 0).then_some(flags & SAMPLED != 0)
}
