//! Random numbers for picks: one relaxed atomic addition each, shared by all threads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A counter whose every value is hashed (SplitMix64). Good enough to spread load, useless for secrets.
#[derive(Debug)]
pub(super) struct Dice(AtomicU64);

/// Step of the counter: 2^64 over the golden ratio, odd.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Dice {
    pub fn seeded(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// The next 64 random bits.
    pub fn roll(&self) -> u64 {
        mix(self.0.fetch_add(STEP, Relaxed))
    }
}

/// The hash of SplitMix64: each of its input bits moves half of the output's.
fn mix(counter: u64) -> u64 {
    let z = (counter ^ (counter >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Two independent draws out of one roll.
pub(super) fn split(roll: u64) -> (u32, u32) {
    ((roll >> 32) as u32, roll as u32)
}

/// A draw as a number below `n`; 0 when `n` is 0.
pub(super) fn below(draw: u32, n: usize) -> usize {
    ((u64::from(draw) * n as u64) >> 32) as usize
}

/// A draw as a fraction in [0, 1).
pub(super) fn fraction(draw: u32) -> f64 {
    f64::from(draw) / 4_294_967_296.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_even_and_in_range() {
        let dice = Dice::seeded(7);
        let mut counts = [0u32; 10];
        for _ in 0..50_000 {
            let (a, b) = split(dice.roll());
            counts[below(a, 10)] += 1;
            counts[below(b, 10)] += 1;
            assert!((0.0..1.0).contains(&fraction(a)));
        }
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
        assert_eq!(below(u32::MAX, 0), 0);
    }
}
