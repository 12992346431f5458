//! Contexts: pairs of byte strings that travel with requests and replies (mux spec, sections 14 and 15).
//!
//! A value that does not decode is `None` here and is to be passed on unchanged, not to be refused.

mod deadline;
mod failure;
mod trace;
mod writer;

pub use deadline::Deadline;
pub use failure::MuxFailure;
pub use trace::TraceContext;
pub use writer::ContextWriter;

use crate::pairs::{Pairs, PairsError};
use bytes::Bytes;

/// Key of [`TraceContext`].
pub const TRACE: &[u8] = b"com.twitter.finagle.tracing.TraceContext";
/// Key of [`Deadline`].
pub const DEADLINE: &[u8] = b"com.twitter.finagle.Deadline";
/// Key of the number of retries of this hop, see [`decode_retries`].
pub const RETRIES: &[u8] = b"com.twitter.finagle.Retries";
/// Key whose presence (with an empty value) says that a request is a backup of another.
pub const BACKUP_REQUEST: &[u8] = b"com.twitter.finagle.BackupRequest";
/// Key of the calling service's name, see [`decode_client_id`].
pub const CLIENT_ID: &[u8] = b"com.twitter.finagle.thrift.ClientIdContext";
/// Key of application headers of a request, see [`decode_headers`].
pub const REQUEST_HEADERS: &[u8] = b"com.twitter.finagle.thrift.Request.headers";
/// Key of application headers of a reply, see [`decode_headers`].
pub const RESPONSE_HEADERS: &[u8] = b"com.twitter.finagle.thrift.Response.headers";
/// Key of [`MuxFailure`], in replies.
pub const MUX_FAILURE: &[u8] = b"MuxFailure";

/// Number of the automatic retry of this hop, 0 for the first attempt.
pub fn decode_retries(value: &[u8]) -> Option<i32> {
    value.try_into().ok().map(i32::from_be_bytes)
}

/// Name of the calling service; empty text means none.
pub fn decode_client_id(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(value).ok().filter(|name| !name.is_empty())
}

/// Application headers: pairs until the end of the value, without a count.
///
/// # Errors
/// [`PairsError`] for a list that breaks off. Finagle shortens a last value that is cut; we do not.
pub fn decode_headers(mut value: Bytes) -> Result<Pairs, PairsError> {
    let mut count = 0u16;
    let mut rest = value.clone();
    while !rest.is_empty() {
        let before = value.len() - rest.len();
        Pairs::take(1, &mut rest).map_err(|error| match error {
            PairsError::Truncated(at) => PairsError::Truncated(before + at),
            PairsError::TooLong(at) => PairsError::TooLong(before + at),
            PairsError::TooMany => error,
        })?;
        count = count.checked_add(1).ok_or(PairsError::TooMany)?;
    }
    Pairs::take(count, &mut value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_values() {
        assert_eq!(decode_retries(&[0, 0, 0, 2]), Some(2));
        assert_eq!(decode_retries(&[255; 4]), Some(-1));
        assert_eq!(decode_retries(&[0; 8]), None);
        assert_eq!(decode_client_id(b"web.prod"), Some("web.prod"));
        assert_eq!(decode_client_id(b""), None);
        assert_eq!(decode_client_id(b"\xff"), None);
    }

    #[test]
    fn headers_are_pairs_to_the_end() {
        let headers = decode_headers(Bytes::from_static(b"\0\x01k\0\x01v\0\x01k\0\0")).unwrap();
        assert_eq!(headers.len(), 2);
        let cut = decode_headers(Bytes::from_static(b"\0\x01k\0\x01v\0\x01k\0"));
        assert_eq!(cut, Err(PairsError::Truncated(9)));
        assert!(decode_headers(Bytes::new()).unwrap().is_empty());
    }
}
