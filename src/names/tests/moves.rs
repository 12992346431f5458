//! Names that move, over the file namer: field case BC-16 at the level of names.

use super::fake::{NoHosts, namers, path};
use crate::names::namers::dns::Hosts;
use crate::names::namers::fs::Fs;
use crate::names::{Base, BindState, Binder, Binding, Bound, Namer};
use muxgate_wire::name::{Dtab, NameTree, shares};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// The share of traffic of each id; nothing if the name has no answer.
fn split(tree: &NameTree<Bound>, share: f64, into: &mut BTreeMap<String, f64>) {
    match tree {
        NameTree::Leaf(bound) => *into.entry(bound.to_string()).or_default() += share,
        NameTree::Union(branches) => {
            let weights: Vec<_> = branches.iter().map(|branch| branch.weight).collect();
            for (branch, part) in branches.iter().zip(shares(&weights)) {
                split(&branch.tree, share * part, into);
            }
        }
        _ => {}
    }
}

fn traffic(binding: &Binding) -> BTreeMap<String, f64> {
    let mut all = BTreeMap::new();
    match binding.state() {
        BindState::Bound(tree) => split(&tree, 1.0, &mut all),
        other => panic!("{other:?}"),
    }
    all
}

fn all_of(shares: &[(&str, f64)]) -> BTreeMap<String, f64> {
    shares.iter().map(|(id, share)| (id.to_string(), *share)).collect()
}

async fn changed(watch: &mut watch::Receiver<BindState>) {
    timeout(Duration::from_secs(20), watch.changed()).await.expect("a change").unwrap();
    watch.mark_unchanged();
}

#[tokio::test]
async fn bc_16_a_negative_branch_leaves_the_union_with_its_weight() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("web"), "127.0.0.1 8001\n127.0.0.1 8002\n").unwrap();
    let table = |host: &str| {
        Base::from(Dtab::parse(format!("/srv => /#/fs; /host => {host}; /svc => /host")).unwrap())
    };
    let (base, receiver) = watch::channel(table("/srv & /srv/absent"));
    let fs = Fs::new(path("/#/fs"), folder.path(), Hosts::new(NoHosts));
    let binder = Binder::new(namers([Arc::new(fs) as Arc<dyn Namer>]), receiver);
    let (name, none) = (path("/svc/web"), Dtab::empty());
    let binding = binder.bind(&name, &none);
    let mut watch = binding.watch();

    // First and second: the negative or failing branch is gone, known at once.
    assert_eq!(traffic(&binding), all_of(&[("/#/fs/web", 1.0)]));
    base.send(table("/srv & /$/fail")).unwrap();
    assert_eq!(traffic(&binder.bind(&name, &none)), all_of(&[("/#/fs/web", 1.0)]));

    // Third: no branch is left. The answer is known at once, and says what was tried.
    base.send(table("3 * /srv/absent & 1 * /srv/missing")).unwrap();
    changed(&mut watch).await;
    assert!(matches!(binding.state(), BindState::Bound(tree) if *tree == NameTree::Neg));
    let text = binding.explain();
    assert!(text.starts_with("no such name: /svc/web; tried "), "{text}");
    for tried in [
        "/svc/web",
        "/host/web",
        "/srv/absent/web",
        "/#/fs/absent/web",
        "/srv/missing/web",
        "/#/fs/missing/web",
    ] {
        assert!(text.contains(tried), "{tried} is not in {text}");
    }
    let dry = binder.dry_run(&name, &none, Duration::ZERO).await;
    assert_eq!(dry.state, binding.latest());

    // Fourth: the file appears and goes again.
    base.send(table("/srv & /srv/absent")).unwrap();
    changed(&mut watch).await;
    assert_eq!(traffic(&binding), all_of(&[("/#/fs/web", 1.0)]));
    std::fs::write(folder.path().join("absent"), "127.0.0.1 8003\n").unwrap();
    changed(&mut watch).await;
    let both = all_of(&[("/#/fs/absent + /web", 0.5), ("/#/fs/web", 0.5)]);
    assert_eq!(traffic(&binding), both);
    // The dry run, and a name that has had no call yet, show the same.
    assert_eq!(traffic(&binder.bind(&name, &Dtab::parse("/x => /y").unwrap())), both);
    std::fs::remove_file(folder.path().join("absent")).unwrap();
    changed(&mut watch).await;
    assert_eq!(traffic(&binding), all_of(&[("/#/fs/web", 1.0)]));
}
