//! Calls to one plain Thrift endpoint.

use super::Transport;
use super::connection::{Connection, check};
use super::pool::{Bounds, Lent, Pool};
use crate::events::Events;
use crate::life::jittered;
use crate::tls::ClientTls;
use crate::{Failure, Link, Reply, Request, Response, Serve, Status, Why};
use muxgate_wire::thrift::ApplicationExceptionType;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, interval, timeout_at};

/// How often unused connections are looked at: a service that closed one must not be left half-closed for long.
const TIDY_EVERY: Duration = Duration::from_millis(250);

/// Settings of a [`Client`].
#[derive(Clone, Debug)]
pub struct ClientParams {
    /// The endpoint.
    pub address: SocketAddr,
    /// What stands around the messages.
    pub transport: Transport,
    /// Encrypts connections from the first byte.
    pub tls: Option<ClientTls>,
    /// Time to connect, TLS handshake and upgrade included.
    pub connect: Duration,
    /// Most connections at once.
    pub max_size: usize,
    /// Most calls that wait for one of them.
    pub max_waiters: usize,
    /// An unused connection is closed after this time.
    pub idle: Duration,
    /// A connection older than this is closed after its call; up to a fifth earlier, by chance.
    pub life: Option<Duration>,
    /// Largest reply taken, in bytes.
    pub max_frame: usize,
    /// Whether declared exceptions count as failures.
    pub declared_fails: bool,
}

/// A pool of connections to one endpoint, one call at a time on each. Dropping a call closes its connection: plain
/// Thrift cannot take a call back, and a late reply must reach nobody.
pub struct Client {
    params: ClientParams,
    events: Arc<dyn Events>,
    pool: Arc<Pool<Link>>,
}

impl Client {
    /// A client without connections; they are made as calls need them. Must be called on a runtime.
    pub fn new(params: ClientParams, events: Arc<dyn Events>) -> Self {
        let bounds = Bounds { max_size: params.max_size, max_waiters: params.max_waiters, idle: params.idle };
        let pool = Arc::new(Pool::new(bounds, Arc::clone(&events)));
        let weak = Arc::downgrade(&pool);
        tokio::spawn(async move {
            let mut tick = interval(TIDY_EVERY);
            loop {
                tick.tick().await;
                let Some(pool) = weak.upgrade() else { return };
                pool.tidy();
            }
        });
        Self { params, events, pool }
    }

    async fn connect(&self, lent: &mut Lent<Link>) -> Result<(), Failure> {
        let ClientParams { address, transport, tls, connect, .. } = &self.params;
        let until = Instant::now() + *connect;
        let io = Link::open(*address, tls.as_ref(), *connect, &*self.events).await?;
        let transport = *transport;
        let connecting = async {
            let mut connection = Connection::new(io, transport, self.params.max_frame);
            connection.ends = self.params.life.map(|life| Instant::now() + jittered(life));
            if let Transport::TTwitter(protocol) = transport {
                connection.upgrade(protocol).await.map_err(|error| {
                    Failure::new(Why::Connect, format!("the TTwitter upgrade failed: {}", error.text()))
                })?;
            }
            Ok(connection)
        };
        let connection = timeout_at(until, connecting)
            .await
            .unwrap_or_else(|_| Err(Failure::new(Why::Connect, "cannot connect in time")))
            .inspect_err(|_| self.events.connect_failed())?;
        self.events.opened();
        lent.connection = Some(connection);
        Ok(())
    }

    async fn exchange(&self, request: &Request) -> Result<Response, Failure> {
        check(&request.body, self.params.transport)?;
        let mut lent = self.pool.lend().await?;
        if lent.connection.is_none() {
            self.connect(&mut lent).await?;
        }
        let Some(connection) = lent.connection.as_mut() else {
            return Err(Failure::new(Why::Connect, "no connection"));
        };
        let abandoned = Abandoned(Some(&*self.events));
        let answer = connection.exchange(request).await;
        abandoned.disarm();
        let (contexts, body) = match answer {
            Ok(answer) => answer,
            Err(failure) => {
                // Nothing was written of a call that cannot be put into bytes.
                if failure.why() == Why::BadRequest {
                    lent.give_back();
                }
                return Err(failure);
            }
        };
        let response = match request.body.is_oneway() {
            true => Response::nothing(),
            false => Response::judged(&request.body, body, contexts, self.params.declared_fails)?,
        };
        // A connection whose reply was no answer to its call is not used again.
        if !doubts_the_stream(response.reply) {
            lent.give_back();
        }
        Ok(response)
    }
}

impl Serve for Client {
    async fn call(&self, request: &mut Request) -> Result<Response, Failure> {
        self.exchange(request).await.map_err(|failure| failure.at(self.params.address))
    }

    fn status(&self) -> Status {
        if self.pool.is_full() { Status::Busy } else { Status::Open }
    }
}

/// Whether the service says that it could not read what was written to it: who knows where it reads on (thriftmux spec,
/// sections 7 and 15).
fn doubts_the_stream(reply: Reply) -> bool {
    use ApplicationExceptionType as Type;
    matches!(
        reply,
        Reply::Application(
            Type::InvalidMessageType
                | Type::WrongMethodName
                | Type::BadSequenceId
                | Type::ProtocolError
                | Type::InvalidTransform
                | Type::InvalidProtocol
                | Type::UnsupportedClientType
        )
    )
}

/// Counts a call whose future was dropped while its answer was on its way.
struct Abandoned<'a>(Option<&'a dyn Events>);

impl Abandoned<'_> {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        if let Some(events) = self.0 {
            events.abandoned();
        }
    }
}
