//! What comes back empty after an outage.

use super::*;

#[tokio::test(start_paused = true)]
async fn emptiness_without_an_outage_is_believed_at_once() {
    let house = House::new();
    house.does(Do::All(vec![("/a", 1), ("/b", 2)]));
    let mut a = house.held("/a", A1).await;
    house.does(Do::One("/a", None));
    until(&mut a, "neg").await;
    let mut b = house.held("/b", "/#/scripted/b at 2").await;
    house.does(Do::All(vec![]));
    until(&mut b, "neg").await;
}

#[tokio::test(start_paused = true)]
async fn emptiness_after_an_outage_is_doubted_for_the_grace_time() {
    let house = House::new();
    house.does(Do::All(vec![("/a", 1), ("/b", 2)]));
    let (mut a, mut b) = (house.held("/a", A1).await, house.held("/b", "/#/scripted/b at 2").await);
    house.does(Do::Fail("the wire is cut"));
    house.does(Do::All(vec![]));
    secs(1).await;
    house.does(Do::One("/a", None));
    house.does(Do::All(vec![]));
    secs(5).await;
    assert_eq!((now(&a), now(&b)), (A1.into(), "/#/scripted/b at 2".into()));
    assert!(standing(&a).explain().unwrap().contains("doubted"));
    assert_eq!(house.env.watched.to_json()[0]["subjects"][0]["doubted"].as_array().unwrap().len(), 2);
    let began = Instant::now();
    house.does(Do::One("/b", Some(3)));
    until(&mut a, "neg").await;
    let waited = began.elapsed().as_secs();
    assert!((20..30).contains(&waited), "{waited}");
    assert_eq!(now(&b), "/#/scripted/b at 3");
    secs(60).await;
    assert_eq!(now(&b), "/#/scripted/b at 3");
    house.does(Do::One("/b", None));
    until(&mut b, "neg").await;
    assert_eq!(house.env.registry.discovery("/#/scripted").doubts.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn another_outage_begins_the_doubt_anew() {
    let house = House::new();
    house.does(Do::All(vec![("/a", 1)]));
    let mut a = house.held("/a", A1).await;
    house.does(Do::Fail("the wire is cut"));
    house.does(Do::All(vec![]));
    secs(20).await;
    house.does(Do::Fail("the wire is cut"));
    secs(60).await;
    assert_eq!(now(&a), A1);
    // Between the outage and the first whole report, nothing is taken away.
    house.does(Do::One("/a", None));
    secs(60).await;
    assert_eq!(now(&a), A1);
    house.does(Do::All(vec![]));
    secs(29).await;
    assert_eq!(now(&a), A1);
    until(&mut a, "neg").await;
}
