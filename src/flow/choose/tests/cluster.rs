//! Members that come, go and cannot be asked.

use super::*;
use muxgate_rpc::Deadline;

#[tokio::test(start_paused = true)]
async fn a_call_waits_while_nothing_is_known() {
    let scene = Scene::new(Balancer::LeastLoaded, Addr::Pending);
    assert_eq!(scene.cluster.status(), Status::Open);
    let cluster = Arc::clone(&scene.cluster);
    let call = tokio::spawn(async move { cluster.call(&mut request()).await });
    tokio::time::advance(Duration::from_secs(5)).await;
    assert!(!call.is_finished());
    scene.say(known(0..2)).await;
    call.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_wait_ends_with_the_binding_limit_or_the_deadline() {
    let scene = Scene::new(Balancer::LeastLoaded, Addr::Pending);
    let start = Instant::now();
    let failure = scene.cluster.call(&mut request()).await.unwrap_err();
    assert_eq!((failure.why(), start.elapsed().as_secs()), (Why::NameUnavailable, 10));
    let mut hurried = request();
    hurried.ctx.deadline = Some(Deadline::at(Instant::now() + Duration::from_secs(2)));
    let failure = scene.cluster.call(&mut hurried).await.unwrap_err();
    assert_eq!((failure.why(), start.elapsed().as_secs()), (Why::Expired, 12));
}

#[tokio::test(start_paused = true)]
async fn empty_and_negative_are_followed() {
    let scene = Scene::of(0..2);
    scene.cluster.call(&mut request()).await.unwrap();
    for (members, text) in [(known(0..0), "has no endpoints"), (Addr::Neg, "no such host or set")] {
        scene.say(members).await;
        let failure = scene.cluster.call(&mut request()).await.unwrap_err();
        assert_eq!(failure.why(), Why::NoEndpoint);
        assert!(failure.flags().has(Flags::RETRYABLE.with(Flags::REJECTED)));
        assert!(failure.text().contains(text) && failure.text().starts_with(scene.cluster.id().as_str()));
        assert_eq!(scene.cluster.status(), Status::Closed);
    }
    scene.say(known(0..1)).await;
    scene.cluster.call(&mut request()).await.unwrap();
    assert_eq!(*scene.events.members.lock(), [(2, 2, 0), (0, 0, 2), (0, 0, 0), (1, 1, 0)]);
}

#[tokio::test(start_paused = true)]
async fn all_closed_is_no_endpoint() {
    let scene = Scene::of(0..2);
    scene.node(0).is(Status::Closed);
    scene.node(1).is(Status::Closed);
    let failure = scene.cluster.call(&mut request()).await.unwrap_err();
    assert_eq!(failure.why(), Why::NoEndpoint);
    assert!(failure.text().contains("none of the 2"), "{failure}");
}

/// BC-14: "I cannot ask" is not "it is gone".
#[tokio::test(start_paused = true)]
async fn bc_14_a_failed_lookup_keeps_what_was_known() {
    let scene = Scene::of(0..2);
    scene.say(Addr::Failed("store away".into())).await;
    scene.say(Addr::Pending).await;
    scene.cluster.call(&mut request()).await.unwrap();
    let fresh = Scene::new(Balancer::LeastLoaded, Addr::Failed("store away".into()));
    let failure = fresh.cluster.call(&mut request()).await.unwrap_err();
    assert_eq!(failure.why(), Why::NameUnavailable);
    assert!(failure.text().contains("store away"), "{failure}");
    fresh.say(Addr::Pending).await;
    let cluster = Arc::clone(&fresh.cluster);
    let call = tokio::spawn(async move { cluster.call(&mut request()).await });
    tokio::task::yield_now().await;
    fresh.say(known(5..6)).await;
    call.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_address_that_stays_keeps_its_record() {
    let scene = Scene::new(EWMA, known(0..3));
    scene.node(1).takes(Duration::from_millis(30));
    for _ in 0..20 {
        scene.cluster.call(&mut request()).await.unwrap();
    }
    let find =
        |port| scene.cluster.endpoints().into_iter().find(|(it, _)| it.addr() == addr(port)).unwrap().0;
    let before = find(1);
    assert!(before.latency().is_some());
    scene.say(weighted([(addr(1), 9.0), (addr(7), 1.0), (addr(7), 2.0)])).await;
    assert!(Arc::ptr_eq(&before, &find(1)));
    assert_eq!(scene.stage.built.load(SeqCst), 4);
    let weights: Vec<_> = scene.cluster.endpoints().iter().map(|(_, weight)| weight * 9.0).collect();
    assert_eq!(weights, [9.0, 3.0]);
    assert_eq!(scene.events.members.lock().last(), Some(&(2, 1, 2)));
}

#[tokio::test(start_paused = true)]
async fn a_removed_endpoint_gets_no_calls_and_goes_with_its_last_one() {
    let scene = Scene::of(0..1);
    let node = scene.node(0);
    node.takes(Duration::from_secs(3));
    let cluster = Arc::clone(&scene.cluster);
    let call = tokio::spawn(async move { cluster.call(&mut request()).await });
    tokio::task::yield_now().await;
    scene.say(known(1..2)).await;
    for _ in 0..50 {
        scene.cluster.call(&mut request()).await.unwrap();
    }
    assert_eq!(node.calls(), 1);
    // Held by the stage, this test, and the service under the call.
    assert_eq!(Arc::strong_count(&node), 3);
    call.await.unwrap().unwrap();
    assert_eq!(Arc::strong_count(&node), 2);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_cluster_leaves_nothing() {
    let scene = Scene::of(0..1);
    let node = scene.node(0);
    assert_eq!(scene.members.receiver_count(), 1);
    drop(scene.cluster);
    tokio::task::yield_now().await;
    assert_eq!(scene.members.receiver_count(), 0);
    assert_eq!(Arc::strong_count(&node), 2);
}

#[tokio::test(start_paused = true)]
async fn the_set_outlives_its_source() {
    let scene = Scene::of(0..1);
    drop(scene.members);
    tokio::task::yield_now().await;
    scene.cluster.call(&mut request()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_leaves_no_load_and_no_mark() {
    let scene = Scene::new(EWMA, known(0..3));
    (0..3).for_each(|port| scene.node(port).does(Mode::Hang));
    let purse = Arc::new(Purse::default());
    let calls: Vec<_> = (0..100)
        .map(|_| {
            let (cluster, mut request) = (Arc::clone(&scene.cluster), paying(&purse));
            tokio::spawn(async move { cluster.call(&mut request).await })
        })
        .collect();
    tokio::time::advance(Duration::from_millis(1)).await;
    while scene.in_flight() < 100 {
        tokio::task::yield_now().await;
    }
    calls.iter().for_each(tokio::task::JoinHandle::abort);
    for call in calls {
        assert!(call.await.unwrap_err().is_cancelled());
    }
    assert_eq!(scene.in_flight(), 0);
    assert_eq!(purse.balance(), 100);
    for (endpoint, _) in scene.cluster.endpoints() {
        assert_eq!((endpoint.failing(), endpoint.latency()), (0.0, None));
    }
}

#[tokio::test(start_paused = true)]
async fn many_members_are_cut_to_the_bound() {
    let list = (0..20_000u32).map(|n| (SocketAddr::from(([10, 0, (n >> 8) as u8, n as u8], 1)), 1.0));
    let scene = Scene::new(Balancer::LeastLoaded, weighted(list));
    assert_eq!(scene.cluster.endpoints().len(), super::super::cluster::MAX_ENDPOINTS);
}
