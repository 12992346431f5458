use super::super::conformance::{self, Handle, change, shown};
use super::super::{Expect, MAX_NAMESPACES, Storage, StorageError};
use super::{Embedded, FILE};
use futures_util::future::join_all;
use std::sync::Arc;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[tokio::test]
async fn it_does_what_every_backend_must() {
    let folder = folder();
    let storage: Handle = Arc::new(Embedded::open(folder.path()).unwrap());
    conformance::all(&storage, &storage, "t").await;
    conformance::history_is_cut(&storage, "long").await;
}

#[tokio::test]
async fn all_is_there_after_a_restart_and_versions_go_on() {
    let folder = folder();
    let inside = folder.path().join("made/on/the/way");
    let storage = Embedded::open(&inside).unwrap();
    storage.write(change("a", Some("/a=>/b"), Expect::Absent)).await.unwrap();
    let gone = storage.write(change("b", Some("/a=>/b"), Expect::Absent)).await.unwrap();
    let last = storage.write(change("b", None, Expect::Version(gone))).await.unwrap();
    let (tables, history) = (storage.mirror().borrow().clone(), storage.history("b", 9).await.unwrap());
    drop(storage);
    let storage = Embedded::open(&inside).unwrap();
    assert_eq!(*storage.mirror().borrow(), tables);
    assert_eq!(storage.history("b", 9).await.unwrap(), history);
    assert!(storage.write(change("b", Some(""), Expect::Absent)).await.unwrap() > last);
}

#[tokio::test]
async fn a_second_opener_is_told_so() {
    let folder = folder();
    let storage = Embedded::open(folder.path()).unwrap();
    let error = Embedded::open(folder.path()).unwrap_err();
    assert!(error.ends_with("another process has this store open"), "{error}");
    drop(storage);
    Embedded::open(folder.path()).unwrap();
}

#[tokio::test]
async fn a_file_of_something_else_is_left_alone() {
    let folder = folder();
    let file = folder.path().join(FILE);
    std::fs::write(&file, vec![b'x'; 10_000]).unwrap();
    let error = Embedded::open(folder.path()).unwrap_err();
    assert!(error.starts_with(&file.display().to_string()), "{error}");
    assert_eq!(std::fs::read(&file).unwrap(), vec![b'x'; 10_000]);
}

#[tokio::test]
async fn namespaces_are_bounded_and_what_was_deleted_is_forgotten_in_the_end() {
    let folder = folder();
    let storage = Embedded::open(folder.path()).unwrap();
    let name = |at: usize| format!("n{at}");
    let write_all = async |from: usize, dtab, expect| {
        let writes = (from..from + MAX_NAMESPACES).map(|at| storage.write(change(&name(at), dtab, expect)));
        join_all(writes).await.into_iter().collect::<Result<Vec<_>, _>>().unwrap();
    };
    write_all(0, Some("/a=>/b"), Expect::Absent).await;
    let more = storage.write(change("more", Some(""), Expect::Anything)).await;
    assert!(matches!(&more, Err(StorageError::Refused(why)) if why.contains("10000")), "{more:?}");
    storage.write(change("n5", Some(""), Expect::Present)).await.unwrap();
    write_all(0, None, Expect::Present).await;
    write_all(MAX_NAMESPACES, Some(""), Expect::Absent).await;
    assert_eq!(storage.history("n0", 9).await.unwrap().len(), 2);
    storage.write(change(&name(MAX_NAMESPACES), None, Expect::Present)).await.unwrap();
    storage.write(change("more", Some(""), Expect::Absent)).await.unwrap();
    assert_eq!(storage.history("n0", 9).await.unwrap(), []);
    assert_eq!(storage.history("n5", 9).await.unwrap().len(), 3);
    shown(storage.mirror(), "more", |table| table.is_some()).await;
}
