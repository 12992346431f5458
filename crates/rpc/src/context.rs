//! What a call carries from hop to hop beside its body.

use bytes::Bytes;
use muxgate_wire::mux::context::TraceContext;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// The contexts of a call: those the gateway understands, and the rest byte for byte, in order.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// The caller's span, or, further in, the gateway's own.
    pub trace: Option<TraceContext>,
    /// When the caller stops waiting.
    pub deadline: Option<Deadline>,
    /// The calling service, as it names itself; never empty.
    pub client_id: Option<Bytes>,
    /// Pairs that are not understood, or whose value is malformed: handed on unchanged. Of a repeated key the last
    /// value stands alone (mux spec, section 15).
    pub rest: Vec<(Bytes, Bytes)>,
}

/// A moment after which nobody waits for the answer.
///
/// Wall-clock time exists only on the wire: it becomes an [`Instant`] when it is read. The pair that was read is kept,
/// so that a deadline nobody tightened leaves as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    at: Instant,
    wire: Option<(i64, i64)>,
}

/// A deadline further away than this is no limit: it keeps its wire form, and sums stay in range.
const FARTHEST: Duration = Duration::from_secs(365 * 24 * 3600);

impl Deadline {
    /// A limit of our own.
    pub fn at(at: Instant) -> Self {
        Self { at, wire: None }
    }

    /// Reads the pair (time stamped, deadline), in ns since 1970, of a Deadline context.
    pub fn from_wire(stamped: i64, deadline: i64, now: Instant) -> Self {
        let wall = wall_ns();
        let left = i128::from(deadline) - i128::from(wall);
        let at = if left <= 0 {
            now.checked_sub(Duration::from_nanos(u64::try_from(-left).unwrap_or(u64::MAX))).unwrap_or(now)
        } else {
            now + Duration::from_nanos(u64::try_from(left).unwrap_or(u64::MAX)).min(FARTHEST)
        };
        Self { at, wire: Some((stamped, deadline)) }
    }

    /// The moment.
    pub fn instant(self) -> Instant {
        self.at
    }

    /// Whether the moment has passed.
    pub fn is_past(self, now: Instant) -> bool {
        self.at <= now
    }

    /// The earlier of two deadlines, which keeps its wire form.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        if other.at < self.at { other } else { self }
    }

    /// The pair for a Deadline context: what was read if nothing tightened it, else (now, deadline).
    pub fn to_wire(self) -> (i64, i64) {
        self.wire.unwrap_or_else(|| {
            let wall = wall_ns();
            let left = self.at.saturating_duration_since(Instant::now());
            let left = i64::try_from(left.as_nanos()).unwrap_or(i64::MAX);
            (wall, wall.saturating_add(left))
        })
    }
}

fn wall_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_untouched_deadline_leaves_as_it_came() {
        let now = Instant::now();
        let deadline = Deadline::from_wire(1, wall_ns() + 1_000_000_000, now);
        assert!(!deadline.is_past(now));
        assert_eq!(deadline.to_wire().0, 1);
        let never = Deadline::from_wire(1, i64::MAX, now);
        assert_eq!(never.min(deadline), deadline);
        assert_eq!(never.to_wire(), (1, i64::MAX));
        assert!(Deadline::from_wire(0, i64::MIN, now).is_past(now));
    }

    #[tokio::test(start_paused = true)]
    async fn a_tighter_limit_of_our_own_is_stamped_anew() {
        let now = Instant::now();
        let theirs = Deadline::from_wire(1, wall_ns() + 10_000_000_000, now);
        let ours = Deadline::at(now + Duration::from_secs(1));
        let (stamped, deadline) = theirs.min(ours).to_wire();
        assert!(stamped > 1);
        assert_eq!(deadline - stamped, 1_000_000_000);
    }
}
