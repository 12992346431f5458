//! TApplicationExceptions by their type: a closed list, so that no service can invent labels.

use muxgate_rpc::{Failure, Reply, Response};
use muxgate_wire::thrift::ApplicationExceptionType;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Labels, in the order of the types' numbers; the last one is for numbers that are not assigned.
pub const TYPES: [&str; 12] = [
    "unknown",
    "unknown_method",
    "invalid_message_type",
    "wrong_method_name",
    "bad_sequence_id",
    "missing_result",
    "internal_error",
    "protocol_error",
    "invalid_transform",
    "invalid_protocol",
    "unsupported_client_type",
    "other",
];

/// Counts of each type, in the order of [`TYPES`].
pub type Counts = [u64; TYPES.len()];

/// Counters of each type.
#[derive(Debug, Default)]
pub struct Exceptions([AtomicU64; TYPES.len()]);

impl Exceptions {
    /// Counts a reply that is one.
    pub fn count(&self, result: &Result<Response, Failure>) {
        if let Ok(Response { reply: Reply::Application(kind), .. }) = result
            && let Some(counter) = self.0.get(index(*kind))
        {
            counter.fetch_add(1, Relaxed);
        }
    }

    /// The numbers as they are now.
    pub fn get(&self) -> Counts {
        std::array::from_fn(|at| self.0.get(at).map_or(0, |counter| counter.load(Relaxed)))
    }
}

fn index(kind: ApplicationExceptionType) -> usize {
    let other = TYPES.len() - 1;
    usize::try_from(kind.code()).unwrap_or(other).min(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_its_place_and_strange_ones_share_one() {
        for code in 0..11 {
            let kind = ApplicationExceptionType::from(code);
            assert_eq!(index(kind), code as usize);
            assert_eq!(TYPES[index(kind)].replace('_', " "), kind.to_string());
        }
        for code in [11, 12, -1, i32::MAX, i32::MIN] {
            assert_eq!(TYPES[index(code.into())], "other");
        }
    }
}
