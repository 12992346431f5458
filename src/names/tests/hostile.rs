//! Tables made to hurt: neither the stack nor the clock suffers, and the algebra holds for any table.

use super::fake::{Fake, namers, path};
use crate::names::resolve::{MAX_CHAIN, MAX_LOOKUPS};
use crate::names::{Answer, Book, Lookup, Namer, Namers, Read, State, Why, delegate, resolve};
use muxgate_wire::name::{Dtab, MAX_ENTRIES, MAX_PATH_TEXT, NameTree, Path};
use proptest::prelude::*;
use serde_json::json;
use std::sync::Arc;

/// Asks the namers for each page anew.
struct Now(Namers);

impl Book for Now {
    fn candidates(&self, path: &Path) -> Vec<usize> {
        self.0.candidates(path)
    }

    fn prefix(&self, namer: usize) -> Path {
        self.0.get(namer).unwrap().prefix().clone()
    }

    fn said(&self, namer: usize, path: &Path) -> Option<Answer> {
        match self.0.get(namer)?.lookup(path) {
            Lookup::Fixed(answer) => Some(answer),
            Lookup::Live(answer) => Some(answer.borrow().clone()),
        }
    }
}

fn book() -> Now {
    let table =
        json!({"/a": "leaf", "/b": "leaf", "/gone": "neg", "/wait": "pending", "/err": {"failed": "boom"}});
    Now(namers([Fake::new("/$/ns", &table) as Arc<dyn Namer>]))
}

fn why(table: &str, name: &str) -> Why {
    let table = Dtab::parse(table).unwrap();
    let resolution = resolve(&table, &path(name), &book());
    assert!(resolution.steps.len() <= 2 * MAX_LOOKUPS + 2 && resolution.reads.len() <= MAX_LOOKUPS);
    // The explanation recurses; it must survive whatever the resolution survives.
    let _ = delegate(&table, &path(name), &book());
    match resolution.state {
        State::Failed(failure) => failure.why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn fan_out_is_bounded() {
    assert_eq!(why("/s => /s & /s", "/s"), Why::TooWide);
    assert_eq!(why("/s => /$/ns/a & /s/x & /s/y", "/s"), Why::TooWide);
    // An alternation that always finds nothing: 2^90 ways, of which the limit ends all at once.
    let steps: Vec<_> = (0..90).map(|n| format!("/n{n} => /n{m}/x | /n{m}/y", m = n + 1)).collect();
    assert_eq!(why(&steps.join(";"), "/n0"), Why::TooWide);
    let wide = vec!["/$/ns/a"; 5000].join(" & ");
    assert_eq!(why(&format!("/s => {wide}"), "/s"), Why::TooWide);
    assert_eq!(why(&"/ => /x | /y;".repeat(MAX_ENTRIES), "/s"), Why::TooWide);
}

#[tokio::test]
async fn names_that_grow_are_bounded() {
    assert_eq!(why("/s => /s/more", "/s"), Why::TooDeep);
    let long = "a".repeat(MAX_PATH_TEXT / 2);
    assert_eq!(why(&format!("/s => /s/{long}"), "/s"), Why::TooLong);
    // A long name and a table that has it written out again and again.
    let many = vec!["/$/ns/a"; 400].join(" & ");
    assert_eq!(why(&format!("/s => {many}"), &format!("/s/{long}")), Why::TooWide);
}

#[tokio::test]
async fn deep_trees_on_deep_chains_need_no_stack() {
    // Every step of the chain is a nest of its own, as deep as text may be.
    let nest = |leaf: &str| format!("{}{leaf}{}", "(~ | ".repeat(64), ")".repeat(64));
    let steps: Vec<_> = (0..12).map(|n| format!("/n{n} => {}", nest(&format!("/n{}", n + 1)))).collect();
    let table = Dtab::parse(steps.join(";") + ";/n12 => /$/ns/a").unwrap();
    let resolution = resolve(&table, &path("/n0"), &book());
    assert!(matches!(resolution.state, State::Ok(NameTree::Leaf(_))));
    assert!(delegate(&table, &path("/n0"), &book()).is_err(), "too deep to be shown, but no overflow");

    let steps: Vec<_> = (0..98).map(|n| format!("/n{n} => /$/ns/a & ! & /n{}", n + 1)).collect();
    let table = Dtab::parse(steps.join(";") + ";/n98 => /$/ns/b").unwrap();
    let State::Ok(tree) = resolve(&table, &path("/n0"), &book()).state else {
        panic!("the longest chain is fine")
    };
    assert_eq!(tree.leaves().len(), MAX_CHAIN - 1);
}

#[tokio::test]
async fn each_read_is_listed_once_and_a_missing_page_is_pending() {
    struct Blank;
    impl Book for Blank {
        fn candidates(&self, _: &Path) -> Vec<usize> {
            vec![7]
        }
        fn prefix(&self, _: usize) -> Path {
            Path::empty()
        }
        fn said(&self, _: usize, _: &Path) -> Option<Answer> {
            None
        }
    }
    let table = Dtab::parse("/s => /#/a & /#/a & /#/b").unwrap();
    let resolution = resolve(&table, &path("/s"), &Blank);
    assert_eq!(resolution.state, State::Pending);
    let read = |text| Read { namer: 7, path: path(text) };
    assert_eq!(resolution.reads, [read("/#/a"), read("/#/b")]);
}

fn destinations() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "/$/ns/a",
        "/$/ns/b/x",
        "/$/ns/gone",
        "/$/ns/wait",
        "/$/ns/err",
        "/p",
        "/q",
        "/q/r",
        "~",
        "!",
        "$",
        "/$/nope",
    ]);
    leaf.prop_map(String::from).prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 2..4).prop_map(|all| format!("({})", all.join(" | "))),
            prop::collection::vec(inner, 2..4).prop_map(|all| format!("({})", all.join(" & "))),
        ]
    })
}

fn tables() -> impl Strategy<Value = Dtab> {
    let entry = (prop::sample::select(vec!["/s", "/p", "/q", "/*/r", "/q/r"]), destinations());
    let entry = entry.prop_map(|(prefix, dst)| format!("{prefix} => {dst}"));
    prop::collection::vec(entry, 0..5).prop_map(|entries| Dtab::parse(entries.join(";")).unwrap())
}

thread_local! {
    static RUNTIME: tokio::runtime::Runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
}

/// What `/s` comes to.
fn state(table: &Dtab) -> State {
    RUNTIME.with(|runtime| {
        let _inside = runtime.enter();
        resolve(table, &path("/s"), &book()).state
    })
}

fn with(table: &Dtab, entry: &str) -> Dtab {
    table.concat(&Dtab::parse(entry).unwrap())
}

proptest! {
    #[test]
    fn the_later_entry_wins(table in tables()) {
        let later = state(&with(&table, "/s => /$/ns/a"));
        prop_assert_eq!(&later, &state(&Dtab::parse("/s => /$/ns/a").unwrap()));
        prop_assert_eq!(state(&with(&table, "/s => !")), State::Ok(NameTree::Fail));
    }

    #[test]
    fn a_negative_entry_changes_nothing(table in tables(), neg in prop::sample::select(vec!["~", "/$/ns/gone", "~ & !", "~ | ~"])) {
        match (state(&with(&table, &format!("/s => {neg}"))), state(&table)) {
            // One more entry may be the one that is too many.
            (State::Failed(with), _) if with.why == Why::TooWide => {}
            (with, without) => prop_assert_eq!(with, without),
        }
    }

    #[test]
    fn pending_and_failed_block_what_is_behind(table in tables()) {
        prop_assert_eq!(state(&with(&table, "/s => /$/ns/wait")), State::Pending);
        let failed = matches!(state(&with(&table, "/s => /$/ns/err")), State::Failed(_));
        prop_assert!(failed);
    }

    #[test]
    fn a_result_is_simple_and_without_alternations(table in tables()) {
        if let State::Ok(tree) = state(&table) {
            let shown = format!("{tree:?}");
            prop_assert!(!shown.contains("Alt("));
            prop_assert_eq!(tree.clone().simplify(), tree);
        }
    }
}
