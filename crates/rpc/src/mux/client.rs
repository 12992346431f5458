//! Calls to one Mux endpoint, over one session that is made when it is needed and replaced when it ends.

use super::dispatching::{Session, judge};
use super::stream::Upgrade;
use crate::events::Events;
use crate::life::jittered;
use crate::tls::ClientTls;
use crate::{Failure, Flags, Link, Request, Response, Serve, Status, Why};
use arc_swap::ArcSwapOption;
use muxgate_wire::mux::client::{ClientConfig, SessionStatus, Why as BusyWhy};
use parking_lot::Mutex;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::sleep;

/// Settings of a [`Client`].
#[derive(Clone, Debug)]
pub struct ClientParams {
    /// The endpoint.
    pub address: SocketAddr,
    /// Encrypts connections from the first byte.
    pub tls: Option<ClientTls>,
    /// Time to connect, TLS handshake included.
    pub connect: Duration,
    /// Largest frame taken, in bytes.
    pub max_frame: usize,
    /// Whether declared exceptions count as failures.
    pub declared_fails: bool,
    /// A session older than this takes no more calls and ends with its last one; up to a fifth earlier, by chance.
    pub life: Option<Duration>,
    /// Settings of each session: handshake, pings, limits.
    pub session: ClientConfig,
    /// Begins TLS when the handshake says so. To be there if the session's offer says that TLS may begin.
    pub upgrade: Option<Arc<dyn Upgrade>>,
}

/// One session to one endpoint, shared by all calls.
pub struct Client {
    params: ClientParams,
    events: Arc<dyn Events>,
    session: ArcSwapOption<Session>,
    /// Held by the one call that connects; the others wait for it.
    connecting: tokio::sync::Mutex<()>,
    /// Ends the session's life.
    old: Mutex<Option<AbortHandle>>,
}

impl Client {
    /// A client without a session; the first call makes one.
    pub fn new(params: ClientParams, events: Arc<dyn Events>) -> Self {
        let (session, connecting) = (ArcSwapOption::empty(), tokio::sync::Mutex::new(()));
        Self { params, events, session, connecting, old: Mutex::new(None) }
    }

    /// The session, if it takes calls. A lease that has run out makes it unwanted, not unusable.
    fn usable(&self) -> Option<Arc<Session>> {
        let session = self.session.load_full().filter(|session| !session.is_retired())?;
        match session.status() {
            SessionStatus::Closed | SessionStatus::Busy(BusyWhy::Draining) => None,
            SessionStatus::Open | SessionStatus::Busy(_) => Some(session),
        }
    }

    async fn session(&self) -> Result<Arc<Session>, Failure> {
        if let Some(session) = self.usable() {
            return Ok(session);
        }
        let _turn = self.connecting.lock().await;
        if let Some(session) = self.usable() {
            return Ok(session);
        }
        let ClientParams { address, connect, tls, .. } = &self.params;
        let io = Link::open(*address, tls.as_ref(), *connect, &*self.events).await?;
        let session = Session::start(io, &self.params, Arc::clone(&self.events));
        self.session.store(Some(Arc::clone(&session)));
        self.retire_when_old(&session);
        Ok(session)
    }

    /// The next call after that makes a new session, while the calls of the old one are answered.
    fn retire_when_old(&self, session: &Arc<Session>) {
        let Some(life) = self.params.life.map(jittered) else { return };
        let session = Arc::downgrade(session);
        let timer = tokio::spawn(async move {
            sleep(life).await;
            if let Some(session) = session.upgrade() {
                session.retire();
            }
        });
        if let Some(last) = self.old.lock().replace(timer.abort_handle()) {
            last.abort();
        }
    }

    async fn exchange(&self, request: &Request) -> Result<Response, Failure> {
        let reply = match self.session.load_full() {
            Some(session) if !session.is_retired() => match session.dispatch(request).await {
                // The session ended or drains, and nothing was written: a new one may take the call.
                Err(failure)
                    if failure.why() == Why::ConnectionLost && failure.flags().has(Flags::RETRYABLE) =>
                {
                    self.session().await?.dispatch(request).await?
                }
                answer => answer?,
            },
            _ => self.session().await?.dispatch(request).await?,
        };
        let (contexts, body) = judge(reply)?;
        // Whatever a service says to a oneway call, nobody is there to hear it.
        if request.body.is_oneway() {
            return Ok(Response { contexts, ..Response::nothing() });
        }
        Response::judged(&request.body, body, contexts, self.params.declared_fails)
    }
}

impl Serve for Client {
    async fn call(&self, request: &mut Request) -> Result<Response, Failure> {
        self.exchange(request).await.map_err(|failure| failure.at(self.params.address))
    }

    fn status(&self) -> Status {
        match self.session.load().as_ref().map(|session| session.status()) {
            Some(SessionStatus::Busy(_)) => Status::Busy,
            // A session that ended is replaced by the next call.
            None | Some(SessionStatus::Open | SessionStatus::Closed) => Status::Open,
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(session) = self.session.swap(None) {
            session.retire();
        }
        if let Some(timer) = self.old.lock().take() {
            timer.abort();
        }
    }
}
