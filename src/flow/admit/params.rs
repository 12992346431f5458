//! What can be set about admission.

/// Limits on what a listener lets in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Params {
    /// Calls in progress at once; more are refused as overload. None: no limit.
    pub max_concurrent: Option<usize>,
}
