//! What the fuzzer has kept, and the recorded bytes of the reference implementations, run again.

use muxgate_properties::TARGETS;
use std::fs;
use std::path::{Path, PathBuf};

/// Most files of a target: what they reach is what counts, and every test run pays for them.
const MOST: usize = 120;

fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries
        .map(|entry| {
            let path = entry.unwrap().path();
            let bytes = fs::read(&path).unwrap();
            (path, bytes)
        })
        .collect()
}

#[track_caller]
fn replay(target: &str) {
    let (_, run) = TARGETS.iter().find(|(name, _)| *name == target).expect("a target of that name");
    let files = corpus(target);
    assert!((10..=MOST).contains(&files.len()), "{} files for {target}", files.len());
    for (path, bytes) in files {
        println!("{}", path.display());
        run(&bytes);
    }
}

#[test]
fn mux() {
    replay("mux");
}

#[test]
fn thrift() {
    replay("thrift");
}

#[test]
fn translate() {
    replay("translate");
}

#[test]
fn names() {
    replay("names");
}

#[test]
fn client_session() {
    replay("client_session");
}

#[test]
fn server_session() {
    replay("server_session");
}
