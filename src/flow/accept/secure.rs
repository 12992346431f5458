//! Connections of a listener that has certificates.

use super::Tls;
use super::connection::{FIRST_READ, Shared};
use super::spoken::{How, Verdict};
use muxgate_rpc::io::{Io, ReadBuffer};
use muxgate_rpc::mux;
use muxgate_rpc::tls::TlsError;
use muxgate_rpc::{Drain, Link, Peer, Serve};
use muxgate_wire::mux::handshake::TlsLevel;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::time::timeout;

impl<S: Serve> Shared<S> {
    /// Makes the TLS handshake, finds out what is spoken inside, and serves it; or serves in clear what may be. What is
    /// called `first` was read already.
    pub(super) async fn encrypted<T: Io>(
        &self,
        tls: &Tls,
        verdict: Verdict,
        io: T,
        mut first: ReadBuffer,
        peer: SocketAddr,
        drain: &Drain,
    ) {
        if verdict != Verdict::Tls {
            return match may_be_clear(tls.opportunistic, verdict) {
                true => self.speak(verdict, io, first, Some(peer).into(), &self.mux, drain).await,
                false => self.events.tls_failed(Some(peer), &TlsError::plain()),
            };
        }
        let handshake = Link::accept(io, first.take().freeze(), &tls.server);
        let secured = timeout(self.params.stall, handshake).await;
        let (mut link, identity) = match secured.unwrap_or_else(|_| Err(TlsError::slow())) {
            Ok(secured) => secured,
            Err(error) => return self.events.tls_failed(Some(peer), &error),
        };
        let mut read = ReadBuffer::new(FIRST_READ);
        let Some(verdict) = self.first_bytes(&mut link, &mut read, drain).await else { return };
        let peer = Peer { address: Some(peer), identity: identity.map(Arc::new) };
        self.speak(verdict, link, read, peer, &self.mux_in_tls, drain).await;
    }
}

/// Mux has a handshake in clear that says whether TLS follows. Anything else would stay in clear.
fn may_be_clear(level: TlsLevel, verdict: Verdict) -> bool {
    match level {
        TlsLevel::Off => false,
        TlsLevel::Desired => true,
        TlsLevel::Required => verdict == Verdict::Serve(How::Mux),
    }
}

/// Settings of Mux sessions that begin in clear.
pub(super) fn in_clear(sessions: &mux::ServerParams, tls: Option<&Tls>) -> mux::ServerParams {
    let mut sessions = sessions.clone();
    if let Some(tls) = tls.filter(|tls| tls.opportunistic != TlsLevel::Off) {
        sessions.session.offer.tls = tls.opportunistic;
        sessions.upgrade = Some(Arc::new(tls.server.clone()));
    }
    sessions
}
