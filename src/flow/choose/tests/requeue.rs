//! Another endpoint, at once, where nothing was done yet.

use super::super::cluster::MAX_REQUEUES;
use super::*;
use muxgate_rpc::Deadline;

const REFUSED: Mode = Mode::Fail(Why::Connect, Flags::NONE);
const NACKED: Mode = Mode::Fail(Why::Nack, Flags::NONE);

fn rich() -> Arc<Purse> {
    Arc::new(Purse::new(0.2, 1_000, Duration::from_secs(10)))
}

#[tokio::test(start_paused = true)]
async fn a_refused_call_goes_elsewhere_at_once() {
    let scene = Scene::of(0..3);
    scene.node(0).does(REFUSED);
    scene.node(1).does(NACKED);
    let purse = rich();
    for _ in 0..100 {
        scene.cluster.call(&mut paying(&purse)).await.unwrap();
    }
    let refused = scene.node(0).calls() + scene.node(1).calls();
    assert!(refused > 0);
    assert_eq!(scene.events.requeues.load(SeqCst), refused);
    assert_eq!(purse.balance(), 10_000 - refused as u64);
    assert_eq!(scene.node(2).calls(), 100);
    for (attempt, tried) in scene.node(2).seen.lock().iter() {
        assert_eq!(*attempt as usize, tried.len());
    }
}

#[tokio::test(start_paused = true)]
async fn only_what_is_proved_safe_is_requeued() {
    let modes = [
        Mode::Fail(Why::ConnectionLost, Flags::NONE),
        Mode::Fail(Why::Timeout, Flags::NONE),
        Mode::Fail(Why::Nack, Flags::NON_RETRYABLE),
    ];
    for mode in modes {
        let scene = Scene::of(0..2);
        (0..2).for_each(|port| scene.node(port).does(mode.clone()));
        let purse = rich();
        scene.cluster.call(&mut paying(&purse)).await.unwrap_err();
        assert_eq!((scene.node(0).calls() + scene.node(1).calls(), purse.balance()), (1, 10_000));
    }
    let unwritten = Scene::of(0..2);
    unwritten.node(0).does(Mode::Fail(Why::ConnectionLost, Flags::RETRYABLE));
    for _ in 0..20 {
        unwritten.cluster.call(&mut paying(&rich())).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_purse_there_is_one_attempt() {
    let scene = Scene::of(0..2);
    (0..2).for_each(|port| scene.node(port).does(NACKED));
    let failure = scene.cluster.call(&mut request()).await.unwrap_err();
    assert!(failure.is_retryable());
    assert_eq!(scene.node(0).calls() + scene.node(1).calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_empty_purse_makes_the_failure_final() {
    let scene = Scene::of(0..3);
    (0..3).for_each(|port| scene.node(port).does(NACKED));
    let purse = Arc::new(Purse::new(0.0, 0, Duration::from_secs(10)));
    let failure = scene.cluster.call(&mut paying(&purse)).await.unwrap_err();
    assert_eq!(failure.why(), Why::Nack);
    assert!(failure.flags().has(Flags::NON_RETRYABLE) && !failure.is_retryable());
    assert_eq!(scene.events.exhausted.load(SeqCst), 1);
    assert_eq!(scene.events.requeues.load(SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn one_call_spends_a_fifth_of_the_purse_and_at_most_25() {
    for (per_second, requeues) in [(1, 2), (2, 4), (1_000, MAX_REQUEUES as usize)] {
        let scene = Scene::of(0..100);
        (0..100).for_each(|port| scene.node(port).does(NACKED));
        let purse = Arc::new(Purse::new(0.0, per_second, Duration::from_secs(10)));
        let failure = scene.cluster.call(&mut paying(&purse)).await.unwrap_err();
        assert!(failure.flags().has(Flags::NON_RETRYABLE));
        assert_eq!(scene.events.requeues.load(SeqCst), requeues);
    }
}

/// BC-08, the part that is decided here: when all endpoints are closed ports, the caller is told that nothing was done.
#[tokio::test(start_paused = true)]
async fn bc_08_all_endpoints_refused_stays_safe_to_retry() {
    let scene = Scene::of(0..2);
    scene.node(0).does(REFUSED);
    let purse = Arc::new(Purse::default());
    for _ in 0..100 {
        purse.deposit(tokio::time::Instant::now());
        scene.cluster.call(&mut paying(&purse)).await.unwrap();
    }
    assert_eq!(scene.node(1).calls(), 100);
    scene.node(1).does(REFUSED);
    // As accrual marks them after a refused connection.
    (0..2).for_each(|port| scene.node(port).is(Status::Doubtful));
    let before = scene.node(0).calls() + scene.node(1).calls();
    let failure = scene.cluster.call(&mut paying(&purse)).await.unwrap_err();
    assert_eq!(failure.flags(), Flags::RETRYABLE.with(Flags::REJECTED));
    assert_eq!(scene.node(0).calls() + scene.node(1).calls() - before, 2, "each once");
}

#[tokio::test(start_paused = true)]
async fn a_lone_open_endpoint_is_tried_once_more() {
    let scene = Scene::of(0..1);
    let node = scene.node(0);
    node.does(Mode::Fail(Why::ConnectionLost, Flags::RETRYABLE));
    let failure = scene.cluster.call(&mut paying(&rich())).await.unwrap_err();
    assert!(failure.is_retryable());
    assert_eq!(node.calls(), 2);
    node.is(Status::Doubtful);
    scene.cluster.call(&mut paying(&rich())).await.unwrap_err();
    assert_eq!(node.calls(), 3);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_tried_after_the_deadline() {
    let scene = Scene::of(0..2);
    for port in 0..2 {
        scene.node(port).does(NACKED);
        scene.node(port).takes(Duration::from_secs(1));
    }
    let purse = rich();
    let mut request = paying(&purse);
    request.ctx.deadline = Some(Deadline::at(Instant::now() + Duration::from_millis(500)));
    let failure = scene.cluster.call(&mut request).await.unwrap_err();
    assert_eq!(failure.why(), Why::Nack);
    assert_eq!(scene.node(0).calls() + scene.node(1).calls(), 1);
    assert_eq!(purse.balance(), 10_000);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_comes_back_avoids_what_it_tried() {
    let scene = Scene::of(0..4);
    for _ in 0..200 {
        let mut request = paying(&rich());
        request.local.tried = vec![addr(0), addr(2)];
        scene.cluster.call(&mut request).await.unwrap();
    }
    assert_eq!((scene.node(0).calls(), scene.node(2).calls()), (0, 0));
}
