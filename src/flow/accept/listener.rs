//! A port: takes connections, bounded in number, until it is drained.

use super::Params;
use super::connection::Shared;
use super::events::Counted;
use super::peers::Peers;
use crate::observe::ListenerStats;
use muxgate_rpc::io::{keep_alive, keep_short};
use muxgate_rpc::{Drain, Pressure, Serve};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Connections that the kernel keeps for us until we take them.
const BACKLOG: i32 = 1024;
/// Pause after the system refused to give us a connection: usually there are no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A port that is open.
pub struct Listener {
    name: String,
    address: SocketAddr,
    drain: Drain,
    ended: oneshot::Receiver<usize>,
    grace: oneshot::Sender<Duration>,
}

impl Listener {
    /// Opens the port and begins to take connections. Mux callers hear when there is too much `pressure`. Must be called on
    /// a runtime.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub fn bind<S: Serve>(
        params: Params,
        stats: Arc<ListenerStats>,
        service: S,
        pressure: Pressure,
    ) -> io::Result<Self> {
        let socket = open(params.address)?;
        let address = socket.local_addr()?;
        let name = params.name.clone();
        let room = params.max_connections;
        let peers = params.max_per_peer.map(Peers::new);
        let counted = Arc::new(Counted(Arc::clone(&stats)));
        let shared = Arc::new(Shared::new(params, service, counted, pressure));
        let drain = shared.drain.clone();
        let (grace, asked) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let accept = Accept { socket, room, peers, shared, stats, connections: JoinSet::new() };
        tokio::spawn(async move {
            let _ = end.send(accept.run(asked).await);
        });
        Ok(Self { name, address, drain, ended, grace })
    }

    /// The label in logs and metrics.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it listens: the real port, also if any was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes no more connections, asks Mux callers to go (Tdrain), lets calls in flight finish; what is left after
    /// `grace` is cut off. Returns how many connections that were.
    pub async fn drain(self, grace: Duration) -> usize {
        let _ = self.grace.send(grace);
        self.drain.begin();
        self.ended.await.unwrap_or(0)
    }
}

fn open(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

struct Accept<S> {
    socket: TcpListener,
    room: usize,
    peers: Option<Arc<Peers>>,
    shared: Arc<Shared<S>>,
    stats: Arc<ListenerStats>,
    connections: JoinSet<()>,
}

impl<S: Serve> Accept<S> {
    /// Takes connections until it is asked to end within some time; returns how many had to be cut off then.
    async fn run(mut self, mut asked: oneshot::Receiver<Duration>) -> usize {
        let grace = loop {
            tokio::select! {
                grace = &mut asked => break grace.unwrap_or_default(),
                Some(_) = self.connections.join_next() => {}
                accepted = self.socket.accept() => match accepted {
                    Ok((io, peer)) => self.take(io, peer),
                    Err(error) => {
                        tracing::warn!(listener = &*self.stats.label, %error, "cannot take a connection");
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        };
        drop(self.socket);
        let all = async { while self.connections.join_next().await.is_some() {} };
        if timeout(grace, all).await.is_ok() {
            return 0;
        }
        let left = self.connections.len();
        self.connections.shutdown().await;
        left
    }

    fn take(&mut self, io: TcpStream, peer: SocketAddr) {
        if self.connections.len() >= self.room {
            return self.refuse("connections");
        }
        let guest = self.peers.as_ref().map(|peers| peers.enter(peer.ip()));
        if matches!(guest, Some(None)) {
            return self.refuse("connections_per_peer");
        }
        // Fails only if the peer has gone already; the first read will tell.
        let _ = io.set_nodelay(true);
        keep_short(&io);
        keep_alive(&io);
        let counted = self.stats.connection();
        let shared = Arc::clone(&self.shared);
        self.connections.spawn(async move {
            let _open = (counted, guest);
            shared.serve(io, peer).await;
        });
    }

    /// The connection is closed when it is dropped: nothing was spent on it.
    fn refuse(&self, cause: &'static str) {
        self.stats.refused.add_one();
        self.stats.limited.add_one(cause);
    }
}
