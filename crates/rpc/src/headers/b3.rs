//! B3: trace ids as text, in one header or in several.
//!
//! | key | value |
//! |---|---|
//! | `b3` | `TRACE-SPAN`, `TRACE-SPAN-STATE`, `TRACE-SPAN-STATE-PARENT`, or only `STATE`: `0`, `1` or `d` (debug) |
//! | `x-b3-traceid` | 16 or 32 hex digits |
//! | `x-b3-spanid`, `x-b3-parentspanid` | 16 hex digits |
//! | `x-b3-sampled` | `1` or `0`, or as of old `true` or `false` |
//! | `x-b3-flags` | `1`: debug |
//!
//! Read strictly, and `b3` first: hex digits are small, ids of zero are none, and what is not exactly of this form is not
//! there. A decision without ids counts as one about the trace that begins here. Written as several headers, which every
//! reader of B3 knows.

use bytes::Bytes;
use muxgate_wire::mux::context::TraceContext;

const SINGLE: &[u8] = b"b3";
const TRACE: &[u8] = b"x-b3-traceid";
const SPAN: &[u8] = b"x-b3-spanid";
const PARENT: &[u8] = b"x-b3-parentspanid";
const SAMPLED: &[u8] = b"x-b3-sampled";
const FLAGS: &[u8] = b"x-b3-flags";

/// Whether this is a key of B3, in any case.
pub fn is_key(key: &[u8]) -> bool {
    [SINGLE, TRACE, SPAN, PARENT, SAMPLED, FLAGS].iter().any(|ours| key.eq_ignore_ascii_case(ours))
}

/// What has been read of a trace.
#[derive(Default)]
pub(super) struct B3 {
    single: Option<TraceContext>,
    trace: Option<(Option<u64>, u64)>,
    span: Option<u64>,
    parent: Option<u64>,
    sampled: Option<bool>,
    debug: bool,
}

impl B3 {
    /// Takes a header if it is one of B3's.
    pub(super) fn take(&mut self, key: &[u8], value: &[u8]) -> bool {
        let is = |ours: &[u8]| key.eq_ignore_ascii_case(ours);
        if is(SINGLE) {
            self.single = single(value).or(self.single);
        } else if is(TRACE) {
            self.trace = trace_id(value).or(self.trace);
        } else if is(SPAN) {
            self.span = id(value).or(self.span);
        } else if is(PARENT) {
            self.parent = id(value).or(self.parent);
        } else if is(SAMPLED) {
            self.sampled = match value {
                b"1" | b"true" => Some(true),
                b"0" | b"false" => Some(false),
                _ => self.sampled,
            };
        } else if is(FLAGS) {
            self.debug |= value == b"1";
        } else {
            return false;
        }
        true
    }

    /// The trace, if there is one, or a decision about one.
    pub(super) fn read(self) -> Option<TraceContext> {
        self.single.or_else(|| {
            let flags = flags(self.debug, self.sampled);
            match (self.trace, self.span) {
                (Some(trace), Some(span)) => Some(context(trace, span, self.parent, flags)),
                _ if flags != 0 => Some(TraceContext { flags, ..TraceContext::default() }),
                _ => None,
            }
        })
    }
}

/// Writes a trace: its ids if it has any, its decision if there is one.
pub(super) fn write(trace: &TraceContext, mut put: impl FnMut(&'static [u8], Bytes)) {
    if trace.span_id != 0 && (trace.trace_id != 0 || trace.trace_id_high.is_some_and(|high| high != 0)) {
        let high = trace.trace_id_high.map_or(String::new(), |high| format!("{high:016x}"));
        put(TRACE, Bytes::from(format!("{high}{:016x}", trace.trace_id)));
        put(SPAN, Bytes::from(format!("{:016x}", trace.span_id)));
        if let Some(parent) = trace.parent().filter(|parent| *parent != 0) {
            put(PARENT, Bytes::from(format!("{parent:016x}")));
        }
    }
    if trace.is_debug() {
        put(FLAGS, Bytes::from_static(b"1"));
    } else if let Some(sampled) = trace.sampled() {
        put(SAMPLED, Bytes::from_static(if sampled { b"1" } else { b"0" }));
    }
}

fn single(value: &[u8]) -> Option<TraceContext> {
    let mut parts = value.split(|byte| *byte == b'-');
    let (first, second) = (parts.next()?, parts.next());
    let Some(second) = second else {
        return state(first).map(|flags| TraceContext { flags, ..TraceContext::default() });
    };
    let (trace, span) = (trace_id(first)?, id(second)?);
    let flags = parts.next().map_or(Some(0), state)?;
    let parent = parts.next().map_or(Some(None), |text| id(text).map(Some))?;
    parts.next().is_none().then(|| context(trace, span, parent, flags))
}

/// The flags of a single header's state.
fn state(text: &[u8]) -> Option<u64> {
    match text {
        b"0" => Some(flags(false, Some(false))),
        b"1" => Some(flags(false, Some(true))),
        b"d" => Some(flags(true, None)),
        _ => None,
    }
}

fn flags(debug: bool, sampled: Option<bool>) -> u64 {
    let undecided = TraceContext { flags: if debug { TraceContext::DEBUG } else { 0 }, ..Default::default() };
    sampled.map_or(undecided, |sampled| undecided.with_sampled(sampled)).flags
}

fn context((high, low): (Option<u64>, u64), span: u64, parent: Option<u64>, flags: u64) -> TraceContext {
    TraceContext {
        span_id: span,
        parent_id: parent.unwrap_or(span),
        trace_id: low,
        trace_id_high: high,
        flags,
    }
}

/// 16 or 32 digits, not all zero.
fn trace_id(text: &[u8]) -> Option<(Option<u64>, u64)> {
    let Some((high, low)) = text.split_at_checked(16).filter(|(_, low)| !low.is_empty()) else {
        return id(text).map(|low| (None, low));
    };
    let (high, low) = (word(high)?, word(low)?);
    (high != 0 || low != 0).then_some((Some(high), low))
}

/// 16 digits, not all zero.
fn id(text: &[u8]) -> Option<u64> {
    word(text).filter(|id| *id != 0)
}

fn word(text: &[u8]) -> Option<u64> {
    let digits = text.len() == 16 && text.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    digits
        .then(|| std::str::from_utf8(text).ok())
        .flatten()
        .and_then(|text| u64::from_str_radix(text, 16).ok())
}
