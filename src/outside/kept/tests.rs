use super::*;

fn value(text: &'static str) -> Option<Bytes> {
    Some(Bytes::from_static(text.as_bytes()))
}

fn got(kept: &Kept, shelf: &str, key: &str) -> Option<Bytes> {
    kept.get(shelf, key.as_bytes()).map(|(value, _)| value)
}

#[tokio::test]
async fn what_is_put_is_there_at_once_and_after_a_restart() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let kept = Kept::open(folder.path())?;
    kept.put("a", b"x", value("1"));
    kept.put("a", b"x", value("2"));
    kept.put("a", b"gone", value("1"));
    kept.put("b", b"x", value("other shelf"));
    assert_eq!(got(&kept, "a", "x"), value("2"));
    kept.flush().await;
    assert_eq!(got(&kept, "a", "x"), value("2"));
    kept.put("a", b"gone", None);
    assert_eq!(got(&kept, "a", "gone"), None);
    assert!(Kept::open(folder.path()).is_err_and(|why| why.contains("in use")));
    drop(kept);
    let kept = Kept::open(folder.path())?;
    assert_eq!(got(&kept, "a", "x"), value("2"));
    assert_eq!(got(&kept, "b", "x"), value("other shelf"));
    assert_eq!(got(&kept, "a", "gone"), None);
    Ok(())
}

#[tokio::test]
async fn a_damaged_file_is_moved_aside() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let kept = Kept::open(folder.path())?;
    kept.put("a", b"x", value("1"));
    drop(kept);
    for damage in [vec![7_u8; 5000], Vec::from(*b"redb")] {
        std::fs::write(folder.path().join("kept.redb"), &damage).map_err(|error| error.to_string())?;
        let kept = Kept::open(folder.path())?;
        assert_eq!(got(&kept, "a", "x"), None);
        let aside = std::fs::read(folder.path().join("kept.redb.damaged"));
        assert_eq!(aside.map_err(|error| error.to_string())?, damage);
    }
    Ok(())
}

#[tokio::test]
async fn nowhere_remembers_nothing() {
    let kept = Kept::nowhere();
    kept.put("a", b"x", value("1"));
    kept.flush().await;
    assert_eq!(got(&kept, "a", "x"), None);
}

#[tokio::test]
async fn a_value_beyond_the_limit_takes_the_old_one_away() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let kept = Kept::open(folder.path())?;
    kept.put("a", b"x", value("1"));
    kept.put("a", b"x", Some(vec![0; MAX_VALUE + 1].into()));
    kept.flush().await;
    assert_eq!(got(&kept, "a", "x"), None);
    Ok(())
}
