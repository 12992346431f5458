//! Power of two choices over a snapshot, without a queue, a lock or an allocation.
//!
//! A pick draws two different endpoints, each with a probability proportional to its weight, and takes the better one:
//! first by rank (may it be used, was it tried), then by cost. When several draws show no endpoint that is open and
//! untried, one scan of the whole set finds the best rank there is and draws again within it, so that one open endpoint
//! among many dead ones is always found.

use super::dice::{Dice, below, fraction, split};
use super::{Balancer, Endpoint};
use arc_swap::ArcSwap;
use muxgate_rpc::Status;
use std::net::SocketAddr;
use std::sync::Arc;

/// Pairs drawn before the whole set is scanned (linkerd's `maxEffort` is 5). With half of a large set dead, a scan
/// happens in one of 256 picks.
const EFFORT: usize = 4;

/// With unequal weights the first draw gives way only to an endpoint that costs less than this share of it. Latencies
/// are never quite equal; were the lower one always taken, the weights would mean nothing.
const CLEARLY_LESS: f32 = 0.5;

/// The endpoints of a cluster, and the choice among them.
#[derive(Debug)]
pub struct Balance {
    set: ArcSwap<Set>,
    dice: Dice,
    by_latency: bool,
}

#[derive(Debug, Default)]
struct Set {
    slots: Box<[Slot]>,
    /// Sum of the weights.
    total: f64,
    /// All weights are equal.
    even: bool,
}

#[derive(Debug)]
struct Slot {
    endpoint: Arc<Endpoint>,
    weight: f64,
    /// Sum of the weights before this one.
    before: f64,
    /// Weight over the mean weight; 1 when the weight is 0.
    share: f32,
}

/// How willingly an endpoint is taken, best first. Dead ones may be tried when nobody is open (the panic rule: all dead
/// looks more like a fault of ours). An endpoint that failed this very call comes after all that might work, and one
/// that asked to be left alone (lease, drain, limit) last. Closed is never taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Open,
    Doubtful,
    TriedOpen,
    TriedDoubtful,
    Busy,
    TriedBusy,
    Never,
}

impl Balance {
    /// An empty balancer. The same seed gives the same draws.
    pub fn new(balancer: &Balancer, seed: u64) -> Self {
        let by_latency = matches!(balancer, Balancer::PeakEwma { .. });
        Self { set: ArcSwap::default(), dice: Dice::seeded(seed), by_latency }
    }

    /// Replaces the set. Weights are relative; those below 0 or not finite count as 0. An endpoint of weight 0 is taken
    /// only when no other of its rank is left.
    pub fn replace(&self, members: Vec<(Arc<Endpoint>, f64)>) {
        self.set.store(Arc::new(Set::new(members)));
    }

    /// Picks an endpoint, one that is not in `tried` if there is another. None: the set is empty, or all are closed.
    pub fn pick(&self, tried: &[SocketAddr]) -> Option<Arc<Endpoint>> {
        let set = self.set.load();
        let slot = match &*set.slots {
            [] => None,
            [only] => (only.rank(tried) < Rank::Never).then_some(only),
            _ => self.draw(&set, tried),
        };
        slot.map(|slot| Arc::clone(&slot.endpoint))
    }

    /// The present set, for views and for the next one.
    pub fn members(&self) -> Vec<(Arc<Endpoint>, f64)> {
        self.set.load().slots.iter().map(|slot| (Arc::clone(&slot.endpoint), slot.weight)).collect()
    }

    /// The best status of any endpoint; closed when there is none.
    pub fn status(&self) -> Status {
        let mut best = Status::Closed;
        for slot in &self.set.load().slots {
            best = best.min(slot.endpoint.status());
            if best == Status::Open {
                break;
            }
        }
        best
    }

    /// Two or more slots: draws pairs, then scans.
    fn draw<'a>(&self, set: &'a Set, tried: &[SocketAddr]) -> Option<&'a Slot> {
        for _ in 0..EFFORT {
            let (first, second) = set.pair(self.dice.roll());
            let Some((rank, slot)) = self.better(set, tried, first, second) else { continue };
            if rank == Rank::Open {
                return Some(slot);
            }
        }
        let (first, second) = set.scan(self.dice.roll(), tried);
        self.better(set, tried, first, second).filter(|(rank, _)| *rank < Rank::Never).map(|(_, slot)| slot)
    }

    fn better<'a>(
        &self,
        set: &Set,
        tried: &[SocketAddr],
        first: Option<&'a Slot>,
        second: Option<&'a Slot>,
    ) -> Option<(Rank, &'a Slot)> {
        let Some(first) = first else { return second.map(|slot| (slot.rank(tried), slot)) };
        let Some(second) = second else { return Some((first.rank(tried), first)) };
        let (one, other) = (first.rank(tried), second.rank(tried));
        let margin = if self.by_latency && !set.even { CLEARLY_LESS } else { 1.0 };
        let swap = match one.cmp(&other) {
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Greater => true,
            std::cmp::Ordering::Equal => {
                second.endpoint.cost(second.share) < first.endpoint.cost(first.share) * margin
            }
        };
        Some(if swap { (other, second) } else { (one, first) })
    }
}

impl Set {
    fn new(mut members: Vec<(Arc<Endpoint>, f64)>) -> Self {
        for (_, weight) in &mut members {
            *weight = if weight.is_finite() { weight.max(0.0) } else { 0.0 };
        }
        if members.iter().all(|(_, weight)| *weight == 0.0) {
            members.iter_mut().for_each(|(_, weight)| *weight = 1.0);
        }
        let heaviest = members.iter().map(|(_, weight)| *weight).fold(0.0, f64::max);
        let even = members.iter().all(|(_, weight)| *weight == heaviest);
        // Scaled to at most 1 each: sums stay finite whatever the weights.
        let total: f64 = members.iter().map(|(_, weight)| weight / heaviest).sum();
        let mean = total / members.len().max(1) as f64;
        let mut before = 0.0;
        let slots = members
            .into_iter()
            .map(|(endpoint, weight)| {
                let weight = weight / heaviest;
                let share = if weight > 0.0 { (weight / mean) as f32 } else { 1.0 };
                let slot = Slot { endpoint, weight, before, share };
                before += weight;
                slot
            })
            .collect();
        Self { slots, total, even }
    }

    /// Two different slots; the second is missing when no other has weight.
    fn pair(&self, roll: u64) -> (Option<&Slot>, Option<&Slot>) {
        let (high, low) = split(roll);
        let count = self.slots.len();
        if self.even {
            let first = below(high, count);
            let second = below(low, count.saturating_sub(1));
            return (self.slots.get(first), self.slots.get(second + usize::from(second >= first)));
        }
        let first = self.at(fraction(high) * self.total);
        let Some(taken) = first else { return (None, None) };
        let rest = self.total - taken.weight;
        let point = fraction(low) * rest;
        let second = self.at(if point < taken.before { point } else { point + taken.weight });
        (first, second.filter(|slot| slot.weight > 0.0 && !std::ptr::eq(*slot, taken)))
    }

    /// The slot whose stretch of the sum of weights holds the point.
    fn at(&self, point: f64) -> Option<&Slot> {
        let index = self.slots.partition_point(|slot| slot.before + slot.weight <= point);
        self.slots.get(index).or(self.slots.last())
    }

    /// Two slots of the best rank there is, drawn by weight in one pass (a reservoir of two, after Chao).
    fn scan(&self, seed: u64, tried: &[SocketAddr]) -> (Option<&Slot>, Option<&Slot>) {
        let dice = Dice::seeded(seed);
        let mut best = (Rank::Never, true);
        let (mut first, mut second, mut total) = (None, None, 0.0);
        for slot in &self.slots {
            let rank = (slot.rank(tried), slot.weight == 0.0);
            if rank.0 == Rank::Never || rank > best {
                continue;
            }
            if rank < best {
                (best, first, second, total) = (rank, None, None, 0.0);
            }
            let weight = if rank.1 { 1.0 } else { slot.weight };
            total += weight;
            let (draw, coin) = split(dice.roll());
            match (first, second) {
                (None, _) => first = Some(slot),
                (_, None) => second = Some(slot),
                _ if fraction(draw) * total < 2.0 * weight => {
                    *(if coin % 2 == 0 { &mut first } else { &mut second }) = Some(slot);
                }
                _ => {}
            }
        }
        // The order of two ties is the order of the set: turn it half of the time.
        if seed.is_multiple_of(2) { (first, second) } else { (second.or(first), second.and(first)) }
    }
}

impl Slot {
    fn rank(&self, tried: &[SocketAddr]) -> Rank {
        let again = !tried.is_empty() && tried.contains(&self.endpoint.addr());
        match (self.endpoint.status(), again) {
            (Status::Open, false) => Rank::Open,
            (Status::Doubtful, false) => Rank::Doubtful,
            (Status::Open, true) => Rank::TriedOpen,
            (Status::Doubtful, true) => Rank::TriedDoubtful,
            (Status::Busy, false) => Rank::Busy,
            (Status::Busy, true) => Rank::TriedBusy,
            (Status::Closed, _) => Rank::Never,
        }
    }
}
