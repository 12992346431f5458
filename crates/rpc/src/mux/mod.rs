//! Mux over a socket: one session towards each service, one for each caller's connection.
//!
//! A session's machine (in `wire`) is shared by the calls, which only append to its outbox, and by one task that owns the
//! socket. The task drains the outbox into one vectored write, takes in all that a read brought, and is woken once for
//! any number of appended messages: that is where the speed of Mux lies.

mod causes;
mod client;
mod dispatching;
mod params;
mod server;
mod serving;
mod stream;
#[cfg(test)]
mod tests;

pub use client::{Client, ClientParams};
pub use params::ServerParams;
pub use server::serve;
pub use stream::{BoxIo, Secured, Securing, Upgrade};

use std::future::Future;
use std::pin::pin;
use std::task::Context;
use std::time::Duration;
use tokio::time::Instant;

/// Bytes asked for by one read: room for many frames.
pub(crate) const READ_CHUNK: usize = 64 << 10;

/// Reads in a row before other tasks get their turn: a peer that floods us must not hold up everybody else's calls.
pub(crate) const READS_A_TURN: u32 = 2;

/// Bytes written in a row before the other direction is looked at: a peer that takes as fast as we write must not keep us
/// from reading what else it says while a large message leaves.
pub(crate) const WRITE_CHUNK: usize = 256 << 10;

/// So many shares written in a row, and nothing read, before other tasks get their turn.
pub(crate) const WRITES_A_TURN: u32 = 2;

/// Gives others their turn: those that can run, and those whose sockets have become ready meanwhile. The task that asked
/// is woken after them.
pub(crate) fn give_way(cx: &mut Context<'_>) {
    // Polled once, it leaves the waker with the runtime; there is no need to poll it again.
    let _ = pin!(tokio::task::yield_now()).poll(cx);
}

/// The monotonic clock that the machines are given: time since the session began.
#[derive(Clone, Copy, Debug)]
struct Clock(Instant);

impl Clock {
    fn start() -> Self {
        Self(Instant::now())
    }

    fn now(self) -> Duration {
        self.0.elapsed()
    }

    fn at(self, time: Duration) -> Instant {
        self.0 + time
    }
}
