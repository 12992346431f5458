//! What a server knows about the tags its client chose: dense for the small tags that clients use, sparse for others.

use super::frame::Tag;
use super::outbox::{Outbox, Ticket};
use std::collections::BTreeMap;

/// Tags below this are kept in a vector that grows as they are used: as many as may be in flight by default, for clients
/// take the smallest free tag. A stranger who takes the largest of them costs us half a megabyte, no more.
const DENSE: usize = super::limits::MAX_IN_FLIGHT;
/// Answered calls that the sparse part keeps before it looks for those whose reply is long gone.
const SPARSE_KEPT: usize = 1024;

#[derive(Debug)]
pub(super) enum Slot<U> {
    Free,
    /// A call is being served.
    Running {
        stamp: u32,
        old_form: bool,
        token: Option<U>,
    },
    /// A reply is in the outbox, or was.
    Replied(Ticket),
}

#[derive(Debug)]
pub(super) struct Table<U> {
    dense: Vec<Slot<U>>,
    sparse: BTreeMap<u32, Slot<U>>,
    running: usize,
}

impl<U> Table<U> {
    pub(super) fn new() -> Self {
        Self { dense: Vec::new(), sparse: BTreeMap::new(), running: 0 }
    }

    /// Number of calls being served.
    pub(super) fn running(&self) -> usize {
        self.running
    }

    #[inline]
    pub(super) fn get_mut(&mut self, tag: u32) -> Option<&mut Slot<U>> {
        if (tag as usize) < DENSE { self.dense.get_mut(tag as usize) } else { self.sparse.get_mut(&tag) }
    }

    /// Puts a slot in place and returns what was there.
    #[inline]
    pub(super) fn set(&mut self, tag: Tag, slot: Slot<U>, outbox: &Outbox) -> Slot<U> {
        self.running += usize::from(matches!(slot, Slot::Running { .. }));
        let number = tag.get() as usize;
        let old = if number < DENSE {
            if number >= self.dense.len() {
                self.dense.resize_with(number + 1, || Slot::Free);
            }
            self.dense.get_mut(number).map(|place| std::mem::replace(place, slot))
        } else {
            self.set_sparse(tag.get(), slot, outbox)
        };
        let old = old.unwrap_or(Slot::Free);
        self.running -= usize::from(matches!(old, Slot::Running { .. }));
        old
    }

    fn set_sparse(&mut self, tag: u32, slot: Slot<U>, outbox: &Outbox) -> Option<Slot<U>> {
        if matches!(slot, Slot::Free) {
            return self.sparse.remove(&tag);
        }
        if self.sparse.len() >= 2 * self.running + SPARSE_KEPT {
            self.sparse.retain(|_, slot| !matches!(slot, Slot::Replied(ticket) if outbox.is_done(*ticket)));
        }
        self.sparse.insert(tag, slot)
    }

    /// The tags of calls being served.
    pub(super) fn running_tags(&self) -> impl Iterator<Item = Tag> + '_ {
        let dense = self.dense.iter().zip(0u32..).map(|(slot, tag)| (tag, slot));
        let sparse = self.sparse.iter().map(|(tag, slot)| (*tag, slot));
        let running = dense.chain(sparse).filter(|(_, slot)| matches!(slot, Slot::Running { .. }));
        running.filter_map(|(tag, _)| Tag::new(tag))
    }

    /// Empties the table and returns the calls that were being served.
    pub(super) fn take_running(&mut self) -> impl Iterator<Item = (Tag, Option<U>)> + use<U> {
        self.running = 0;
        let dense = std::mem::take(&mut self.dense).into_iter().zip(0u32..).map(|(slot, tag)| (tag, slot));
        let sparse = std::mem::take(&mut self.sparse);
        dense.chain(sparse).filter_map(|(tag, slot)| match slot {
            Slot::Running { token, .. } => Some((Tag::new(tag)?, token)),
            Slot::Free | Slot::Replied(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::{Buf, Bytes};

    fn running(token: u32) -> Slot<u32> {
        Slot::Running { stamp: 0, old_form: false, token: Some(token) }
    }

    #[test]
    fn small_and_large_tags() {
        let mut table = Table::new();
        let edge = DENSE as u32;
        for tag in [0, 1, 2, edge - 1, edge, Tag::MAX.get()] {
            let old = table.set(Tag::new(tag).unwrap(), running(tag), &Outbox::default());
            assert!(matches!(old, Slot::Free));
        }
        assert_eq!(table.running(), 6);
        assert!(matches!(table.set(Tag::MAX, Slot::Free, &Outbox::default()), Slot::Running { .. }));
        assert!(matches!(table.set(Tag::SESSION, Slot::Free, &Outbox::default()), Slot::Running { .. }));
        let left: Vec<_> = table.take_running().map(|(tag, token)| (tag.get(), token)).collect();
        assert_eq!(left, [0, 2, edge - 1, edge].map(|tag| (tag, Some(tag))));
        assert_eq!(table.running(), 0);
    }

    #[test]
    fn the_sparse_part_forgets_replies_that_are_gone() {
        let mut table: Table<u32> = Table::new();
        let mut outbox = Outbox::default();
        let ticket = outbox.push(-2, Tag::FIRST, Bytes::new(), |_| Ok(())).unwrap();
        outbox.advance(outbox.remaining());
        for number in 0..10 * SPARSE_KEPT as u32 {
            let tag = Tag::new(DENSE as u32 + number).unwrap();
            table.set(tag, running(number), &outbox);
            table.set(tag, Slot::Replied(ticket), &outbox);
        }
        assert!(table.sparse.len() <= SPARSE_KEPT + 2, "{}", table.sparse.len());
    }
}
