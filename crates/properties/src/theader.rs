//! THeader frames.

use bytes::Bytes;
use muxgate_wire::thrift::theader::{MAX_INFO, MAX_INFO_BYTES, decode, encode};

/// Most bytes that a message may inflate to here.
const MOST: usize = 1 << 16;

/// What decodes is encoded, and decodes again as the same; nothing is larger than its bounds.
///
/// # Panics
/// When this does not hold.
pub fn theader(data: &[u8]) {
    let frame = Bytes::copy_from_slice(data);
    let (header, message) = match decode(frame, MOST) {
        Ok(read) => read,
        Err(error) => return assert!(error.at <= data.len() && !error.is_incomplete(), "{error}"),
    };
    assert!(message.len() <= MOST && header.info.len() <= MAX_INFO);
    let bytes: usize = header.info.iter().map(|(key, value)| key.len() + value.len()).sum();
    assert!(bytes <= MAX_INFO_BYTES);
    let (head, payload) = encode(&header, message.clone()).expect("what was within the bounds");
    let again = [&head[..], &payload[..]].concat();
    assert_eq!(decode(again.into(), MOST), Ok((header, message)));
}
