//! Deadlines: two instants on the wall clock.

/// When a deadline was set and when it passes, in nanoseconds since 1970; any number may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// When it was set, by the sender's clock.
    pub timestamp: i64,
    /// When it passes; [`i64::MAX`] = never.
    pub deadline: i64,
}

impl Deadline {
    /// Length of a value, in bytes.
    pub const LEN: usize = 16;

    /// Reads a value of 16 bytes.
    pub fn decode(value: &[u8]) -> Option<Self> {
        let (&[timestamp, deadline], []) = value.as_chunks::<8>() else { return None };
        Some(Self { timestamp: i64::from_be_bytes(timestamp), deadline: i64::from_be_bytes(deadline) })
    }

    /// The value.
    pub fn encode(&self) -> [u8; Self::LEN] {
        let both = u128::from(self.timestamp as u64) << 64 | u128::from(self.deadline as u64);
        both.to_be_bytes()
    }

    /// Two deadlines that both hold: set when the later was set, passing when the earlier passes.
    #[must_use]
    pub fn combine(self, other: Self) -> Self {
        Self { timestamp: self.timestamp.max(other.timestamp), deadline: self.deadline.min(other.deadline) }
    }

    /// Nanoseconds left at `now` (nanoseconds since 1970); 0 or less = passed.
    pub fn left(&self, now: i64) -> i64 {
        self.deadline.saturating_sub(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_neither_overflow_nor_get_lost() {
        let never = Deadline { timestamp: i64::MIN, deadline: i64::MAX };
        assert_eq!(Deadline::decode(&never.encode()), Some(never));
        assert_eq!(never.left(-5), i64::MAX);
        let past = Deadline { timestamp: 7, deadline: i64::MIN };
        assert_eq!(past.left(5), i64::MIN);
        assert_eq!(never.combine(past), past);
        for len in [0, 8, 15, 17, 24, 32] {
            assert_eq!(Deadline::decode(&vec![0; len]), None);
        }
    }
}
