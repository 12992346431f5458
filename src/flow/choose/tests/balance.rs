//! Picks: weights, ranks, load.

use super::*;
use proptest::prelude::*;

struct Table {
    balance: Balance,
    nodes: Vec<Arc<Node>>,
}

fn table(balancer: &Balancer, weights: &[f64]) -> Table {
    let balance = Balance::new(balancer, 42);
    let nodes: Vec<_> = weights.iter().map(|_| Node::new()).collect();
    let members = nodes.iter().zip(weights).enumerate().map(|(index, (node, weight))| {
        let svc = Svc::new(Played(Arc::clone(node)));
        (Arc::new(Endpoint::new(addr(index as u16), svc, balancer)), *weight)
    });
    balance.replace(members.collect());
    Table { balance, nodes }
}

impl Table {
    /// Share of each node in so many picks.
    fn shares(&self, picks: usize, tried: &[SocketAddr]) -> Vec<f64> {
        let mut counts = vec![0.0; self.nodes.len()];
        for _ in 0..picks {
            let endpoint = self.balance.pick(tried).expect("an endpoint");
            counts[usize::from(endpoint.addr().port())] += 1.0 / picks as f64;
        }
        counts
    }

    async fn call(&self) {
        self.balance.pick(&[]).expect("an endpoint").call(&mut request()).await.expect("an answer");
    }
}

fn near(shares: &[f64], wanted: &[f64]) -> bool {
    shares.iter().zip(wanted).all(|(share, wanted)| (share - wanted).abs() < 0.02)
}

#[tokio::test(start_paused = true)]
async fn weights_are_shares_of_idle_endpoints() {
    for scale in [1.0, 1e-9, 1e300] {
        let table = table(&Balancer::LeastLoaded, &[scale, 2.0 * scale, 0.0, 7.0 * scale]);
        let shares = table.shares(20_000, &[]);
        assert!(near(&shares, &[0.1, 0.2, 0.0, 0.7]), "{shares:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn weights_hold_when_latencies_are_alike_and_calls_overlap() {
    for balancer in [Balancer::LeastLoaded, EWMA] {
        let table = Arc::new(table(&balancer, &[1.0, 3.0]));
        table.nodes[0].takes(Duration::from_millis(20));
        table.nodes[1].takes(Duration::from_millis(21));
        let workers: Vec<_> = (0..16)
            .map(|_| {
                let table = Arc::clone(&table);
                tokio::spawn(async move {
                    for _ in 0..500 {
                        table.call().await;
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.await.unwrap();
        }
        let share = table.nodes[0].calls() as f64 / 8000.0;
        assert!((0.20..0.30).contains(&share), "{balancer:?}: {share}");
    }
}

#[tokio::test(start_paused = true)]
async fn odd_weights_are_no_trouble() {
    let none = table(&Balancer::LeastLoaded, &[0.0, 0.0]);
    assert!(near(&none.shares(5_000, &[]), &[0.5, 0.5]));
    let odd = table(&Balancer::LeastLoaded, &[f64::NAN, -1.0, f64::INFINITY, 1e-320]);
    assert!(near(&odd.shares(1_000, &[]), &[0.0, 0.0, 0.0, 1.0]));
    let drained = table(&Balancer::LeastLoaded, &[0.0, 1.0, 1.0]);
    drained.nodes[1].is(Status::Doubtful);
    drained.nodes[2].is(Status::Doubtful);
    assert!(near(&drained.shares(1_000, &[]), &[1.0, 0.0, 0.0]), "weight 0 is for when nobody else is open");
    assert!(Balance::new(&EWMA, 1).pick(&[]).is_none());
}

#[tokio::test(start_paused = true)]
async fn one_open_endpoint_among_many_dead_is_always_found() {
    let mut weights = vec![1.0; 200];
    for even in [true, false] {
        weights[0] = if even { 1.0 } else { 5.0 };
        let table = table(&EWMA, &weights);
        table.nodes.iter().for_each(|node| node.is(Status::Doubtful));
        table.nodes[77].is(Status::Open);
        assert_eq!(table.shares(500, &[])[77..78].iter().sum::<f64>().round(), 1.0);
    }
}

#[tokio::test(start_paused = true)]
async fn the_open_ones_among_many_dead_share_alike() {
    let table = table(&Balancer::LeastLoaded, &[1.0; 100]);
    table.nodes.iter().skip(4).for_each(|node| node.is(Status::Doubtful));
    let shares = table.shares(20_000, &[]);
    assert!(near(&shares[..4], &[0.25; 4]), "{:?}", &shares[..4]);
}

#[tokio::test(start_paused = true)]
async fn all_dead_is_panic_and_all_are_used() {
    let table = table(&Balancer::LeastLoaded, &[1.0; 4]);
    table.nodes.iter().for_each(|node| node.is(Status::Doubtful));
    let shares = table.shares(10_000, &[]);
    assert!(near(&shares, &[0.25; 4]), "{shares:?}");
}

#[tokio::test(start_paused = true)]
async fn busy_is_the_last_resort_and_closed_is_none() {
    let table = table(&Balancer::LeastLoaded, &[1.0; 3]);
    table.nodes[0].is(Status::Busy);
    table.nodes[1].is(Status::Doubtful);
    table.nodes[2].is(Status::Closed);
    assert_eq!(table.shares(100, &[])[1].round(), 1.0);
    assert_eq!(table.shares(100, &[addr(1)])[1].round(), 1.0, "rather again than a busy one");
    table.nodes[1].is(Status::Closed);
    assert_eq!(table.shares(100, &[])[0].round(), 1.0);
    assert_eq!(table.balance.status(), Status::Busy);
    table.nodes[0].is(Status::Closed);
    assert!(table.balance.pick(&[]).is_none());
    assert_eq!(table.balance.status(), Status::Closed);
}

#[tokio::test(start_paused = true)]
async fn tried_endpoints_are_avoided_while_there_are_others() {
    let table = table(&Balancer::LeastLoaded, &[1.0, 1.0, 1.0, 5.0]);
    let shares = table.shares(1_000, &[addr(3), addr(0), addr(9)]);
    assert_eq!((shares[0], shares[3]), (0.0, 0.0));
    let all: Vec<_> = (0..4).map(addr).collect();
    assert!(table.balance.pick(&all).is_some());
}

#[tokio::test(start_paused = true)]
async fn the_less_loaded_of_two_is_taken() {
    let table = table(&Balancer::LeastLoaded, &[1.0; 3]);
    table.nodes[1].does(Mode::Hang);
    let members = table.balance.members();
    let mut slow = request();
    let mut held = Box::pin(members[1].0.call(&mut slow));
    assert!(futures_util::poll!(&mut held).is_pending());
    assert_eq!(table.shares(1_000, &[])[1], 0.0);
    drop(held);
    assert!(table.shares(1_000, &[])[1] > 0.2);
}

#[tokio::test(start_paused = true)]
async fn two_unequal_endpoints_are_always_compared() {
    for loaded in 0..2 {
        let table = table(&Balancer::LeastLoaded, &[1.0, 3.0]);
        table.nodes[loaded].does(Mode::Hang);
        let members = table.balance.members();
        let mut slow = request();
        let mut held = Box::pin(members[loaded].0.call(&mut slow));
        assert!(futures_util::poll!(&mut held).is_pending());
        assert_eq!(table.shares(1_000, &[])[loaded], 0.0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_endpoint_gets_less_by_latency_and_recovers() {
    let table = table(&EWMA, &[1.0; 3]);
    table.nodes.iter().for_each(|node| node.takes(Duration::from_millis(2)));
    for _ in 0..300 {
        table.call().await;
    }
    table.nodes[0].takes(Duration::from_millis(200));
    let before = table.nodes[0].calls();
    for _ in 0..3_000 {
        table.call().await;
    }
    let slow = table.nodes[0].calls() - before;
    assert!(slow <= 3, "one slow answer counts at once: {slow} of 3000");
    table.nodes[0].takes(Duration::from_millis(2));
    let before = table.nodes[0].calls();
    tokio::time::advance(Duration::from_secs(60)).await;
    for _ in 0..3_000 {
        table.call().await;
    }
    let recovered = table.nodes[0].calls() - before;
    assert!(recovered > 300, "{recovered} of 3000");
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_without_history_gets_one_call_until_it_answers() {
    let table = table(&EWMA, &[1.0; 2]);
    table.nodes[1].takes(Duration::from_millis(5));
    table.nodes[0].does(Mode::Hang);
    let members = table.balance.members();
    members[1].0.call(&mut request()).await.unwrap();
    let fresh = table.balance.pick(&[]).unwrap();
    assert_eq!(fresh.addr(), addr(0), "nothing is known against it");
    let mut slow = request();
    let mut first = Box::pin(fresh.call(&mut slow));
    assert!(futures_util::poll!(&mut first).is_pending());
    for _ in 0..1_000 {
        assert_eq!(table.balance.pick(&[]).unwrap().addr(), addr(1));
        table.call().await;
    }
    assert_eq!(table.nodes[0].calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn failures_cost_and_are_forgotten() {
    for balancer in [Balancer::LeastLoaded, EWMA] {
        let table = table(&balancer, &[1.0; 2]);
        let members = table.balance.members();
        for (endpoint, _) in &members {
            endpoint.call(&mut request()).await.unwrap();
        }
        table.nodes[0].does(Mode::Fail(Why::ConnectionLost, Flags::NONE));
        members[0].0.call(&mut request()).await.unwrap_err();
        assert_eq!(table.shares(1_000, &[])[0], 0.0, "{balancer:?}");
        tokio::time::advance(Duration::from_secs(6)).await;
        assert!(table.shares(1_000, &[])[0] > 0.2, "{balancer:?}");
        members[0].0.call(&mut request()).await.unwrap_err();
        table.nodes[0].does(Mode::Answer);
        for _ in 0..3 {
            members[0].0.call(&mut request()).await.unwrap();
        }
        assert_eq!(members[0].0.failing(), 0.0, "three answers clear one failure");
    }
}

#[tokio::test(start_paused = true)]
async fn what_says_nothing_about_the_endpoint_costs_nothing() {
    let table = table(&Balancer::LeastLoaded, &[1.0]);
    let endpoint = table.balance.pick(&[]).unwrap();
    for (why, flags) in [
        (Why::Cancelled, Flags::NONE),
        (Why::Nack, Flags::IGNORABLE),
        (Why::BadRequest, Flags::NONE),
        (Why::Expired, Flags::NONE),
        (Why::Draining, Flags::NONE),
    ] {
        table.nodes[0].does(Mode::Fail(why, flags));
        let failure = endpoint.call(&mut request()).await.unwrap_err();
        assert_eq!(failure.from(), Some(addr(0)));
        assert_eq!(endpoint.failing(), 0.0, "{why:?}");
    }
    for why in [Why::Timeout, Why::Connect, Why::Nack, Why::Upstream] {
        table.nodes[0].does(Mode::Fail(why, Flags::NONE));
        let before = endpoint.failing();
        endpoint.call(&mut request()).await.unwrap_err();
        assert!(endpoint.failing() > before, "{why:?}");
    }
}

fn statuses() -> impl Strategy<Value = Status> {
    prop_oneof![Just(Status::Open), Just(Status::Doubtful), Just(Status::Busy), Just(Status::Closed)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A pick is never worse than the best there is: the order of ranks, said a second time and naively.
    #[test]
    fn the_best_rank_is_always_taken(
        nodes in proptest::collection::vec((statuses(), any::<bool>(), 0u8..3), 0..12),
        seed in any::<u64>(),
    ) {
        let place = |status: Status, tried: bool| match (tried, status) {
            (_, Status::Closed) => None,
            (false, Status::Open) => Some(0),
            (false, Status::Doubtful) => Some(1),
            (true, Status::Open) => Some(2),
            (true, Status::Doubtful) => Some(3),
            (false, Status::Busy) => Some(4),
            (true, Status::Busy) => Some(5),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let _entered = runtime.enter();
        let balance = Balance::new(&EWMA, seed);
        balance.replace(nodes.iter().enumerate().map(|(index, (status, _, weight))| {
            let node = Node::new();
            node.is(*status);
            let endpoint = Endpoint::new(addr(index as u16), Svc::new(Played(node)), &EWMA);
            (Arc::new(endpoint), f64::from(*weight))
        }).collect());
        let tried: Vec<_> = (0..).zip(&nodes).filter(|(_, node)| node.1).map(|(index, _)| addr(index)).collect();
        let best = nodes.iter().filter_map(|(status, tried, _)| place(*status, *tried)).min();
        for _ in 0..20 {
            let picked = balance.pick(&tried).map(|endpoint| {
                let (status, tried, _) = nodes[usize::from(endpoint.addr().port())];
                place(status, tried).unwrap()
            });
            prop_assert_eq!(picked, best);
        }
    }
}
