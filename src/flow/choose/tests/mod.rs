//! The room alone, with scripted endpoints behind it and time that stands still.

mod balance;
mod cluster;
mod requeue;

use super::*;
use crate::names::{Addr, EndpointAddr};
use bytes::Bytes;
use muxgate_rpc::{Failure, Flags, Payload, Purse, Request, Response, Serve, Status, Svc, Why};
use muxgate_wire::name::Path;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

const EWMA: Balancer = Balancer::PeakEwma { decay: Duration::from_secs(10) };

fn addr(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn request() -> Request {
    Request::new(Payload::opaque(Bytes::new()), Instant::now(), None)
}

fn paying(purse: &Arc<Purse>) -> Request {
    let mut request = request();
    request.local.purse = Some(Arc::clone(purse));
    request
}

/// What a scripted endpoint does with a call.
#[derive(Clone, Debug)]
enum Mode {
    Answer,
    Fail(Why, Flags),
    Hang,
}

/// A scripted endpoint; the test and its `Svc` share it.
#[derive(Debug)]
struct Node {
    mode: Mutex<Mode>,
    takes: Mutex<Duration>,
    status: Mutex<Status>,
    calls: AtomicUsize,
    /// (attempt, tried) of each call.
    seen: Mutex<Vec<(u32, Vec<SocketAddr>)>>,
}

impl Node {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            mode: Mutex::new(Mode::Answer),
            takes: Mutex::new(Duration::ZERO),
            status: Mutex::new(Status::Open),
            calls: AtomicUsize::new(0),
            seen: Mutex::new(Vec::new()),
        })
    }

    fn is(&self, status: Status) {
        *self.status.lock() = status;
    }

    fn does(&self, mode: Mode) {
        *self.mode.lock() = mode;
    }

    fn takes(&self, time: Duration) {
        *self.takes.lock() = time;
    }

    fn calls(&self) -> usize {
        self.calls.load(SeqCst)
    }
}

struct Played(Arc<Node>);

impl Serve for Played {
    async fn call(&self, request: &mut Request) -> Result<Response, Failure> {
        self.0.calls.fetch_add(1, SeqCst);
        self.0.seen.lock().push((request.local.attempt, request.local.tried.clone()));
        let (takes, mode) = (*self.0.takes.lock(), self.0.mode.lock().clone());
        if !takes.is_zero() {
            tokio::time::sleep(takes).await;
        }
        match mode {
            Mode::Answer => Ok(Response::nothing()),
            Mode::Fail(why, flags) => Err(Failure::new(why, "scripted").with(flags)),
            Mode::Hang => std::future::pending().await,
        }
    }

    fn status(&self) -> Status {
        *self.0.status.lock()
    }
}

/// Endpoints by address, made on demand; the last seen service of each is held weakly through its node.
#[derive(Default)]
struct Stage {
    nodes: Mutex<HashMap<SocketAddr, Arc<Node>>>,
    built: AtomicUsize,
}

impl Stage {
    fn node(&self, addr: SocketAddr) -> Arc<Node> {
        Arc::clone(self.nodes.lock().entry(addr).or_insert_with(Node::new))
    }
}

impl Build for Arc<Stage> {
    fn build(&self, _: &Path, addr: SocketAddr) -> Svc {
        self.built.fetch_add(1, SeqCst);
        Svc::new(Played(self.node(addr)))
    }
}

#[derive(Default)]
struct Counted {
    requeues: AtomicUsize,
    exhausted: AtomicUsize,
    members: Mutex<Vec<(usize, usize, usize)>>,
}

impl Events for Counted {
    fn requeue(&self, _: &Failure) {
        self.requeues.fetch_add(1, SeqCst);
    }

    fn budget_exhausted(&self) {
        self.exhausted.fetch_add(1, SeqCst);
    }

    fn members(&self, size: usize, added: usize, removed: usize) {
        self.members.lock().push((size, added, removed));
    }
}

/// A cluster with its strings.
struct Scene {
    cluster: Arc<Cluster>,
    stage: Arc<Stage>,
    members: watch::Sender<Addr>,
    events: Arc<Counted>,
}

impl Scene {
    fn new(balancer: Balancer, members: Addr) -> Self {
        let stage = Arc::new(Stage::default());
        let events = Arc::new(Counted::default());
        let (sender, receiver) = watch::channel(members);
        let parts = Parts {
            id: Path::default(),
            params: Params { balancer },
            binding: Duration::from_secs(10),
            members: receiver,
            build: Arc::new(Arc::clone(&stage)),
            events: Arc::clone(&events) as Arc<dyn Events>,
        };
        Self { cluster: Arc::new(Cluster::seeded(parts, 1)), stage, members: sender, events }
    }

    fn of(ports: std::ops::Range<u16>) -> Self {
        Self::new(Balancer::LeastLoaded, known(ports))
    }

    fn node(&self, port: u16) -> Arc<Node> {
        self.stage.node(addr(port))
    }

    /// Says what discovery says, and lets the cluster hear it.
    async fn say(&self, members: Addr) {
        self.members.send_replace(members);
        tokio::task::yield_now().await;
    }

    fn in_flight(&self) -> u32 {
        self.cluster.endpoints().iter().map(|(endpoint, _)| endpoint.in_flight()).sum()
    }
}

fn known(ports: std::ops::Range<u16>) -> Addr {
    weighted(ports.map(|port| (addr(port), 1.0)))
}

/// A set with these weights.
fn weighted(list: impl IntoIterator<Item = (SocketAddr, f64)>) -> Addr {
    Addr::bound(list.into_iter().map(|(addr, weight)| EndpointAddr { addr, weight }))
}
