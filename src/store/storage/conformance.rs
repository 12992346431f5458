//! What every backend must do, for the tests of each: run [`all`] on it.
//!
//! `here` and `there` are two handles on the same backend, as two store processes have them; a backend that only one
//! process can open gives the same handle twice. Each check has a namespace of its own, whose name begins with `prefix`,
//! so a backend that is shared by tests does.

use super::{Expect, MAX_HISTORY, Mirror, Past, Storage, StorageError, Table, Version, Write};
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// How long a change may take to reach a mirror, on a machine that builds beside it.
const WITHIN: Duration = Duration::from_secs(30);

/// Writers that race.
const RACERS: usize = 8;

/// A handle.
pub type Handle = Arc<dyn Storage>;

/// Every check but [`history_is_cut`], which writes more than a thousand times.
///
/// # Panics
/// If the backend does not conform.
pub async fn all(here: &Handle, there: &Handle, prefix: &str) {
    conditions_hold(here, &format!("{prefix}-conditions")).await;
    versions_grow_over_deletes(here, there, &format!("{prefix}-grow")).await;
    mirrors_follow(here, there, &format!("{prefix}-mirror")).await;
    history_tells_all(here, there, &format!("{prefix}-history")).await;
    one_racer_wins(here, there, &format!("{prefix}-race")).await;
    nothing_is_lost(here, there, &format!("{prefix}-lost")).await;
}

/// A change by `test`, at a time of its own.
pub fn change(namespace: &str, dtab: Option<&str>, expect: Expect) -> Write {
    Write {
        namespace: namespace.into(),
        dtab: dtab.map(Arc::from),
        expect,
        who: "test".into(),
        when_ms: 1_700_000_000_123,
        why: "to see what happens".into(),
    }
}

/// Waits until a mirror shows of a namespace what `look` wants.
///
/// # Panics
/// If it does not within half a minute.
pub async fn shown(
    mut mirror: watch::Receiver<Mirror>,
    namespace: &str,
    look: impl Fn(Option<&Table>) -> bool,
) {
    let waiting = mirror.wait_for(|mirror| mirror.known && look(mirror.tables.get(namespace)));
    let seen = timeout(WITHIN, waiting).await.map(|seen| seen.is_ok());
    assert_eq!(seen, Ok(true), "the mirror does not show {namespace} as it should be");
}

/// Each condition is kept, and each error is the right one.
///
/// # Panics
/// If not.
pub async fn conditions_hold(here: &Handle, namespace: &str) {
    let write = async |dtab, expect| here.write(change(namespace, dtab, expect)).await;
    assert_eq!(write(None, Expect::Anything).await, Err(StorageError::Missing));
    assert_eq!(write(Some("/a=>/b"), Expect::Present).await, Err(StorageError::Missing));
    assert_eq!(write(Some("/a=>/b"), Expect::Version(Version(1))).await, Err(StorageError::Missing));
    let first = write(Some("/a=>/b"), Expect::Absent).await.expect("created");
    assert_eq!(write(Some("/a=>/c"), Expect::Absent).await, Err(StorageError::Exists));
    let second = write(Some("/a=>/c"), Expect::Present).await.expect("updated");
    assert_eq!(write(Some("/a=>/d"), Expect::Version(first)).await, Err(StorageError::Differs));
    assert_eq!(write(None, Expect::Version(first)).await, Err(StorageError::Differs));
    let third = write(Some("/a=>/d"), Expect::Version(second)).await.expect("updated by version");
    let fourth = write(Some("/a=>/e"), Expect::Anything).await.expect("overwritten");
    assert_eq!(write(None, Expect::Version(third)).await, Err(StorageError::Differs));
    write(None, Expect::Version(fourth)).await.expect("deleted by version");
    assert_eq!(write(None, Expect::Anything).await, Err(StorageError::Missing));
    assert_eq!(write(Some("/a=>/b"), Expect::Version(fourth)).await, Err(StorageError::Missing));
}

/// A version never comes back.
///
/// # Panics
/// If it does.
pub async fn versions_grow_over_deletes(here: &Handle, there: &Handle, namespace: &str) {
    let mut before = Version(0);
    for round in 0..3 {
        let storage = if round % 2 == 0 { here } else { there };
        let made = storage.write(change(namespace, Some("/a=>/b"), Expect::Absent)).await.expect("created");
        let same =
            storage.write(change(namespace, Some("/a=>/b"), Expect::Version(made))).await.expect("again");
        let gone = storage.write(change(namespace, None, Expect::Present)).await.expect("deleted");
        assert!(before < made && made < same && same < gone, "{before:?} {made:?} {same:?} {gone:?}");
        before = gone;
    }
}

/// What one handle writes, both mirrors show, with the version that the write gave.
///
/// # Panics
/// If not.
pub async fn mirrors_follow(here: &Handle, there: &Handle, namespace: &str) {
    for text in ["", "/a=>/b", "# ü\n/svc => /$/inet/127.0.0.1/80 ;\n"] {
        let version =
            here.write(change(namespace, Some(text), Expect::Anything)).await.expect("it is written");
        for storage in [here, there] {
            let want = Table { dtab: text.into(), version };
            shown(storage.mirror(), namespace, |table| table == Some(&want)).await;
        }
    }
    there.write(change(namespace, None, Expect::Present)).await.expect("deleted");
    for storage in [here, there] {
        shown(storage.mirror(), namespace, |table| table.is_none()).await;
        assert_eq!(storage.mirror().borrow().outage, None);
    }
}

/// Every change is remembered with all that was said of it, newest first.
///
/// # Panics
/// If not.
pub async fn history_tells_all(here: &Handle, there: &Handle, namespace: &str) {
    assert_eq!(here.history(namespace, 10).await, Ok(vec![]), "of what never was");
    let mut want = Vec::new();
    for (at, dtab) in [Some("/a=>/b"), Some("/a=>/c"), None, Some("/a=>/d")].into_iter().enumerate() {
        let mut write = change(namespace, dtab, Expect::Anything);
        (write.who, write.why) = (format!("who \"{at}\" ü"), format!("why,\n{at}\t😀"));
        write.when_ms += at as u64;
        let Write { who, when_ms, why, .. } = write.clone();
        let version = here.write(write).await.expect("it is written");
        want.insert(0, Past { version, dtab: dtab.map(Arc::from), who, when_ms, why });
    }
    for storage in [here, there] {
        assert_eq!(storage.history(namespace, 10).await.as_ref(), Ok(&want));
        assert_eq!(storage.history(namespace, 2).await.as_deref(), Ok(&want[..2]));
    }
}

/// Of several that expect the same version, one wins; the others are told so.
///
/// # Panics
/// If not.
pub async fn one_racer_wins(here: &Handle, there: &Handle, namespace: &str) {
    let mut expect = Expect::Absent;
    for _ in 0..3 {
        let racers = (0..RACERS).map(|at| {
            let storage = if at % 2 == 0 { here } else { there };
            storage.write(change(namespace, Some(&format!("/racer=>/{at}")), expect))
        });
        let done = join_all(racers).await;
        let (won, lost): (Vec<_>, Vec<_>) = done.into_iter().partition(Result::is_ok);
        assert_eq!(won.len(), 1, "{won:?} {lost:?}");
        let told = if expect == Expect::Absent { StorageError::Exists } else { StorageError::Differs };
        assert!(lost.iter().all(|lost| *lost == Err(told.clone())), "{lost:?}");
        expect = Expect::Version(won.into_iter().find_map(Result::ok).expect("one has won"));
    }
}

/// Writers that add to what they have read, and try again when they were overtaken, lose nothing.
///
/// # Panics
/// If something is lost.
pub async fn nothing_is_lost(here: &Handle, there: &Handle, namespace: &str) {
    const EACH: usize = 5;
    here.write(change(namespace, Some(""), Expect::Absent)).await.expect("created");
    let add = async |storage: &Handle, entry: String| loop {
        let history = storage.history(namespace, 1).await.expect("history can be read");
        let now = history.first().expect("it was created");
        let text = format!("{}{entry};", now.dtab.as_deref().expect("nobody deletes it"));
        match storage.write(change(namespace, Some(&text), Expect::Version(now.version))).await {
            Ok(version) => break version,
            Err(StorageError::Differs) => {}
            Err(error) => panic!("{error}"),
        }
    };
    let writers = (0..RACERS / 2).map(|writer| {
        let storage = if writer % 2 == 0 { here } else { there };
        let add = &add;
        async move {
            for at in 0..EACH {
                add(storage, format!("/{writer}/{at}=>/x")).await;
            }
        }
    });
    join_all(writers).await;
    for storage in [here, there] {
        shown(storage.mirror(), namespace, |table| {
            let entries = table.map_or(0, |table| table.dtab.matches(';').count());
            entries == EACH * RACERS / 2
        })
        .await;
    }
}

/// No more than [`MAX_HISTORY`] changes of a namespace are kept: the newest.
///
/// # Panics
/// If not.
pub async fn history_is_cut(here: &Handle, namespace: &str) {
    let text = |at: usize| format!("/at=>/{at}");
    for at in 0..MAX_HISTORY + 20 {
        let done = here.write(change(namespace, Some(&text(at)), Expect::Anything)).await;
        assert!(done.is_ok(), "{at}: {done:?}");
    }
    let history = here.history(namespace, usize::MAX).await.expect("history can be read");
    assert_eq!(history.len(), MAX_HISTORY);
    assert_eq!(history.first().and_then(|past| past.dtab.as_deref()), Some(&*text(MAX_HISTORY + 19)));
    assert_eq!(history.last().and_then(|past| past.dtab.as_deref()), Some(&*text(20)));
}
