//! How long a connection may live.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Part of a life time that chance may take, as a divisor: a fifth.
const JITTER: u32 = 5;

/// One connection's own life time: up to a fifth shorter than what is set, so that those that were made together do not end, and
/// are not made again, together.
pub fn jittered(life: Duration) -> Duration {
    // The standard library's own seed is random enough for this.
    let chance = RandomState::new().hash_one(0_u8) as u32;
    life - (life / JITTER).mul_f64(f64::from(chance) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn lives_are_shorter_by_chance() {
        let life = Duration::from_secs(100);
        let lives: HashSet<_> = (0..100).map(|_| jittered(life)).collect();
        assert!(lives.len() > 90);
        assert!(lives.iter().all(|own| *own <= life && *own >= life * 4 / 5));
        let middle = lives.iter().sum::<Duration>() / lives.len() as u32;
        assert!(middle > life * 85 / 100 && middle < life * 95 / 100, "{middle:?}");
    }
}
