//! The base table: not known yet, known, replaced, and when it is in force everywhere.

use super::fake::{Fake, namers, path};
use crate::names::{Base, BindState, Binder, Binding, Namer, Origin, Table, Why};
use muxgate_wire::name::Dtab;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

fn known(text: &str, version: &str) -> Base {
    let origin = Origin { namespace: "shop".into(), version: Some(version.into()) };
    Base::Known(Table { dtab: Dtab::parse(text).unwrap(), origin: Some(origin) })
}

fn version(base: &Base) -> Option<String> {
    base.table()?.origin.as_ref()?.version.as_deref().map(str::to_owned)
}

fn bound(binding: &Binding) -> String {
    match binding.state() {
        BindState::Bound(tree) => tree.to_string(),
        other => panic!("{other:?}"),
    }
}

async fn in_force(binder: &Binder, want: &str) {
    let mut in_force = binder.in_force();
    let reached = in_force.wait_for(|base| version(base).as_deref() == Some(want));
    timeout(Duration::from_secs(60), reached).await.expect("in force").unwrap();
}

#[tokio::test(start_paused = true)]
async fn without_a_table_names_are_pending_and_say_why() {
    let (to, base) = watch::channel(Base::Pending("asking http://store".into()));
    let binder = Binder::new(namers([]), base);
    let binding = binder.bind(&path("/svc/x"), &Dtab::empty());
    assert!(matches!(binding.state(), BindState::Pending));
    assert_eq!(binding.explain(), "no table yet: asking http://store");
    to.send(Base::Pending("the store cannot be reached: refused".into())).unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(binding.explain(), "no table yet: the store cannot be reached: refused");
    let tree = binder.delegate(&path("/svc/x"), &Dtab::empty(), Duration::from_secs(1)).await;
    assert!(matches!(tree.unwrap_err().why, Why::NoTable(why) if why.contains("refused")));

    // An explanation that waits gets the table that comes meanwhile.
    let (name, none) = (path("/svc/x"), Dtab::empty());
    let asked = binder.delegate(&name, &none, Duration::from_secs(1));
    let (tree, sent) = tokio::join!(asked, async { to.send(known("/svc => /$/inet/127.0.0.1/80", "v1")) });
    sent.unwrap();
    assert_eq!(tree.unwrap().leaves().count(), 1);
    in_force(&binder, "v1").await;
    assert_eq!(bound(&binding), "/$/inet/127.0.0.1/80 + /x");
}

#[tokio::test(start_paused = true)]
async fn a_table_that_cannot_be_had_is_no_unknown_name_and_a_known_one_stays() {
    let (to, base) = watch::channel(Base::Failed("the store http://store cannot be reached: refused".into()));
    let binder = Binder::new(namers([]), base);
    let binding = binder.bind(&path("/svc/x"), &Dtab::empty());
    let BindState::Failed(why) = binding.state() else { panic!("{:?}", binding.state()) };
    assert_eq!(why, "the store http://store cannot be reached: refused");
    to.send(known("/svc => /$/inet/127.0.0.1/80", "v1")).unwrap();
    in_force(&binder, "v1").await;
    for worse in [Base::Pending("asking".into()), Base::Failed("away".into())] {
        to.send(worse).unwrap();
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(bound(&binding), "/$/inet/127.0.0.1/80 + /x");
        assert_eq!(bound(&binder.bind(&path("/svc/y"), &Dtab::empty())), "/$/inet/127.0.0.1/80 + /y");
        assert_eq!(version(&binder.in_force().borrow()).as_deref(), Some("v1"));
    }
    to.send(known("/svc => /$/nil", "v2")).unwrap();
    in_force(&binder, "v2").await;
    assert_eq!(bound(&binding), "$");
}

#[tokio::test(start_paused = true)]
async fn in_force_means_for_every_binding_with_a_task_or_without() {
    let fake = Fake::new("/#/ns", &json!({"/a": "leaf", "/b": "leaf"}));
    let (to, base) = watch::channel(known("/svc => /#/ns/a", "v1"));
    let binder = Binder::new(namers([fake.clone() as Arc<dyn Namer>]), base);
    let all: Vec<_> = (0..1000).map(|n| binder.bind(&path(&format!("/svc/{n}")), &Dtab::empty())).collect();
    let rest = binder.bind(&path("/other"), &Dtab::empty());
    to.send(known("/svc => /#/ns/b; /other => /$/nil", "v2")).unwrap();
    let mut done = binder.in_force();
    done.changed().await.unwrap();
    assert_eq!(version(&done.borrow()).as_deref(), Some("v2"));
    for (n, binding) in all.iter().enumerate() {
        assert_eq!(bound(binding), format!("/#/ns/b + /{n}"));
    }
    assert_eq!(bound(&rest), "$");
    // Their tasks follow what they read since then.
    fake.set("/b", json!("neg"));
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(all.iter().all(|binding| bound(binding) == "~"));
    assert!(
        all[7].explain().starts_with("no such name: /svc/7 (table shop, version v2); tried "),
        "{}",
        all[7].explain()
    );
}

#[tokio::test(start_paused = true)]
async fn a_namer_that_has_to_be_asked_is_waited_for_but_not_for_ever() {
    let fake = Fake::new("/#/ns", &json!({"/a": "leaf", "/b": "pending", "/c": "pending"}));
    let (to, base) = watch::channel(known("/svc => /#/ns/a", "v1"));
    let binder = Binder::new(namers([fake.clone() as Arc<dyn Namer>]), base);
    let binding = binder.bind(&path("/svc"), &Dtab::empty());
    to.send(known("/svc => /#/ns/b", "v2")).unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    // The old answer serves; the table is not called in force.
    assert_eq!(
        (bound(&binding).as_str(), version(&binder.in_force().borrow()).as_deref()),
        ("/#/ns/a", Some("v1"))
    );
    fake.set("/b", json!("leaf"));
    in_force(&binder, "v2").await;
    assert_eq!(bound(&binding), "/#/ns/b");

    let began = Instant::now();
    to.send(known("/svc => /#/ns/c", "v3")).unwrap();
    in_force(&binder, "v3").await;
    assert!(began.elapsed() >= Duration::from_secs(2));
    // A newer one does not wait for what the older one waited for.
    to.send(known("/svc => /#/ns/c; /more => /$/nil", "v4")).unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let began = Instant::now();
    to.send(known("/svc => /#/ns/a", "v5")).unwrap();
    in_force(&binder, "v5").await;
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn names_in_use_are_those_that_lead_somewhere() {
    let (_to, base) = watch::channel(known("/svc => /$/inet/127.0.0.1/80; /svc/no => /$/fail", "v1"));
    let binder = Binder::new(namers([]), base);
    let names = ["/svc/b", "/svc/a", "/svc/no", "/unknown", "/svc/a"];
    let mut held: Vec<_> = names.iter().map(|name| binder.bind(&path(name), &Dtab::empty())).collect();
    assert_eq!(binder.names(10), [path("/svc/a"), path("/svc/b")]);
    assert_eq!(binder.names(1).len(), 1);
    held.clear();
    assert_eq!(binder.names(10), []);
}
