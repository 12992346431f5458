//! The one retry budget of a call: retry, requeue and backup all pay from it.

use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Slots of the sliding window: withdrawals and deposits are forgotten a slot at a time.
const SLOTS: usize = 10;

/// A token bucket over a sliding window, shared by all calls of a route (Finagle's RetryBudget: ttl 10 s, 10 retries/s
/// and 20 % by default). Deposits happen once a call of the user; a withdrawal either succeeds whole or not at all.
#[derive(Debug)]
pub struct Purse {
    /// Milliseconds of a slot of the window over which deposits count.
    slot_ms: u64,
    /// Thousandths of a retry that a call deposits.
    deposit: i64,
    /// Thousandths of a retry that are there in any case, for the whole window.
    reserve: i64,
    state: Mutex<Window>,
    ledger: Option<Arc<dyn Ledger>>,
}

/// Is told what a purse is asked for.
pub trait Ledger: Send + Sync + fmt::Debug + 'static {
    /// An attempt was paid for.
    fn paid(&self);
    /// There was nothing left to pay for an attempt.
    fn refused(&self);
}

#[derive(Debug)]
struct Window {
    started: Option<Instant>,
    slot: u64,
    slots: [i64; SLOTS],
}

/// Price of one retry in the purse's unit.
const RETRY: i64 = 1000;

impl Purse {
    /// `percent` of calls (0.2 = 20 %) may be retried, and `min_per_sec` retries a second in any case, over `ttl`.
    pub fn new(percent: f64, min_per_sec: u32, ttl: Duration) -> Self {
        let ttl = ttl.max(Duration::from_millis(SLOTS as u64));
        let reserve = (f64::from(min_per_sec) * ttl.as_secs_f64() * RETRY as f64) as i64;
        let deposit = (percent.max(0.0) * RETRY as f64).round() as i64;
        Self {
            slot_ms: ttl.as_millis() as u64 / SLOTS as u64,
            deposit,
            reserve,
            state: Mutex::new(Window { started: None, slot: 0, slots: [0; SLOTS] }),
            ledger: None,
        }
    }

    /// The same purse, whose withdrawals are told.
    #[must_use]
    pub fn told_to(mut self, ledger: Arc<dyn Ledger>) -> Self {
        self.ledger = Some(ledger);
        self
    }

    /// Counts one call of the user; `now` is roughly the present.
    pub fn deposit(&self, now: Instant) {
        let mut window = self.state.lock();
        let slot = self.turn(&mut window, now);
        window.slots[slot] = window.slots[slot].saturating_add(self.deposit);
    }

    /// Pays for one more attempt; false when there is nothing left, and nothing is taken then.
    pub fn withdraw(&self) -> bool {
        let paid = self.take_one();
        if let Some(ledger) = &self.ledger {
            if paid { ledger.paid() } else { ledger.refused() }
        }
        paid
    }

    /// Whether one more attempt could be paid for now, for whoever pays only when it is made. A no is told as a refusal.
    pub fn can_pay(&self) -> bool {
        let can = self.balance() > 0;
        if !can && let Some(ledger) = &self.ledger {
            ledger.refused();
        }
        can
    }

    fn take_one(&self) -> bool {
        let mut window = self.state.lock();
        let slot = self.turn(&mut window, Instant::now());
        if window.slots.iter().sum::<i64>() + self.reserve < RETRY {
            return false;
        }
        window.slots[slot] -= RETRY;
        true
    }

    /// Whole retries that could be paid now.
    pub fn balance(&self) -> u64 {
        let mut window = self.state.lock();
        self.turn(&mut window, Instant::now());
        ((window.slots.iter().sum::<i64>() + self.reserve) / RETRY).max(0) as u64
    }

    /// Forgets slots that have left the window and names the current one.
    fn turn(&self, window: &mut Window, now: Instant) -> usize {
        let started = *window.started.get_or_insert(now);
        // Calls that began earlier may come later: time here never goes back.
        let passed = now.saturating_duration_since(started).as_millis() as u64;
        let slot = (passed / self.slot_ms).max(window.slot);
        let passed = (slot - window.slot).min(SLOTS as u64);
        for old in 1..=passed {
            let index = (window.slot + old) % SLOTS as u64;
            window.slots[index as usize] = 0;
        }
        window.slot = slot;
        (slot % SLOTS as u64) as usize
    }
}

impl Default for Purse {
    /// 20 % and 10 a second over 10 s, as in Finagle and linkerd.
    fn default() -> Self {
        Self::new(0.2, 10, Duration::from_secs(10))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pays_a_fifth_of_the_calls_and_ten_a_second() {
        let purse = Purse::default();
        assert_eq!(purse.balance(), 100);
        for _ in 0..100 {
            assert!(purse.withdraw());
        }
        assert!(!purse.withdraw());
        for _ in 0..5 {
            purse.deposit(Instant::now());
        }
        assert!(purse.withdraw());
        assert!(!purse.withdraw());
        tokio::time::advance(Duration::from_secs(11)).await;
        assert_eq!(purse.balance(), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn an_odd_share_is_exact() {
        let purse = Purse::new(0.3, 0, Duration::from_secs(10));
        let paid = (0..1000).filter(|_| {
            purse.deposit(Instant::now());
            purse.withdraw()
        });
        assert_eq!(paid.count(), 300);
    }
}
