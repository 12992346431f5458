//! What is due when: idle and stalled callers, leases, drains, and the session's own limits.

use super::super::causes::bound;
use super::{Session, Socket};
use crate::Serve;
use crate::io::Io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::AsyncWrite;
use tokio::time::Instant;

/// A caller that sends no more may be gone altogether, which a socket tells only who tries to write. So often it is tried.
const PROBE_EVERY: Duration = Duration::from_secs(1);

impl<T: Io, S: Serve> Socket<T, S> {
    /// The next moment at which something is due.
    pub(super) fn due(&self, session: &Session) -> Option<Instant> {
        let machine = session.machine.lock();
        let idle = self.idle.filter(|_| machine.in_flight() == 0).map(|idle| self.last_active + idle);
        let stall =
            self.blocked_since.into_iter().chain(self.partial_since).min().map(|since| since + self.stall);
        let tick = machine.next_tick().map(|at| session.clock.at(at));
        let probe = self.ended.then(|| self.last_active + PROBE_EVERY);
        [idle, stall, tick, probe, self.away_until, self.hears_until].into_iter().flatten().min()
    }

    /// Something is due; false ends the connection.
    pub(super) fn on_time(&mut self, session: &Session, cx: &mut Context<'_>) -> bool {
        let now = Instant::now();
        if self.ended && self.last_active + PROBE_EVERY <= now {
            self.last_active = now;
            let reset = matches!(Pin::new(&mut self.io).poll_write(cx, &[]), Poll::Ready(Err(_)));
            // It may have closed only its half, or be gone: it is waited for, but not for ever.
            if reset || self.ended_at + self.stall <= now {
                return false;
            }
        }
        if self.blocked_since.is_some_and(|since| since + self.stall <= now) {
            self.events.limited("slow_reader");
            return false;
        }
        if self.partial_since.is_some_and(|since| since + self.stall <= now) {
            self.events.limited("slow_frame");
            return false;
        }
        if self.idle.is_some_and(|idle| self.last_active + idle <= now) {
            self.events.limited("idle_time");
            self.drain(session);
            // Once is enough: what remains is the caller's turn, or the drain limit.
            self.idle = None;
        }
        let mut machine = session.machine.lock();
        if self.away_until.is_some_and(|until| until <= now) {
            self.may_come_back(session, &mut machine, now);
        }
        if self.hears_until.is_some_and(|until| until <= now) {
            self.hears_until = None;
            // Some callers never say so; they get nacks from now on, and the connection ends with its last call.
            if machine.stop_waiting() {
                self.events.limited("unheard_drain");
            }
        }
        if let Err(error) = machine.tick(session.clock.now()) {
            self.events.limited(bound(&error).unwrap_or("slow_handshake"));
            return false;
        }
        true
    }
}
