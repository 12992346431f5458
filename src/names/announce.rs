//! Announcers: a listener registers itself in a server set of ZooKeeper, as services do, and leaves it first when it ends.
//!
//! ```text
//!   joining ──▶ in the set ──▶ connection lost ──▶ back within the session: still in it
//!      ▲                              └──▶ session expired, or the node gone: joining
//!      └── pause (0.5 to 30 s) ◀── refused, or out of reach: logged, counted, and no reason to stop
//! ```

use crate::observe::ListenerStats;
use crate::outside::zk::{self, Session, Zk, ZkError};
use muxgate_rpc::life::jittered;
use serde_json::json;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Where announcements stand, if nothing else is said (as in linkerd).
pub const PATH_PREFIX: &str = "/discovery";

/// How long leaving may take: callers that still find us are better than an end that never comes.
pub const LEAVE_WITHIN: Duration = Duration::from_secs(2);

/// First pause after a failure; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// Longest pause.
const LAST_PAUSE: Duration = Duration::from_secs(30);

/// Whether the node is still there is looked at this often.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Settings of an announcer, `io.l5d.serversets`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// The ensemble.
    pub zk: zk::Params,
    /// `pathPrefix`: the node below which the sets are.
    pub path_prefix: String,
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "server sets below {} in ZooKeeper at {}", self.path_prefix, self.zk)
    }
}

/// A listener in a server set. Dropped, it leaves when its session ends.
pub struct Announcement {
    leave: CancellationToken,
    task: JoinHandle<()>,
}

impl Announcement {
    /// Announces the listener at `address` below `node`, for as long as it lives. Must be called on a runtime.
    pub fn start(params: &Params, node: String, address: SocketAddr, stats: Arc<ListenerStats>) -> Self {
        let leave = CancellationToken::new();
        // A session of its own: when it is dropped, whatever was left half done is undone by ZooKeeper.
        let zk = Zk::patient(params.zk.clone(), params.zk.session);
        let announcing = Announcing { zk, node, address, stats, leave: leave.clone() };
        Self { leave, task: tokio::spawn(announcing.run()) }
    }

    /// Leaves the set. Returns when that is done, after [`LEAVE_WITHIN`] at the latest.
    pub async fn leave(self) {
        self.leave.cancel();
        // A task that did not end in time ends with the process, and the node with the session.
        let _ = timeout(LEAVE_WITHIN, self.task).await;
    }
}

struct Announcing {
    zk: Zk,
    node: String,
    address: SocketAddr,
    stats: Arc<ListenerStats>,
    leave: CancellationToken,
}

/// Our node, and the session that it belongs to.
struct Joined {
    session: Arc<Session>,
    node: String,
}

impl Announcing {
    async fn run(self) {
        let mut pause = FIRST_PAUSE;
        loop {
            let joined = tokio::select! {
                joined = self.join() => joined,
                () = self.leave.cancelled() => return,
            };
            match joined {
                Ok(joined) => {
                    pause = FIRST_PAUSE;
                    self.stats.announcements.add_one("joined");
                    tracing::info!(node = joined.node, listener = &*self.stats.label, "announced");
                    tokio::select! {
                        () = self.stay(&joined) => {}
                        () = self.leave.cancelled() => return self.part(joined).await,
                    }
                    self.stats.announcements.add_one("lost");
                    tracing::warn!(node = joined.node, "the announcement is lost; joining again");
                }
                Err(error) => {
                    self.stats.announcements.add_one("failed");
                    tracing::warn!(node = self.node, %error, "cannot announce; trying again");
                    tokio::select! {
                        () = sleep(jittered(pause)) => pause = (pause * 2).min(LAST_PAUSE),
                        () = self.leave.cancelled() => return,
                    }
                }
            }
        }
    }

    async fn join(&self) -> Result<Joined, ZkError> {
        let session = self.zk.session().await?;
        session.make(&self.node).await?;
        let host = match self.address.ip() {
            ip if ip.is_unspecified() => way_to(&self.zk, ip.is_ipv4()).await?,
            ip => ip,
        };
        let endpoint = json!({"host": host.to_string(), "port": self.address.port()});
        let content =
            json!({"serviceEndpoint": endpoint, "additionalEndpoints": {}, "status": "ALIVE", "shard": 0});
        let node = session.join(&format!("{}/member_", self.node), content.to_string().as_bytes()).await?;
        Ok(Joined { session, node })
    }

    /// Returns when we are no longer in the set.
    async fn stay(&self, joined: &Joined) {
        loop {
            tokio::select! {
                () = joined.session.until_lost() => {}
                () = sleep(LOOK_EVERY) => {}
            }
            if !joined.session.is_connected() && !joined.session.is_back(joined.session.life()).await {
                return;
            }
            match joined.session.stat(&joined.node).await {
                Ok(Some(stat)) if stat.ephemeral_owner == joined.session.id() => {}
                Ok(_) => return,
                // The connection was lost again: the next round sees.
                Err(error) => tracing::debug!(%error, "cannot look at the announcement"),
            }
        }
    }

    async fn part(&self, joined: Joined) {
        match joined.session.delete(&joined.node, None).await {
            Ok(()) => {
                self.stats.announcements.add_one("left");
                tracing::info!(node = joined.node, "left the set");
            }
            Err(error) => {
                tracing::warn!(node = joined.node, %error, "the announcement ends with its session")
            }
        }
    }
}

/// Our address on the way to ZooKeeper: one that others reach us by, other than `0.0.0.0`.
async fn way_to(zk: &Zk, v4: bool) -> Result<IpAddr, ZkError> {
    let params = zk.params();
    let any: IpAddr = if v4 { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let hosts = params.to_string();
    let mut last = "it has no servers".to_owned();
    for (host, port) in &params.hosts {
        let way = async {
            // Nothing is sent: the system only chooses the way.
            let socket = UdpSocket::bind((any, 0)).await?;
            socket.connect((host.as_str(), *port)).await?;
            socket.local_addr()
        };
        match way.await {
            Ok(address) => return Ok(address.ip()),
            Err(error) => last = error.to_string(),
        }
    }
    Err(ZkError::new(zk::Kind::Away, &hosts, &format!("no way there: {last}")))
}
