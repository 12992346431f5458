//! What namers say, held on to where it may change.

use crate::names::namer::{Answer, Lookup, Namers};
use crate::names::resolve::{Book, Read};
use futures_util::future::{Either, pending, select_all};
use muxgate_wire::name::Path;
use std::cell::RefCell;
use std::collections::HashMap;
use tokio::sync::watch;

/// Live answers that a resolution read.
pub(super) type Held = HashMap<Read, watch::Receiver<Answer>>;

/// A book that asks namers when it is opened at a new page, and holds on to what may change.
pub(super) struct Holding<'a> {
    namers: &'a Namers,
    before: Held,
    now: RefCell<Held>,
}

impl<'a> Holding<'a> {
    pub(super) fn new(namers: &'a Namers, before: Held) -> Self {
        Self { namers, before, now: RefCell::default() }
    }

    /// The live answers that were read; others are let go, and namers may stop their work for them.
    pub(super) fn used(self) -> Held {
        self.now.into_inner()
    }
}

impl Book for Holding<'_> {
    fn candidates(&self, path: &Path) -> Vec<usize> {
        self.namers.candidates(path)
    }

    fn prefix(&self, namer: usize) -> Path {
        self.namers.get(namer).map(|namer| namer.prefix().clone()).unwrap_or_default()
    }

    fn said(&self, namer: usize, path: &Path) -> Option<Answer> {
        let read = Read { namer, path: path.clone() };
        let mut now = self.now.borrow_mut();
        if let Some(receiver) = now.get(&read) {
            return Some(receiver.borrow().clone());
        }
        let mut receiver = match self.before.get(&read) {
            Some(receiver) => receiver.clone(),
            None => match self.namers.get(namer)?.lookup(path) {
                Lookup::Fixed(answer) => return Some(answer),
                Lookup::Live(receiver) => receiver,
            },
        };
        let answer = receiver.borrow_and_update().clone();
        // A receiver without a sender has nothing more to say.
        if receiver.has_changed().is_ok() {
            now.insert(read, receiver);
        }
        Some(answer)
    }
}

/// Ends when one of them has changed since it was read; never, if none can change any more.
pub(super) async fn any_changed(receivers: Vec<watch::Receiver<Answer>>) {
    let changes = receivers.into_iter().map(|mut receiver| {
        Box::pin(async move {
            if receiver.changed().await.is_err() {
                pending::<()>().await;
            }
        })
    });
    let changes: Vec<_> = changes.collect();
    let any = if changes.is_empty() { Either::Left(pending()) } else { Either::Right(select_all(changes)) };
    any.await;
}
