//! Mux.
pub mod context {
    //! Contexts.
    /// Trace ids of a call (mux spec, section 15.1).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct TraceContext {
        /// Span.
        pub span_id: u64,
        /// Parent.
        pub parent_id: u64,
        /// Low half of the trace id.
        pub trace_id: u64,
        /// High half, in the 40-byte form.
        pub trace_id_high: Option<u64>,
        /// Flags.
        pub flags: u64,
    }
}
