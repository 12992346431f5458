//! A source that says nothing: is nothing new, or is it not there?

use super::*;

#[tokio::test(start_paused = true)]
async fn an_unknown_name_is_negative_only_if_the_source_is_there() {
    let house = House::new();
    house.does(Do::All(vec![("/a", 1)]));
    let _a = house.held("/a", A1).await;
    house.wait("/new", "neg").await;
    assert_eq!(house.seen.checks.load(Relaxed), 0);
    secs(4).await;
    house.wait("/b", "neg").await;
    house.wait("/c", "neg").await;
    assert_eq!(house.seen.checks.load(Relaxed), 1, "shared while it is fresh");
    secs(4).await;
    house.says_to_checks(Some(Err("the wire is cut")));
    let mut d = house.look("/d");
    assert_eq!(now(&d), "pending");
    until(&mut d, CUT).await;
    house.wait("/a", A1).await;
    secs(10).await;
    assert!(house.seen.follows.load(Relaxed) > 1, "it is followed anew");
}

#[tokio::test(start_paused = true)]
async fn a_check_that_hangs_is_an_outage() {
    let house = House::new();
    house.does(Do::All(vec![("/a", 1)]));
    let _a = house.held("/a", A1).await;
    secs(4).await;
    house.says_to_checks(None);
    let began = Instant::now();
    let mut d = house.look("/d");
    d.wait_for(|answer| shown(answer).starts_with("failed")).await.unwrap();
    assert_eq!(began.elapsed(), params::CHECK_WITHIN);
}

#[tokio::test(start_paused = true)]
async fn a_silent_source_is_checked_and_one_that_lives_is_not() {
    let house = House::new();
    house.does(Do::All(vec![("/a", 1)]));
    let mut d = house.held("/d", "neg").await;
    for _ in 0..20 {
        secs(2).await;
        house.does(Do::Alive);
    }
    settle().await;
    assert_eq!(house.seen.checks.load(Relaxed), 0);
    secs(35).await;
    let checks = house.seen.checks.load(Relaxed);
    assert!((3..=4).contains(&checks), "{checks}");
    assert_eq!(now(&d), "neg");
    house.says_to_checks(Some(Err("the wire is cut")));
    until(&mut d, CUT).await;
}
