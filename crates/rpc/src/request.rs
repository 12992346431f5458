//! A call on its way in, whatever protocol it came by.

use crate::tls::Identity;
use crate::{Context, Payload, Purse};
use bytes::Bytes;
use muxgate_wire::name::Path;
use muxgate_wire::pairs::Pairs;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use tokio::time::Instant;

/// A call. Clone costs a few reference counts.
#[derive(Clone, Debug)]
pub struct Request {
    /// At the edge: the destination as the caller gave it, empty if none. After `address`: the full name.
    /// After `bind`: the residual.
    pub dst: Path,
    /// The caller's own delegations, in wire form: they travel on unchanged.
    pub dtab: Pairs,
    /// Trace, deadline, client id and all that is handed on.
    pub ctx: Context,
    /// The Thrift message.
    pub body: Payload,
    /// What never travels.
    pub local: Local,
}

/// Who calls: what is known of the other end of a connection.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    /// Its address.
    pub address: Option<SocketAddr>,
    /// Who it is, by the certificate it showed.
    pub identity: Option<Arc<Identity>>,
}

impl From<Option<SocketAddr>> for Peer {
    fn from(address: Option<SocketAddr>) -> Self {
        Self { address, identity: None }
    }
}

/// Where a session leaves its caller's reason for a Tdiscarded before it drops the call.
pub type Discarded = Arc<OnceLock<Bytes>>;

/// What the gateway knows of a call and never sends.
#[derive(Clone, Debug)]
pub struct Local {
    /// When the call was read.
    pub arrived: Instant,
    /// The caller's address.
    pub peer: Option<SocketAddr>,
    /// Who the caller is, by the certificate it showed.
    pub identity: Option<Arc<Identity>>,
    /// Zero for the first attempt; counts every retry and requeue.
    pub attempt: u32,
    /// Pays for attempts beyond the first; set by the route.
    pub purse: Option<Arc<Purse>>,
    /// The deadline seems past, but so many do that clocks must be wrong: pass it on, do not keep it.
    pub deadline_doubted: bool,
    /// The caller's reason, if it takes the call back (Tdiscarded): it is told to the service as it came.
    pub discarded: Option<Discarded>,
    /// Where the name is put once it is known, for the span that was begun before; none if the call is not recorded.
    pub named: Option<Arc<OnceLock<Path>>>,
    /// Endpoints that failed this call already; a retry prefers others.
    pub tried: Vec<SocketAddr>,
    /// What the call brought more of than is read (`contexts`, `dtab`, `destination`): it lacks that part, and must be refused.
    pub excess: Option<&'static str>,
}

impl Request {
    /// A request without names or contexts, as a plain Thrift caller sends it.
    pub fn new(body: Payload, arrived: Instant, peer: Option<SocketAddr>) -> Self {
        Self {
            dst: Path::default(),
            dtab: Pairs::default(),
            ctx: Context::default(),
            body,
            local: Local {
                arrived,
                peer,
                identity: None,
                attempt: 0,
                purse: None,
                deadline_doubted: false,
                discarded: None,
                named: None,
                tried: Vec::new(),
                excess: None,
            },
        }
    }
}
