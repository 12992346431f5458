//! Names that somebody invented.

use super::*;

fn watched(house: &House) -> usize {
    house.env.watched.to_json()[0]["watched"].as_u64().unwrap() as usize
}

#[tokio::test(start_paused = true)]
async fn an_invented_name_leaves_nothing_behind() {
    let house = House::new();
    house.does(Do::All(vec![("/a", 1)]));
    let _a = house.held("/a", A1).await;
    for n in 0..100 {
        house.wait(&format!("/x{n}"), "neg").await;
    }
    settle().await;
    let shown = house.env.watched.to_json();
    assert_eq!(shown[0]["subjects"][0]["names"], 1, "{shown}");
}

#[tokio::test(start_paused = true)]
async fn invented_subjects_linger_but_not_many_of_them() {
    let house = House::with(Env::new(Hosts::new(NoHosts)), true);
    for n in 0..2 * params::MAX_LINGERING {
        drop(house.look(&format!("/x{n}")));
    }
    settle().await;
    let lingering = watched(&house);
    assert!((1..=params::MAX_LINGERING).contains(&lingering), "{lingering}");
    secs(params::LINGER.as_secs() + 1).await;
    assert_eq!(watched(&house), 0);
    assert_eq!(house.env.registry.discovery("/#/scripted").subjects.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_subject_wanted_again_in_time_is_still_watched() {
    let house = House::new();
    house.does(Do::All(vec![("/a", 1)]));
    house.wait("/a", A1).await;
    secs(params::LINGER.as_secs() - 1).await;
    house.wait("/a", A1).await;
    secs(params::LINGER.as_secs() - 1).await;
    house.wait("/a", A1).await;
    assert_eq!(house.seen.follows.load(Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn too_many_members_are_cut_off() {
    let many = (0..params::MAX_MEMBERS + 5).map(|n| Member::new("127.0.0.1", n as u16)).collect::<Vec<_>>();
    let env = Env::new(Hosts::new(NoHosts));
    let common = Arc::new(Common::new(path("/#/scripted"), &env));
    let subject = Subject::new(Path::empty(), common);
    let hold = subject.hold(&path("/a")).unwrap();
    Says::new(&subject).all([(path("/a"), many)]);
    let belief::Belief::Members(addr) = &*hold.belief.borrow() else { panic!() };
    let Addr::Bound(endpoints) = &*addr.borrow() else { panic!() };
    assert_eq!(endpoints.len(), params::MAX_MEMBERS);
}
