//! The session towards a client: dispatches come in, replies go out.
//!
//! ```text
//!   new
//!    |
//!    v
//!  FRESH --- probe (echoed) ---> PROBED --- Tinit (Rinit), TLS or lz4 ---> SWITCHING
//!    |                            |  |                                        |
//!    |                            |  +-- Tinit (Rinit), nothing to switch     | switched
//!    | any other message          |      |                                   |
//!    | (no handshake; handled)    |      |                                   |
//!    +----------------------------+------+---> OPEN <------------------------+
//!                                              | drain (Tdrain)
//!                                              v
//!                                           DRAINING (still served; or, when refusing, nacked)
//!                                              | Rdrain tag 1, or waited for long enough
//!                                              v
//!                                           DRAINED (nacked; the caller closes once `is_drained`)
//! ```
//!
//! From everywhere to CLOSED: "dead" is any [`SessionError`]: the caller stops the calls it gets back from
//! [`ServerSession::take_all`], writes the outbox and closes the socket. In the upper row that is also a timeout, a bad
//! Tinit (answered by Rinit and Rerr), and any message while SWITCHING. A drain that is asked for in the upper row begins
//! with the session.
//!
//! A call's life: receive gives [`ServerEvent::Dispatch`]; `accept` says how to stop it; `reply` answers it; or
//! [`ServerEvent::Discarded`] says that nobody waits any more, and a later reply is dropped.

mod handshake;
mod receive;
mod reply;
#[cfg(test)]
mod tests;

use super::fragment::Reassembly;
use super::frame::{Tag, kind};
use super::handshake::{Agreed, Offer};
use super::limits::{self, Limits};
use super::message::{MessageError, Tdispatch, Tlease, Treq};
use super::outbox::Outbox;
use super::session::{Call, SessionError};
use super::table::{Slot, Table};
use bytes::{Bytes, BytesMut};
use std::time::Duration;

/// Settings of a server session.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// What to answer in the handshake.
    pub offer: Offer,
    /// From the first [`ServerSession::tick`] to the first message that is not part of the handshake.
    pub handshake_timeout: Duration,
    /// Dispatches in flight; more are nacked.
    pub max_in_flight: usize,
    /// Bytes waiting to be written beyond which dispatches are nacked.
    pub max_queued_bytes: usize,
    /// Whether to nack dispatches that come when the lease given to the client is out.
    pub nack_expired_lease: bool,
    /// Bounds of what the client sends.
    pub limits: Limits,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            offer: Offer::default(),
            handshake_timeout: limits::HANDSHAKE_TIMEOUT,
            max_in_flight: limits::MAX_IN_FLIGHT,
            max_queued_bytes: limits::MAX_QUEUED_BYTES,
            nack_expired_lease: false,
            limits: Limits::DEFAULT,
        }
    }
}

/// A request in one of its two forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// The usual form.
    Tdispatch(Tdispatch),
    /// The old form.
    Treq(Treq),
}

/// What a frame meant for the caller.
#[derive(Debug, PartialEq, Eq)]
pub enum ServerEvent<U> {
    /// Nothing.
    Nothing,
    /// The handshake is over. When [`Agreed::switches`], write the outbox (the Rinit), switch, then call
    /// [`ServerSession::switched`]: bytes that came after this frame belong to the new stream already.
    Established(Agreed),
    /// A request to serve. Its tag is taken from now on; [`ServerSession::accept`] may follow.
    Dispatch {
        /// For `accept` and `reply`.
        call: Call,
        /// The request.
        request: Request,
    },
    /// The client gave up on a call (already acknowledged): stop it.
    Discarded {
        /// Which one.
        tag: Tag,
        /// What was given to `accept`.
        token: Option<U>,
        /// The client's reason, as it came.
        why: Bytes,
    },
    /// A request was answered by the session itself.
    Refused {
        /// Its tag, free again.
        tag: Tag,
        /// Why.
        why: Refusal,
    },
    /// The client has acknowledged the drain: only what is in flight is left.
    DrainAcknowledged,
}

/// Why the session answered a request itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The body did not decode: ERROR, not to be repeated.
    Malformed(MessageError),
    /// Larger than is accepted: ERROR, not to be repeated.
    TooLarge,
    /// Too many in flight: nack.
    InFlight,
    /// The client does not read its replies fast enough: nack.
    Queued,
    /// The lease is out: nack.
    Lease,
    /// Draining: nack.
    Draining,
}

/// Things that happened and that nobody was told of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounts {
    /// Cancellations of tags that were not in flight.
    pub orphan_discards: u64,
    /// Replies that came after their call was over.
    pub dropped_replies: u64,
    /// Messages answered by an Rerr.
    pub unexpected: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Fresh,
    Probed,
    Switching,
    Open,
    Draining,
    Drained,
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Drain {
    No,
    /// Serve until the client acknowledges.
    Gentle,
    /// Nack everything: this session is not wanted.
    Refuse,
}

/// See the module's text. `U` is what the caller needs to stop a call.
#[derive(Debug)]
pub struct ServerSession<U> {
    config: ServerConfig,
    phase: Phase,
    drain: Drain,
    outbox: Outbox,
    table: Table<U>,
    stamp: u32,
    partials: Reassembly,
    started: Option<Duration>,
    /// A lease that the client is still to be told of.
    lease: Option<u32>,
    lease_end: Option<Duration>,
    counts: ServerCounts,
}

impl<U> ServerSession<U> {
    /// A session on a new connection.
    pub fn new(config: ServerConfig) -> Self {
        Self {
            partials: Reassembly::new(config.limits),
            config,
            phase: Phase::Fresh,
            drain: Drain::No,
            outbox: Outbox::default(),
            table: Table::new(),
            stamp: 0,
            started: None,
            lease: None,
            lease_end: None,
            counts: ServerCounts::default(),
        }
    }

    /// What is to be written. `is_empty` before a call tells whether the socket task must be woken after it.
    pub fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// What is to be written, to write it.
    pub fn outbox_mut(&mut self) -> &mut Outbox {
        &mut self.outbox
    }

    /// Calls that are being served.
    pub fn in_flight(&self) -> usize {
        self.table.running()
    }

    /// What happened on the side.
    pub fn counts(&self) -> ServerCounts {
        self.counts
    }

    /// Whether the session has ended, by [`Self::take_all`] or an error.
    pub fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    /// Asks the client for no more requests (Tdrain), and serves those that come until it has heard. A client that is
    /// still in its handshake hears of it right after.
    pub fn drain(&mut self) {
        if self.drain == Drain::No {
            self.drain = Drain::Gentle;
        }
        self.begin_drain();
    }

    /// Turns the client away politely: like [`Self::drain`], but requests that come are nacked from now on, as safe to
    /// send elsewhere.
    pub fn refuse(&mut self) {
        self.drain = Drain::Refuse;
        self.begin_drain();
    }

    fn begin_drain(&mut self) {
        if self.phase == Phase::Open && self.drain != Drain::No {
            self.phase = Phase::Draining;
            self.outbox.push_control(kind::TDRAIN, Tag::SESSION, &[]);
        }
    }

    /// Waits no longer for the client to acknowledge the drain: from now on only what is in flight is left, as if it had.
    /// `false` if it has, or was not asked.
    pub fn stop_waiting(&mut self) -> bool {
        let waiting = self.phase == Phase::Draining;
        if waiting {
            self.phase = Phase::Drained;
        }
        waiting
    }

    /// Whether a drain has come to its end: acknowledged, nothing in flight, everything written. A client that has not
    /// said anything beyond the handshake has nothing to lose and does not hold up a drain.
    pub fn is_drained(&self) -> bool {
        let acknowledged = match self.phase {
            Phase::Fresh | Phase::Probed | Phase::Switching => self.drain != Drain::No,
            Phase::Drained | Phase::Closed => true,
            Phase::Open | Phase::Draining => false,
        };
        acknowledged && self.in_flight() == 0 && self.outbox.is_empty()
    }

    /// Gives the client a lease, in milliseconds from now; 0 = "stay away for now", [`u32::MAX`] = without end. A client
    /// that is still in its handshake hears of the latest one right after.
    pub fn lease(&mut self, millis: u32, now: Duration) {
        self.lease = Some(millis);
        self.lease_end =
            (millis != u32::MAX).then(|| now.saturating_add(Duration::from_millis(millis.into())));
        if matches!(self.phase, Phase::Open | Phase::Draining) {
            self.push_lease();
        }
    }

    fn push_lease(&mut self) {
        if let Some(millis) = self.lease.take() {
            let mut body = BytesMut::with_capacity(9);
            Tlease { unit: Tlease::MILLIS, amount: millis.into() }.encode(&mut body);
            self.outbox.push_control(kind::TLEASE, Tag::MARKER, &body);
        }
    }

    /// Checks what is bounded by time. To be called once at the start, and whenever the instant it returned (or
    /// [`Self::next_tick`] names after a frame) has come; more often does no harm.
    ///
    /// # Errors
    /// The handshake or a message in pieces took too long: the session is dead.
    pub fn tick(&mut self, now: Duration) -> Result<Option<Duration>, SessionError> {
        if self.phase == Phase::Closed {
            return Err(SessionError::Closed);
        }
        self.started.get_or_insert(now);
        if self.next_tick().is_some_and(|at| at <= now) {
            let shaking = matches!(self.phase, Phase::Fresh | Phase::Probed | Phase::Switching);
            return Err(self.die(if shaking {
                SessionError::HandshakeTimeout
            } else {
                SessionError::PartialIdle
            }));
        }
        Ok(self.next_tick())
    }

    /// When [`Self::tick`] is to be called next; `None` = not before the next frame.
    pub fn next_tick(&self) -> Option<Duration> {
        match self.phase {
            Phase::Fresh | Phase::Probed | Phase::Switching => {
                self.started.map(|at| at.saturating_add(self.config.handshake_timeout))
            }
            _ => self.partials.idle_at(),
        }
    }

    /// Gives back all calls that are being served, to be stopped, and ends the session.
    pub fn take_all(&mut self) -> impl Iterator<Item = (Tag, Option<U>)> + use<U> {
        self.phase = Phase::Closed;
        self.table.take_running()
    }

    /// Records how to stop a call. `false` when it is over already; the token is dropped then.
    pub fn accept(&mut self, call: Call, token: U) -> bool {
        match self.table.get_mut(call.tag.get()) {
            Some(Slot::Running { stamp, token: place, .. }) if *stamp == call.stamp => {
                *place = Some(token);
                true
            }
            _ => false,
        }
    }

    fn die(&mut self, error: SessionError) -> SessionError {
        self.phase = Phase::Closed;
        error
    }

    /// After an answer that the client asked for and did not work for.
    fn check_flood(&mut self) -> Result<(), SessionError> {
        if self.outbox.queued_control() > limits::MAX_QUEUED_CONTROL {
            return Err(self.die(SessionError::Flood));
        }
        Ok(())
    }

    /// Whether as much waits to be written as may.
    fn is_backed_up(&self) -> bool {
        self.outbox.queued_bytes() >= self.config.max_queued_bytes
    }
}
