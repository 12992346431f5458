//! The commands of the README, word for word.

use super::{Store, folder};
use std::process::Command;

#[test]
fn what_the_readme_shows_is_what_comes_out() {
    let readme =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).expect("README.md");
    let chapter = readme.split("## The dtab store").nth(1).expect("the chapter");
    let block =
        chapter.split("```console\n").nth(1).and_then(|rest| rest.split("```").next()).expect("commands");
    let folder = folder();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let store = runtime.block_on(async { Store::start(folder.path()) });
    let mut commands: Vec<(String, String)> = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push((command.to_owned(), String::new())),
            (None, Some((_, output))) => *output += &format!("{line}\n"),
            (None, None) => panic!("{line}: before any command"),
        }
    }
    assert!(commands.len() >= 10);
    for (command, wanted) in commands {
        let here = command
            .replace("http://127.0.0.1:4180", &store.base)
            .replace("curl -s", "curl -sS --fail-with-body");
        let done = Command::new("bash").args(["-o", "pipefail", "-c", &here]).output().expect("bash");
        let (said, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success(), "{command}\n{said}{errors}");
        assert!(wanted.is_empty() || said.trim_end() == wanted.trim_end(), "{command}\n{said}");
    }
    store.stop();
}
