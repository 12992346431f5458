//! Which parts of a delegation tree decide: what a binding would come to, worked out by the same rules as in `resolve`.

use super::{Delegation, Kind};

/// What a node comes to, without what is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Pending,
    Failed,
    Neg,
    Fail,
    /// A replica set, or the answer that there are no members.
    Found,
}

impl Delegation {
    pub(super) fn outcome(&self) -> Outcome {
        match &self.kind {
            Kind::Delegate(child) => child.outcome(),
            Kind::Alt(_) | Kind::Union(_) => self.of_group().0,
            Kind::Leaf(_) | Kind::Empty => Outcome::Found,
            Kind::Neg => Outcome::Neg,
            Kind::Fail => Outcome::Fail,
            Kind::Pending => Outcome::Pending,
            Kind::Exception(_) => Outcome::Failed,
        }
    }

    /// Which of a node's children, by their places, make it what it is.
    pub(super) fn decisive(&self) -> Vec<usize> {
        match &self.kind {
            Kind::Delegate(_) => vec![0],
            _ => self.of_group().1,
        }
    }

    fn of_group(&self) -> (Outcome, Vec<usize>) {
        match &self.kind {
            // The first that is not negative, whatever it is.
            Kind::Alt(children) => {
                let outcomes = children.iter().map(Self::outcome).enumerate();
                let first = outcomes.into_iter().find(|(_, outcome)| *outcome != Outcome::Neg);
                first.map_or((Outcome::Neg, Vec::new()), |(at, outcome)| (outcome, vec![at]))
            }
            Kind::Union(children) => of_union(children.iter().map(|(_, child)| child.outcome()).collect()),
            _ => (self.outcome(), Vec::new()),
        }
    }
}

/// Branches that are known are taken; else the first error; else it is pending.
fn of_union(outcomes: Vec<Outcome>) -> (Outcome, Vec<usize>) {
    let places = |wanted: &dyn Fn(Outcome) -> bool| -> Vec<usize> {
        outcomes.iter().enumerate().filter(|(_, outcome)| wanted(**outcome)).map(|(at, _)| at).collect()
    };
    let known = places(&|outcome| !matches!(outcome, Outcome::Pending | Outcome::Failed));
    match known.as_slice() {
        [] => match places(&|outcome| outcome == Outcome::Failed).first() {
            Some(first) => (Outcome::Failed, vec![*first]),
            None => (Outcome::Pending, places(&|_| true)),
        },
        // One known branch stands for the whole even if it is a fail; of several, fails are dropped.
        [only] => (outcomes.get(*only).copied().unwrap_or(Outcome::Neg), known),
        _ => match places(&|outcome| outcome == Outcome::Found) {
            found if found.is_empty() => (Outcome::Neg, Vec::new()),
            found => (Outcome::Found, found),
        },
    }
}
