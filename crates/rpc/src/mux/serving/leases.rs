//! When the caller is told to stay away, and when it may come back.

use super::{Running, Session, Socket};
use crate::Serve;
use crate::io::Io;
use crate::pressure::{HOLD, is_calm};
use muxgate_wire::mux::server::ServerSession;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

impl<T: Io, S: Serve> Socket<T, S> {
    /// Asks the caller for no more calls, now by a lease and then for good.
    pub(super) fn drain(&mut self, session: &Session) {
        let mut machine = session.machine.lock();
        if self.away_until.take().is_none() && !self.draining {
            machine.lease(0, session.clock.now());
        }
        if !self.draining {
            self.hears_until = Some(Instant::now() + self.stall);
        }
        self.draining = true;
        machine.drain();
    }

    /// Tells the caller to stay away for a while, if it does not know yet.
    pub(super) fn stay_away(&mut self, machine: &mut ServerSession<Running>, now: Duration) {
        if self.away_until.is_none() && !self.draining {
            machine.lease(0, now);
            self.away_until = Some(Instant::now() + HOLD);
        }
    }

    /// Tells the caller that it is welcome again, if it is.
    pub(super) fn may_come_back(
        &mut self,
        session: &Session,
        machine: &mut ServerSession<Running>,
        now: Instant,
    ) {
        let bytes = session.in_progress.load(Ordering::Relaxed) + machine.outbox().queued_bytes();
        let calm = self.pressure.is_calm()
            && is_calm(machine.in_flight(), self.max_in_flight)
            && is_calm(bytes, session.max_in_progress);
        self.away_until = (!calm).then(|| now + HOLD);
        if calm {
            machine.lease(u32::MAX, session.clock.now());
        }
    }
}
