//! A port: takes connections, bounded in number, until it is drained.

use super::connection::Shared;
use super::events::Counted;
use super::{Edge, Params};
use crate::observe::ListenerStats;
use muxgate_rpc::Serve;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Connections that the kernel keeps for us until we take them.
const BACKLOG: i32 = 1024;
/// Pause after the system refused to give us a connection: usually there are no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A port that is open.
pub struct Listener {
    name: String,
    address: SocketAddr,
    drain: CancellationToken,
    connections: TaskTracker,
    abort: CancellationToken,
}

impl Listener {
    /// Opens the port and begins to take connections. Must be called on a runtime.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub fn bind<S: Serve>(params: Params, stats: Arc<ListenerStats>, edge: Edge<S>) -> io::Result<Self> {
        let socket = open(params.address)?;
        let address = socket.local_addr()?;
        let name = params.name.clone();
        let room = Arc::new(Semaphore::new(params.max_connections));
        let shared = Arc::new(Shared::new(params, edge, Arc::new(Counted(Arc::clone(&stats)))));
        let drain = shared.drain.clone();
        let abort = CancellationToken::new();
        let connections = TaskTracker::new();
        let accept =
            Accept { socket, room, shared, stats, abort: abort.clone(), connections: connections.clone() };
        tokio::spawn(accept.run());
        Ok(Self { name, address, drain, connections, abort })
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
        self.drain.cancel();
        self.connections.close();
        if timeout(grace, self.connections.wait()).await.is_ok() {
            return 0;
        }
        let left = self.connections.len();
        self.abort.cancel();
        self.connections.wait().await;
        left
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
    room: Arc<Semaphore>,
    shared: Arc<Shared<Edge<S>>>,
    stats: Arc<ListenerStats>,
    abort: CancellationToken,
    connections: TaskTracker,
}

impl<S: Serve> Accept<S> {
    async fn run(self) {
        loop {
            let accepted = tokio::select! {
                () = self.shared.drain.cancelled() => return,
                accepted = self.socket.accept() => accepted,
            };
            match accepted {
                Ok((io, peer)) => self.take(io, peer),
                Err(error) => {
                    tracing::warn!(listener = &*self.stats.label, %error, "cannot take a connection");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn take(&self, io: TcpStream, peer: SocketAddr) {
        let Ok(permit) = Arc::clone(&self.room).try_acquire_owned() else {
            self.stats.refused.add_one();
            return;
        };
        // Fails only if the peer has gone already; the first read will tell.
        let _ = io.set_nodelay(true);
        let counted = self.stats.connection();
        let shared = Arc::clone(&self.shared);
        let abort = self.abort.clone();
        self.connections.spawn(async move {
            let _open = (permit, counted);
            tokio::select! {
                () = abort.cancelled() => {}
                () = shared.serve(io, peer) => {}
            }
        });
    }
}
