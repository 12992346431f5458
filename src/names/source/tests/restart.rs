//! Answers of the process before.

use super::*;
use crate::outside::kept::Kept;
use tempfile::TempDir;

/// A process that keeps its answers in this folder.
fn house(folder: &TempDir, asks: &str) -> House {
    let kept = Kept::open(folder.path()).unwrap();
    House::with(Env { kept, asks: asks.into(), ..Env::new(Hosts::new(NoHosts)) }, false)
}

/// A process that learns of two names and ends.
async fn before(folder: &TempDir) {
    let house = house(folder, "here");
    house.does(Do::All(vec![("/a", 1), ("/b", 2), ("/unheld", 3)]));
    let (_a, _b) = (house.held("/a", A1).await, house.held("/b", "/#/scripted/b at 2").await);
    house.env.kept.flush().await;
}

/// The same in a runtime of its own: its tasks, which hold on to the file, end with it.
fn once(folder: &TempDir) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.unwrap().block_on(before(folder));
}

/// What happens in the next process.
fn then<F: Future<Output = ()>>(work: impl FnOnce(TempDir) -> F) {
    let folder = tempfile::tempdir().unwrap();
    once(&folder);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.unwrap().block_on(work(folder));
}

#[test]
fn with_the_source_down_kept_answers_serve_until_it_is_back() {
    then(|folder| async move {
        let house = house(&folder, "here");
        let mut a = house.held("/a", "pending").await;
        house.does(Do::Fail("the wire is cut"));
        until(&mut a, A1).await;
        let b = house.held("/b", "/#/scripted/b at 2").await;
        house.wait("/unheld", CUT).await;
        house.wait("/never", CUT).await;
        let said = standing(&b).explain().unwrap();
        assert!(said.starts_with("served from the answer kept on disk 0 s ago since 0 s: "), "{said}");
        house.does(Do::All(vec![("/a", 7)]));
        until(&mut a, "/#/scripted/a at 7").await;
        secs(20).await;
        assert_eq!(now(&b), "/#/scripted/b at 2", "it came back without it: doubted");
        secs(20).await;
        assert_eq!(now(&b), "neg");
        assert_eq!(house.env.registry.discovery("/#/scripted").restored.get(), 2);
    });
}

#[test]
fn a_name_first_wanted_when_the_source_is_back_and_empty_is_doubted_too() {
    then(|folder| async move {
        let house = house(&folder, "here");
        let _never = house.look("/never");
        house.does(Do::Fail("the wire is cut"));
        house.does(Do::All(vec![]));
        secs(1).await;
        let mut a = house.held("/a", A1).await;
        secs(28).await;
        assert_eq!(now(&a), A1);
        until(&mut a, "neg").await;
    });
}

#[test]
fn a_source_that_does_not_answer_is_as_good_as_down() {
    then(|folder| async move {
        let house = house(&folder, "here");
        let began = Instant::now();
        let mut a = house.look("/a");
        until(&mut a, A1).await;
        assert_eq!(began.elapsed().as_secs(), params::FIRST_ANSWER.as_secs());
    });
}

#[test]
fn a_source_that_answers_is_believed_and_what_is_gone_is_forgotten() {
    then(|folder| async move {
        let house = house(&folder, "here");
        house.does(Do::All(vec![]));
        house.wait("/a", "neg").await;
        house.env.kept.flush().await;
        assert_eq!(house.env.kept.get("/#/scripted here", b" /a").map(|_| ()), None);
        assert!(house.env.kept.get("/#/scripted here", b"/ /b").is_some());
    });
}

#[test]
fn what_was_kept_of_another_system_is_not_used() {
    then(|folder| async move {
        let house = house(&folder, "there");
        let mut a = house.look("/a");
        house.does(Do::Fail("the wire is cut"));
        until(&mut a, CUT).await;
    });
}
