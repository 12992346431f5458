//! What callers see when endpoints fail: balancer, requeue and accrual together, as numbers.
//!
//! Ten scripted endpoints, one of them failing in no time, an open loop of calls in paused time. Seeds are fixed.

use bytes::Bytes;
use muxgate::flow::choose::{Balancer, Build, Cluster, Params, Parts};
use muxgate::flow::dispatch::{self, accrual::AccrualLayer};
use muxgate::names::Addr;
use muxgate_rpc::{Failure, Flags, Payload, Purse, Request, Response, Serve, Svc, Why};
use muxgate_wire::name::Path;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tower::Layer;

const BALANCERS: [Balancer; 2] =
    [Balancer::LeastLoaded, Balancer::PeakEwma { decay: Duration::from_secs(10) }];

/// One scripted endpoint: while `broken` it fails at once, else it answers in its time.
struct Node {
    broken: AtomicBool,
    calls: AtomicUsize,
    takes: Duration,
    failure: Failure,
}

struct Played(Arc<Node>);

impl Serve for Played {
    async fn call(&self, _: &mut Request) -> Result<Response, Failure> {
        self.0.calls.fetch_add(1, SeqCst);
        if self.0.broken.load(SeqCst) {
            return Err(self.0.failure.clone());
        }
        tokio::time::sleep(self.0.takes).await;
        Ok(Response::nothing())
    }
}

/// Puts accrual, if any, on the scripted endpoints; the port is the index.
struct Stage {
    nodes: Vec<Arc<Node>>,
    accrual: bool,
}

impl Build for Stage {
    fn build(&self, _: &Path, addr: SocketAddr) -> Svc {
        let index = usize::from(addr.port());
        let played = Played(Arc::clone(&self.nodes[index]));
        if !self.accrual {
            return Svc::new(played);
        }
        let layer = AccrualLayer::new(dispatch::Accrual::default(), Arc::new(()));
        Svc::new(layer.seeded(index as u64).layer(played))
    }
}

struct Scene {
    cluster: Arc<Cluster>,
    nodes: Vec<Arc<Node>>,
    purse: Option<Arc<Purse>>,
    _members: watch::Sender<Addr>,
}

impl Scene {
    fn new(balancer: &Balancer, nodes: usize, failure: Failure, accrual: bool, purse: Option<Purse>) -> Self {
        let nodes: Vec<_> = (0..nodes)
            .map(|_| {
                Arc::new(Node {
                    broken: AtomicBool::new(false),
                    calls: AtomicUsize::new(0),
                    takes: Duration::from_millis(5),
                    failure: failure.clone(),
                })
            })
            .collect();
        let list = (0..nodes.len()).map(|port| SocketAddr::from(([127, 0, 0, 1], port as u16)).into());
        let (sender, members) = watch::channel(Addr::bound(list));
        let parts = Parts {
            id: Path::default(),
            params: Params { balancer: balancer.clone() },
            binding: Duration::from_secs(1),
            members,
            build: Arc::new(Stage { nodes: nodes.clone(), accrual }),
            events: Arc::new(()),
        };
        let cluster = Arc::new(Cluster::seeded(parts, 11));
        Self { cluster, nodes, purse: purse.map(Arc::new), _members: sender }
    }

    /// One call a millisecond, whether or not earlier ones are answered. Returns the share that worked.
    async fn load(&self, calls: usize) -> f64 {
        let mut ticks = tokio::time::interval(Duration::from_millis(1));
        let mut running = tokio::task::JoinSet::new();
        for _ in 0..calls {
            ticks.tick().await;
            let mut request = Request::new(Payload::opaque(Bytes::new()), Instant::now(), None);
            request.local.purse.clone_from(&self.purse);
            if let Some(purse) = &self.purse {
                purse.deposit(tokio::time::Instant::now());
            }
            let cluster = Arc::clone(&self.cluster);
            running.spawn(async move { cluster.call(&mut request).await.is_ok() });
        }
        let worked = running.join_all().await.into_iter().filter(|worked| *worked).count();
        worked as f64 / calls as f64
    }

    fn calls(&self) -> Vec<usize> {
        self.nodes.iter().map(|node| node.calls.swap(0, SeqCst)).collect()
    }
}

async fn one_of_ten(failure: &Failure, accrual: bool, purse: fn() -> Option<Purse>, least: f64) {
    for balancer in &BALANCERS {
        let scene = Scene::new(balancer, 10, failure.clone(), accrual, purse());
        scene.nodes[0].broken.store(true, SeqCst);
        let share = scene.load(20_000).await;
        let hit = scene.calls()[0];
        println!(
            "{failure:?}, accrual {accrual}, purse {}: {balancer:?}: {:.3} % of 20000, {hit} at the broken one",
            scene.purse.is_some(),
            share * 100.0
        );
        assert!(share > least, "{balancer:?}: {share}");
        let left: u32 = scene.cluster.endpoints().iter().map(|(endpoint, _)| endpoint.in_flight()).sum();
        assert_eq!(left, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn refused_connections_are_not_seen_by_callers() {
    let refused = Failure::new(Why::Connect, "refused");
    one_of_ten(&refused, true, || Some(Purse::default()), 0.9999).await;
    one_of_ten(&refused, false, || Some(Purse::default()), 0.9999).await;
}

#[tokio::test(start_paused = true)]
async fn nacks_are_not_seen_by_callers() {
    let nack = Failure::new(Why::Nack, "nack");
    one_of_ten(&nack, true, || Some(Purse::default()), 0.9999).await;
    one_of_ten(&nack, false, || Some(Purse::default()), 0.9999).await;
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_repeated_soon_stops_happening() {
    let broken = Failure::new(Why::ConnectionLost, "reset");
    one_of_ten(&broken, true, || Some(Purse::default()), 0.999).await;
    // Cost alone, without accrual and without repeats: still far better than the 90 % of blind turns.
    one_of_ten(&broken, false, || None, 0.995).await;
    one_of_ten(&Failure::new(Why::Upstream, "error"), true, || None, 0.999).await;
}

#[tokio::test(start_paused = true)]
async fn without_a_purse_refusals_show_only_until_the_mark() {
    one_of_ten(&Failure::new(Why::Connect, "refused"), true, || None, 0.999).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_comes_back_gets_its_share_again() {
    for balancer in &BALANCERS {
        for why in [Why::Connect, Why::ConnectionLost] {
            let failure = Failure::new(why, "gone");
            let scene = Scene::new(balancer, 3, failure, true, Some(Purse::default()));
            scene.load(3_000).await;
            scene.calls();
            scene.nodes[1].broken.store(true, SeqCst);
            let share = scene.load(20_000).await;
            let dead = scene.calls()[1];
            scene.nodes[1].broken.store(false, SeqCst);
            // The longest wait after some 20 s of death, and time for its failures to fade.
            scene.load(45_000).await;
            scene.calls();
            assert!(scene.load(5_000).await > 0.9999);
            let back = scene.calls();
            println!(
                "{why:?}, {balancer:?}: {:.3} % while one of three is dead ({dead} calls), then {back:?}",
                share * 100.0
            );
            assert!(share > 0.999, "{balancer:?} {why:?}: {share}");
            assert!(back[1] > 1_000, "{balancer:?} {why:?}: {back:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn all_dead_means_all_are_tried_and_the_first_answer_ends_it() {
    for balancer in &BALANCERS {
        let scene =
            Scene::new(balancer, 3, Failure::new(Why::Connect, "refused"), true, Some(Purse::default()));
        scene.nodes.iter().for_each(|node| node.broken.store(true, SeqCst));
        assert_eq!(scene.load(2_000).await, 0.0);
        let attempts: usize = scene.calls().iter().sum();
        // 20 % and 10 a second over the window: no storm.
        assert!(attempts < 2_000 + 400 + 100 + 100, "{attempts}");
        scene.nodes.iter().for_each(|node| node.broken.store(false, SeqCst));
        assert!(scene.load(2_000).await > 0.9999, "panic finds them before their time is over");
    }
}

#[tokio::test(start_paused = true)]
async fn a_storm_of_refusals_is_bounded_by_the_purse() {
    let nack = Failure::new(Why::Nack, "nack").with(Flags::IGNORABLE);
    let scene =
        Scene::new(&Balancer::LeastLoaded, 10, nack, true, Some(Purse::new(0.2, 0, Duration::from_secs(10))));
    scene.nodes.iter().for_each(|node| node.broken.store(true, SeqCst));
    assert_eq!(scene.load(5_000).await, 0.0);
    let attempts: usize = scene.calls().iter().sum();
    assert!((5_900..=6_001).contains(&attempts), "{attempts}");
}
