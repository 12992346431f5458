//! The session towards a server: dispatches go out, replies come in.
//!
//! ```text
//!                 new, start
//!                     |
//!                     v          probe echoed         Rinit, nothing to switch
//!                 PROBING ----------------> OFFERING ------------------+
//!                  |   |                     |   |  Rinit, TLS or lz4   |
//!   any other      |   |                     |   +--------> SWITCHING   |
//!   answer         |   |     Rerr, bad Rinit,|                  |       |
//!   (no handshake) |   |     anything else   |         switched |       |
//!                  |   | timeout             v                  v       v
//!                  |   +----------------> CLOSED <---------- RUNNING (open; busy when the lease is out)
//!                  |                      ^   ^   dead          ^  |
//!                  |                      |   |                 |  | Tdrain (answered by Rdrain),
//!                  +----------------------+---+-----------------+  | or too many tags lost
//!                       (to RUNNING)      |   |                    v
//!                                         |   +---------------- DRAINING (busy; nothing new is sent)
//!                                         |        dead            |
//!                                         +------------------------+
//!                                              nothing in flight
//! ```
//!
//! "Dead" is any [`SessionError`]: the caller takes back its tokens by [`ClientSession::take_all`] and closes the socket.
//! "Timeout" is the handshake's; while running, a ping without answer is one of the ways to be dead.
//!
//! A tag's life: free -> live (dispatch) -> free (reply, Rerr), or -> cancelled (cancel) -> free (any R message for it),
//! or -> lost (cancel of a half-sent request, which Finagle servers never answer) -> free (should an answer come).
//!
//! The form of requests: a server that shook hands knows Tdispatch. Without handshake that is not known until the first
//! Rdispatch; a dispatch that is answered by an Rerr before is sent again as a Treq, and so are all that follow. Finagle
//! does so after a handshake too, and then loses contexts for good because of one Rerr.

mod dispatch;
mod handshake;
mod receive;
#[cfg(test)]
mod tests;

pub use dispatch::{DispatchHead, Refused};

use super::fragment::Reassembly;
use super::frame::{Tag, kind};
use super::handshake::{Agreed, Offer};
use super::limits::{self, Limits};
use super::message::{Rdispatch, Treq};
use super::outbox::{Outbox, Ticket};
use super::session::{Call, SessionError};
use super::tags::FreeTags;
use bytes::Bytes;
use dispatch::Held;
use std::collections::VecDeque;
use std::time::Duration;

/// Settings of a client session. All times are durations.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Whether to begin with the handshake; a session without has no window and no TLS upgrade.
    pub handshake: bool,
    /// What to announce in it.
    pub offer: Offer,
    /// From the first [`ClientSession::tick`] to the end of the handshake.
    pub handshake_timeout: Duration,
    /// Time from ping to ping; `None` = no pings.
    pub ping_interval: Option<Duration>,
    /// How long a ping may go unanswered.
    pub ping_timeout: Duration,
    /// Dispatches in flight.
    pub max_in_flight: usize,
    /// Tags that rest after their use: a server that answers a call twice hits nobody new.
    pub tag_rest: usize,
    /// Dispatches held back until the handshake is over.
    pub max_held: usize,
    /// Bytes waiting to be written beyond which nothing new is taken.
    pub max_queued_bytes: usize,
    /// Bounds of what the server sends.
    pub limits: Limits,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            handshake: true,
            offer: Offer::default(),
            handshake_timeout: limits::HANDSHAKE_TIMEOUT,
            ping_interval: Some(limits::PING_INTERVAL),
            ping_timeout: limits::PING_TIMEOUT,
            max_in_flight: limits::MAX_IN_FLIGHT,
            tag_rest: 0,
            max_held: limits::MAX_HELD,
            max_queued_bytes: limits::MAX_QUEUED_BYTES,
            limits: Limits::DEFAULT,
        }
    }
}

/// What a balancer wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionStatus {
    /// Takes dispatches. A session in its handshake is open, it holds them back for a moment.
    Open,
    /// Better choose another one.
    Busy(Why),
    /// Of no further use; close the socket.
    Closed,
}

/// Why a session is busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The handshake lasts and as much waits for it as may.
    Handshake,
    /// The server's lease has run out. Dispatches are still sent.
    Lease,
    /// The server drains, or the session retires. Dispatches are refused.
    Draining,
    /// As many dispatches as may be are in flight.
    InFlight,
    /// As many bytes as may be wait to be written.
    Queued,
}

/// What a frame meant for the caller.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<T> {
    /// The handshake is over. When [`Agreed::switches`], switch, then call [`ClientSession::switched`]: bytes that came
    /// after this frame belong to the new stream already.
    Established(Agreed),
    /// A dispatch is answered (an Rreq shows as an Rdispatch without contexts).
    Replied {
        /// What was given to `dispatch`.
        token: T,
        /// The answer.
        reply: Rdispatch,
    },
    /// A dispatch failed without an answer from the application.
    Failed {
        /// What was given to `dispatch`.
        token: T,
        /// How.
        why: CallFailure,
    },
    /// The server wants no new dispatches.
    Draining,
    /// The server gave a lease; `None` = without end.
    Leased(Option<Duration>),
}

/// Why one dispatch failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallFailure {
    /// An Rerr: the server's session layer could not handle it. Text, perhaps not UTF-8.
    Rerr(Bytes),
    /// Answered by a message of another type.
    Unexpected(i8),
    /// The reply was larger than is accepted.
    TooLarge,
}

/// A dispatch that ends with the session.
#[derive(Debug, PartialEq, Eq)]
pub struct Unfinished<T> {
    /// What was given to `dispatch`.
    pub token: T,
    /// Whether any of it may have been written; if not, it is safe to send it elsewhere.
    pub written: bool,
}

/// Things that happened and that nobody was told of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientCounts {
    /// Replies to cancelled dispatches and to tags that are not in flight.
    pub late_replies: u64,
    /// Cancellations that the server was told of.
    pub discards: u64,
    /// Messages that were not expected but harmless.
    pub unexpected: u64,
}

#[derive(Debug)]
enum Slot<T> {
    Free,
    Live {
        stamp: u32,
        token: T,
        ticket: Option<Ticket>,
        /// The request in its old form, as long as it is not known whether the server knows the new one.
        again: Option<Box<Treq>>,
    },
    Cancelled,
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Probing,
    Offering,
    Switching,
    Running,
    Draining,
    Closed,
}

/// In which form requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// As Tdispatch, of which it is not known yet whether the server knows it.
    Unproven,
    Tdispatch,
    Treq,
}

/// See the module's text. `T` is what the caller wants back with each reply.
#[derive(Debug)]
pub struct ClientSession<T> {
    config: ClientConfig,
    phase: Phase,
    form: Form,
    outbox: Outbox,
    /// By tag number.
    slots: Vec<Slot<T>>,
    free: FreeTags,
    stamp: u32,
    /// Live and cancelled.
    in_flight: usize,
    lost: usize,
    held: VecDeque<Held>,
    held_bytes: usize,
    partials: Reassembly,
    started: Option<Duration>,
    lease_end: Option<Duration>,
    ping: Ping,
    /// Whether the peer has shown, since its Rinit, that it stands by it.
    proven: bool,
    counts: ClientCounts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ping {
    /// None is under way; the next is due then, or at once.
    Due(Option<Duration>),
    /// Sent then.
    Sent(Duration),
}

impl<T> ClientSession<T> {
    /// A session on a new connection. Its first bytes (the probe) are in the outbox already.
    pub fn new(config: ClientConfig) -> Self {
        let mut outbox = Outbox::default();
        let phase = if config.handshake {
            outbox.push_control(kind::RERR_OLD, Tag::SESSION, super::handshake::PROBE);
            Phase::Probing
        } else {
            Phase::Running
        };
        Self {
            free: FreeTags::new(
                config.max_in_flight.saturating_add(limits::MAX_LOST_TAGS + config.tag_rest),
                config.tag_rest,
            ),
            partials: Reassembly::new(config.limits),
            config,
            phase,
            form: Form::Unproven,
            outbox,
            slots: Vec::new(),
            stamp: 0,
            in_flight: 0,
            lost: 0,
            held: VecDeque::new(),
            held_bytes: 0,
            started: None,
            lease_end: None,
            ping: Ping::Due(None),
            proven: true,
            counts: ClientCounts::default(),
        }
    }

    /// Whether to give it dispatches.
    pub fn status(&self, now: Duration) -> SessionStatus {
        let busy = match self.phase {
            Phase::Closed => return SessionStatus::Closed,
            Phase::Draining if self.in_flight == 0 => return SessionStatus::Closed,
            Phase::Draining => Why::Draining,
            Phase::Probing | Phase::Offering | Phase::Switching
                if self.held.len() >= self.config.max_held =>
            {
                Why::Handshake
            }
            _ if self.in_flight >= self.config.max_in_flight => Why::InFlight,
            _ if self.queued_bytes() >= self.config.max_queued_bytes => Why::Queued,
            _ if self.lease_end.is_some_and(|end| end <= now) => Why::Lease,
            _ => return SessionStatus::Open,
        };
        SessionStatus::Busy(busy)
    }

    /// Whether the server has given a lease that ends: only then does [`Self::status`] look at the time.
    pub fn has_lease(&self) -> bool {
        self.lease_end.is_some()
    }

    /// What is to be written. `is_empty` before a call tells whether the socket task must be woken after it.
    pub fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// What is to be written, to write it.
    pub fn outbox_mut(&mut self) -> &mut Outbox {
        &mut self.outbox
    }

    /// Dispatches whose tag is not free yet: waiting for a reply, or cancelled and not acknowledged.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Tags lost to requests that were cancelled when half sent.
    pub fn lost_tags(&self) -> usize {
        self.lost
    }

    /// What happened on the side.
    pub fn counts(&self) -> ClientCounts {
        self.counts
    }

    /// Whether the handshake is over.
    pub fn is_established(&self) -> bool {
        !matches!(self.phase, Phase::Probing | Phase::Offering | Phase::Switching)
    }

    fn queued_bytes(&self) -> usize {
        self.outbox.queued_bytes() + self.held_bytes
    }

    /// Does what is due by time: pings. To be called once at the start, and whenever the instant it returned (or
    /// [`Self::next_tick`] names after a frame) has come; more often does no harm.
    ///
    /// # Errors
    /// The handshake, a ping, or a message in pieces took too long: the session is dead.
    pub fn tick(&mut self, now: Duration) -> Result<Option<Duration>, SessionError> {
        if self.phase == Phase::Closed {
            return Err(SessionError::Closed);
        }
        let started = *self.started.get_or_insert(now);
        if !self.is_established() {
            if started.saturating_add(self.config.handshake_timeout) <= now {
                return Err(self.die(SessionError::HandshakeTimeout));
            }
            return Ok(self.next_tick());
        }
        if self.partials.idle_at().is_some_and(|at| at <= now) {
            return Err(self.die(SessionError::PartialIdle));
        }
        match self.ping {
            Ping::Sent(at) if at.saturating_add(self.config.ping_timeout) <= now => {
                return Err(self.die(SessionError::PingTimeout));
            }
            Ping::Due(at) if self.config.ping_interval.is_some() && at.is_none_or(|at| at <= now) => {
                self.outbox.push_control(kind::TPING, Tag::SESSION, &[]);
                self.ping = Ping::Sent(now);
            }
            _ => {}
        }
        Ok(self.next_tick())
    }

    /// When [`Self::tick`] is to be called next; `None` = not before the next frame.
    pub fn next_tick(&self) -> Option<Duration> {
        if !self.is_established() {
            return self.started.map(|at| at.saturating_add(self.config.handshake_timeout));
        }
        let ping = match self.ping {
            Ping::Sent(at) => Some(at.saturating_add(self.config.ping_timeout)),
            Ping::Due(at) => self.config.ping_interval.and(at),
        };
        ping.into_iter().chain(self.partials.idle_at()).min()
    }

    /// Gives back all dispatches that are in flight, and ends the session.
    pub fn take_all(&mut self) -> Vec<Unfinished<T>> {
        self.phase = Phase::Closed;
        self.in_flight = 0;
        self.held.clear();
        self.held_bytes = 0;
        let written = self.outbox.written();
        let slots = std::mem::take(&mut self.slots).into_iter();
        slots
            .filter_map(|slot| match slot {
                Slot::Live { token, ticket, .. } => {
                    Some(Unfinished { token, written: ticket.is_some_and(|ticket| ticket.is_begun(written)) })
                }
                _ => None,
            })
            .collect()
    }

    /// As [`Self::take_all`], for a session that is not needed any more.
    pub fn close(mut self) -> Vec<Unfinished<T>> {
        self.take_all()
    }

    fn die(&mut self, error: SessionError) -> SessionError {
        self.phase = Phase::Closed;
        error
    }

    fn slot(&mut self, tag: Tag) -> Option<&mut Slot<T>> {
        self.slots.get_mut(tag.get() as usize)
    }

    /// The slot of this very use of a tag, if it is live.
    fn live(&mut self, call: Call) -> Option<&mut Slot<T>> {
        self.slot(call.tag).filter(|slot| matches!(slot, Slot::Live { stamp, .. } if *stamp == call.stamp))
    }
}
