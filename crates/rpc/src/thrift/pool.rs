//! Connections to one endpoint, lent to one call each.

use super::connection::Connection;
use crate::events::Events;
use crate::io::Io;
use crate::{Failure, Why};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Bounds of a pool.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    pub(super) max_size: usize,
    pub(super) max_waiters: usize,
    pub(super) idle: Duration,
}

/// Connections of one endpoint. Lent ones come back by [`Lent::give_back`], or are closed when dropped.
pub(super) struct Pool<T> {
    bounds: Bounds,
    events: Arc<dyn Events>,
    state: Mutex<State<T>>,
}

struct State<T> {
    /// Unused connections; the one used last is lent first, so that the others grow old and go.
    idle: Vec<Connection<T>>,
    /// Connections that exist or are being made.
    open: usize,
    waiters: VecDeque<oneshot::Sender<Turn<T>>>,
}

/// What a call gets when it asks for a connection.
enum Turn<T> {
    Use(Connection<T>),
    /// There is room for one more: connect.
    Connect,
}

impl<T: Io> Pool<T> {
    pub(super) fn new(bounds: Bounds, events: Arc<dyn Events>) -> Self {
        Self {
            bounds,
            events,
            state: Mutex::new(State { idle: Vec::new(), open: 0, waiters: VecDeque::new() }),
        }
    }

    /// Lends an unused connection, or the right to make one; waits for either when all are lent.
    pub(super) async fn lend(self: &Arc<Self>) -> Result<Lent<T>, Failure> {
        let waiting = {
            let mut state = self.state.lock();
            while let Some(mut connection) = state.idle.pop() {
                self.events.idle(-1);
                if connection.is_clean() {
                    drop(state);
                    return Ok(Lent::new(self, Some(connection)));
                }
                state.open -= 1;
                self.events.closed();
            }
            if state.open < self.bounds.max_size {
                state.open += 1;
                return Ok(Lent::new(self, None));
            }
            // Calls that gave up leave their place behind; it is taken away before it counts.
            if state.waiters.len() >= self.bounds.max_waiters {
                state.waiters.retain(|waiter| !waiter.is_closed());
            }
            if state.waiters.len() >= self.bounds.max_waiters {
                self.events.limited("pool_waiters");
                return Err(Failure::new(Why::Overload, "all connections to the endpoint are busy"));
            }
            let (give, take) = oneshot::channel();
            state.waiters.push_back(give);
            take
        };
        match waiting.await {
            Ok(Turn::Use(connection)) => Ok(Lent::new(self, Some(connection))),
            Ok(Turn::Connect) => Ok(Lent::new(self, None)),
            Err(_) => Err(Failure::new(Why::Connect, "the endpoint is gone")),
        }
    }

    /// Whether a call would have to be refused.
    pub(super) fn is_full(&self) -> bool {
        let state = self.state.lock();
        state.idle.is_empty()
            && state.open >= self.bounds.max_size
            && state.waiters.len() >= self.bounds.max_waiters
    }

    /// The connection again if it cannot be used: somebody waits for it, and it is not clean. (One that nobody waits for is
    /// looked at when it is lent.)
    fn take_back(&self, mut connection: Connection<T>) -> Result<(), Connection<T>> {
        let mut state = self.state.lock();
        if !state.waiters.is_empty() && !connection.is_clean() {
            return Err(connection);
        }
        let mut turn = Turn::Use(connection);
        while let Some(waiter) = state.waiters.pop_front() {
            match waiter.send(turn) {
                Ok(()) => return Ok(()),
                Err(unused) => turn = unused,
            }
        }
        if let Turn::Use(unused) = turn {
            connection = unused;
            connection.idle_since = Instant::now();
            state.idle.push(connection);
            self.events.idle(1);
        }
        Ok(())
    }

    /// A connection is gone, or could not be made: whoever waits may make one.
    fn forget(&self) {
        let mut state = self.state.lock();
        while let Some(waiter) = state.waiters.pop_front() {
            if waiter.send(Turn::Connect).is_ok() {
                return;
            }
        }
        state.open -= 1;
    }

    /// Closes unused connections that the peer has closed, that are not clean, that were not used for long, or that are old.
    pub(super) fn tidy(&self) {
        let now = Instant::now();
        let mut gone = Vec::new();
        {
            let mut state = self.state.lock();
            let mut at = 0;
            while at < state.idle.len() {
                let connection = &mut state.idle[at];
                let clean = connection.is_clean();
                connection.release();
                let young = now - connection.idle_since < self.bounds.idle && !connection.is_old(now);
                if young && clean {
                    at += 1;
                } else {
                    gone.push(state.idle.remove(at));
                }
            }
            state.open -= gone.len();
        }
        for _ in gone {
            self.events.idle(-1);
            self.events.closed();
        }
    }
}

/// A connection, or the right to make one, that comes back to its pool in any case.
pub(super) struct Lent<T: Io> {
    pool: Arc<Pool<T>>,
    pub(super) connection: Option<Connection<T>>,
    returned: bool,
}

impl<T: Io> Lent<T> {
    fn new(pool: &Arc<Pool<T>>, connection: Option<Connection<T>>) -> Self {
        Self { pool: Arc::clone(pool), connection, returned: false }
    }

    /// Gives the connection back for the next call: its reply has been read whole. One on which more has come than was
    /// asked for, or that has grown old, is closed.
    pub(super) fn give_back(mut self) {
        let may_stay =
            |connection: &mut Connection<T>| connection.is_settled() && !connection.has_grown_old();
        if let Some(connection) = self.connection.take_if(may_stay) {
            self.connection = self.pool.take_back(connection).err();
            self.returned = self.connection.is_none();
        }
    }
}

impl<T: Io> Drop for Lent<T> {
    fn drop(&mut self) {
        if self.returned {
            return;
        }
        if self.connection.take().is_some() {
            self.pool.events.closed();
        }
        self.pool.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::super::Transport;
    use super::*;
    use crate::events::Uncounted;
    use futures_util::poll;
    use std::pin::pin;
    use tokio::io::{AsyncWriteExt, DuplexStream, duplex};

    fn pool() -> Arc<Pool<DuplexStream>> {
        let bounds = Bounds { max_size: 1, max_waiters: 1, idle: Duration::from_secs(60) };
        Arc::new(Pool::new(bounds, Arc::new(Uncounted)))
    }

    /// Whoever waits gets no connection on which more has come than was asked for, but the right to make one.
    #[tokio::test]
    async fn an_unclean_connection_is_not_handed_on() {
        for sent in [&b""[..], b"more"] {
            let pool = pool();
            let mut lent = pool.lend().await.unwrap();
            assert!(lent.connection.is_none());
            let (ours, mut theirs) = duplex(64);
            lent.connection = Some(Connection::new(ours, Transport::Framed, 1024));
            let mut waiting = pin!(pool.lend());
            assert!(poll!(&mut waiting).is_pending());
            assert!(pool.is_full());
            theirs.write_all(sent).await.unwrap();
            lent.give_back();
            let next = waiting.await.unwrap();
            assert_eq!(next.connection.is_some(), sent.is_empty());
            drop(next);
            assert!(!pool.is_full(), "its place is free again");
        }
    }

    #[tokio::test]
    async fn a_connection_is_lent_again_while_its_peer_is_quiet() {
        let pool = pool();
        let (ours, theirs) = duplex(64);
        let mut lent = pool.lend().await.unwrap();
        lent.connection = Some(Connection::new(ours, Transport::Buffered, 1024));
        lent.give_back();
        let again = pool.lend().await.unwrap();
        assert!(again.connection.is_some());
        again.give_back();
        drop(theirs);
        assert!(pool.lend().await.unwrap().connection.is_none(), "the peer has closed it");
    }
}
