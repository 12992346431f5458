//! A number that fades as time passes, in one atomic word.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A non-negative number and the moment it was set, packed so that they never disagree: no lock, no torn pair.
///
/// Moments are ticks of 100 us since the owner's birth, in 32 bits that wrap. A value untouched for two and a half to
/// five days may read as fresh; the next sample mends that.
#[derive(Debug, Default)]
pub(super) struct Fading(AtomicU64);

/// Ticks a second.
pub(super) const TICKS: f32 = 10_000.0;

/// Time since the owner's birth, as a tick.
pub(super) fn tick(since: Duration) -> u32 {
    (since.as_micros() / 100) as u32
}

impl Fading {
    /// Whether it was never set, or was set to nothing: it needs no clock to be read then.
    pub fn is_zero(&self) -> bool {
        self.0.load(Relaxed) >> 32 == 0
    }

    /// The value after it has faded, by 1/e in `decay` seconds.
    pub fn value(&self, now: u32, decay: f32) -> f32 {
        let (value, then) = unpack(self.0.load(Relaxed));
        value * kept(then, now, decay)
    }

    /// Takes a sample: one above the faded value counts at once, a lower one as much as the old value has faded.
    pub fn peak(&self, sample: f32, now: u32, decay: f32) {
        self.change(|value, then| {
            let keep = kept(then, now, decay);
            match sample > value * keep {
                true => Some((sample, now)),
                false if keep < 1.0 => Some((value * keep + sample * (1.0 - keep), now)),
                false => None,
            }
        });
    }

    /// Fades, then moves by `share` of the way to `target`; what is left below `floor` is nothing.
    pub fn approach(&self, target: f32, share: f32, floor: f32, now: u32, decay: f32) {
        self.change(|value, then| {
            let faded = value * kept(then, now, decay);
            let next = faded + (target - faded) * share;
            Some((if next < floor { 0.0 } else { next }, now))
        });
    }

    fn change(&self, next: impl Fn(f32, u32) -> Option<(f32, u32)>) {
        let packed = |word| {
            let (value, then) = unpack(word);
            next(value, then).map(|(value, at)| u64::from(value.to_bits()) << 32 | u64::from(at))
        };
        // Refused only when there is nothing to change.
        let _ = self.0.fetch_update(Relaxed, Relaxed, packed);
    }
}

fn unpack(word: u64) -> (f32, u32) {
    (f32::from_bits((word >> 32) as u32), word as u32)
}

/// The share that is left. A moment that another thread set a little later than our `now` is no time ago.
fn kept(then: u32, now: u32, decay: f32) -> f32 {
    let elapsed = (now.wrapping_sub(then) as i32).max(0) as f32;
    if elapsed == 0.0 { 1.0 } else { (-elapsed / (decay.max(1.0 / TICKS) * TICKS)).exp() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u32 = TICKS as u32;

    #[test]
    fn a_higher_sample_counts_at_once_and_fades() {
        let cell = Fading::default();
        assert!(cell.is_zero());
        cell.peak(0.010, 5, 10.0);
        assert_eq!(cell.value(5, 10.0), 0.010);
        cell.peak(2.0, 6, 10.0);
        assert_eq!(cell.value(6, 10.0), 2.0);
        cell.peak(0.010, 6, 10.0);
        assert_eq!(cell.value(6, 10.0), 2.0, "a lower sample at the same moment changes nothing");
        cell.peak(0.0, 6 + 10 * SECOND, 10.0);
        assert!((cell.value(6 + 10 * SECOND, 10.0) - 2.0 / std::f32::consts::E).abs() < 1e-4);
    }

    #[test]
    fn time_that_wraps_or_runs_back_is_harmless() {
        let cell = Fading::default();
        cell.peak(1.0, u32::MAX - 5, 10.0);
        assert!(cell.value(5, 10.0) > 0.99);
        cell.peak(1.0, 100, 10.0);
        assert_eq!(cell.value(90, 10.0), 1.0);
    }

    #[test]
    fn approach_forgets_what_is_below_the_floor() {
        let cell = Fading::default();
        cell.approach(1.0, 0.5, 0.05, 1, 3.0);
        assert_eq!(cell.value(1, 3.0), 0.5);
        for _ in 0..4 {
            cell.approach(0.0, 0.5, 0.05, 1, 3.0);
        }
        assert!(cell.is_zero());
    }
}
