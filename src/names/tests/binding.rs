//! Live bindings: who has a task, who ends when, and what is news.

use super::fake::{Fake, namers, path};
use crate::names::{Base, BindState, Binder, Binding, Namer};
use muxgate_wire::name::{Dtab, NameTree};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;

fn dtab(text: &str) -> Dtab {
    Dtab::parse(text).unwrap()
}

fn base_of(text: &str) -> Base {
    dtab(text).into()
}

/// Lets every task run until nothing is left to do.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

fn tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

fn shown(binding: &Binding) -> String {
    match binding.state() {
        BindState::Pending => "pending".into(),
        BindState::Bound(tree) => tree.to_string(),
        BindState::Failed(why) => why,
    }
}

fn fake(table: serde_json::Value) -> (Arc<Fake>, Binder, watch::Sender<Base>) {
    let fake = Fake::new("/#/ns", &table);
    let (base, receiver) = watch::channel(base_of("/svc => /#/ns"));
    let binder = Binder::new(namers([fake.clone() as Arc<dyn Namer>]), receiver);
    (fake, binder, base)
}

#[tokio::test(start_paused = true)]
async fn a_fixed_name_has_no_task_and_still_follows_the_base_table() {
    let (base, receiver) = watch::channel(base_of("/svc => /$/inet/127.0.0.1/80"));
    let binder = Binder::new(namers([]), receiver);
    settle().await;
    let before = tasks();
    let bindings: Vec<_> =
        (0..200).map(|n| binder.bind(&path(&format!("/svc/{n}")), &Dtab::empty())).collect();
    assert_eq!(tasks(), before);
    assert_eq!(shown(&bindings[7]), "/$/inet/127.0.0.1/80 + /7");
    let mut watch = bindings[7].watch();
    base.send(base_of("/svc => /$/inet/127.0.0.1/81")).unwrap();
    settle().await;
    assert!(bindings.iter().enumerate().all(|(n, b)| shown(b) == format!("/$/inet/127.0.0.1/81 + /{n}")));
    assert!(watch.has_changed().unwrap());
    watch.mark_unchanged();
    base.send(base_of("/svc => /$/inet/127.0.0.1/81; /other => !")).unwrap();
    settle().await;
    assert!(!watch.has_changed().unwrap(), "an equal tree is not passed on again");
}

#[tokio::test(start_paused = true)]
async fn a_binding_moves_between_rest_and_task() {
    let (fake, binder, base) = fake(json!({"/x": "leaf"}));
    settle().await;
    let before = tasks();
    let binding = binder.bind(&path("/svc/x"), &Dtab::empty());
    assert_eq!((shown(&binding).as_str(), tasks()), ("/#/ns/x", before + 1));
    base.send(base_of("/svc => /$/nil")).unwrap();
    settle().await;
    assert_eq!((shown(&binding).as_str(), tasks()), ("$", before));
    base.send(base_of("/svc => /#/ns")).unwrap();
    settle().await;
    assert_eq!((shown(&binding).as_str(), tasks()), ("/#/ns/x", before + 1));
    fake.set("/x", json!("neg"));
    settle().await;
    assert_eq!(shown(&binding), "~");
    drop(binding);
    settle().await;
    assert_eq!(tasks(), before, "a dropped binding leaves no task");
}

#[tokio::test(start_paused = true)]
async fn a_fixed_base_table_needs_no_task_at_all() {
    let before = tasks();
    let (base, receiver) = watch::channel(base_of("/svc => /$/inet/127.0.0.1/80 & /$/fail | ~"));
    drop(base);
    let binder = Binder::new(namers([]), receiver);
    let binding = binder.bind(&path("/svc"), &Dtab::empty());
    assert_eq!((shown(&binding).as_str(), tasks()), ("/$/inet/127.0.0.1/80", before));
}

#[tokio::test(start_paused = true)]
async fn a_branch_that_is_no_longer_read_is_let_go() {
    let (fake, binder, _base) = fake(json!({"/x": "neg", "/y": "leaf"}));
    let binding = binder.bind(&path("/svc/x"), &dtab("/svc/x => /#/ns/y; /svc/x => /#/ns/x"));
    assert_eq!(shown(&binding), "/#/ns/y");
    fake.set("/x", json!("leaf"));
    settle().await;
    assert_eq!((shown(&binding).as_str(), fake.asked.load(Ordering::Relaxed)), ("/#/ns/x", 2));
    // Nobody holds /y any more: the namer forgets it with its next news, and is asked anew.
    fake.set("/z", json!("leaf"));
    fake.set("/x", json!("neg"));
    settle().await;
    assert_eq!((shown(&binding).as_str(), fake.asked.load(Ordering::Relaxed)), ("/#/ns/y", 3));
}

#[tokio::test(start_paused = true)]
async fn the_local_table_wins_and_may_hit_the_middle_of_a_chain() {
    let (_fake, binder, _base) = fake(json!({"/x": "leaf", "/staging/x": "leaf", "/only": "leaf"}));
    let local = dtab("/svc => /#/ns/staging");
    assert_eq!(shown(&binder.bind(&path("/svc/x"), &local)), "/#/ns/staging/x");
    assert_eq!(shown(&binder.bind(&path("/svc/only"), &local)), "/#/ns/only");
    assert_eq!(shown(&binder.bind(&path("/svc/x"), &Dtab::empty())), "/#/ns/x");
}

#[tokio::test(start_paused = true)]
async fn an_explanation_names_all_that_was_tried() {
    let (_fake, binder, _base) = fake(json!({"/bad": {"failed": "store is away"}}));
    let local = dtab("/svc => /#/nobody; /svc => /#/ns/a & /mid; /mid => /#/ns/b");
    let binding = binder.bind(&path("/svc/x"), &local);
    assert!(matches!(binding.state(), BindState::Bound(tree) if *tree == NameTree::Neg));
    let text = binding.explain();
    assert!(text.starts_with("no such name: /svc/x; tried /svc/x by /svc=>/#/ns/a & /mid, "), "{text}");
    for tried in [
        "/#/ns/a/x: no such name",
        "/mid/x by /mid=>/#/ns/b",
        "/#/ns/b/x",
        "/#/nobody/x has no entry",
        "/#/ns/x",
    ] {
        assert!(text.contains(tried), "{tried} is not in {text}");
    }
    let failed = binder.bind(&path("/svc/bad"), &Dtab::empty());
    assert_eq!(
        shown(&failed),
        "cannot resolve /svc/bad: /#/ns/bad: store is away; tried /svc/bad by /svc=>/#/ns, /#/ns/bad: failed: store is away"
    );
    let loops = binder.bind(&path("/s"), &dtab("/s => /s/more"));
    assert!(shown(&loops).starts_with("cannot resolve /s: ") && shown(&loops).len() < 1100);
    assert!(shown(&loops).contains("...: too deep") && shown(&loops).ends_with(" more like these"));
    // A loop is told once.
    let round = shown(&binder.bind(&path("/s"), &dtab("/s => /t; /t => /s")));
    assert!(
        round.contains("tried /s by /s=>/t, /t by /t=>/s, ") && round.matches("=>").count() == 2,
        "{round}"
    );
    assert!(round.contains("too deep") && round.ends_with(", and 98 more like these"), "{round}");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_waits_for_an_answer_but_not_for_ever() {
    let (fake, binder, _base) = fake(json!({"/x": "pending"}));
    let (name, none, second) = (path("/svc/x"), Dtab::empty(), Duration::from_secs(1));
    let began = tokio::time::Instant::now();
    let pending = binder.dry_run(&name, &none, second).await;
    assert_eq!((pending.state, began.elapsed() >= second), (crate::names::State::Pending, true));
    let (delegation, ()) = tokio::join!(binder.delegate(&name, &none, second), async {
        settle().await;
        fake.set("/x", json!("neg"));
    });
    assert!(!delegation.unwrap().has_pending());
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_discovery_keeps_the_last_good_tree_and_shows_its_age() {
    let (fake, binder, _base) = fake(json!({"/x": "leaf"}));
    let (known, none) = (binder.bind(&path("/svc/x"), &Dtab::empty()), Dtab::empty());
    assert_eq!(known.stale_since(), None);
    fake.set("/x", json!({"failed": "connection refused"}));
    fake.set("/new", json!({"failed": "connection refused"}));
    settle().await;
    let since = known.stale_since().expect("the tree is stale");
    fake.set("/x", json!("pending"));
    settle().await;
    assert_eq!((shown(&known).as_str(), known.stale_since()), ("/#/ns/x", Some(since)));
    // A name never seen before fails, and says that it could not be asked for.
    assert!(shown(&binder.bind(&path("/svc/new"), &none)).contains("connection refused"));
    fake.set("/x", json!({"tree": "/#/ns/moved"}));
    fake.set("/moved", json!("leaf"));
    settle().await;
    assert_eq!((shown(&known).as_str(), known.stale_since()), ("/#/ns/moved", None));
}
