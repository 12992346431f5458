//! The file namer over real directories. The clock is real, as the events are; nothing waits longer than it must.

use super::*;
use crate::names::addr::Addr;
use crate::names::namer::Named;
use crate::names::namers::dns::{Found, Resolve};
use async_trait::async_trait;
use muxgate_wire::name::NameTree;
use std::fs;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

struct OneHost;

#[async_trait]
impl Resolve for OneHost {
    async fn resolve(&self, host: &str) -> Found {
        match host {
            "web.test" => Found::Ips(vec!["192.0.2.7".parse().unwrap()], Instant::now()),
            _ => Found::Neg,
        }
    }
}

fn namer(root: &FilePath) -> Fs {
    Fs::new(Path::parse("/#/fs").unwrap(), root, Hosts::new(OneHost))
}

fn with(files: &[(&str, &str)]) -> (TempDir, Fs) {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let file = folder.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
    }
    let fs = namer(folder.path());
    (folder, fs)
}

fn live(fs: &Fs, path: &str) -> watch::Receiver<Answer> {
    match fs.lookup(&Path::parse(path).unwrap()) {
        Lookup::Live(answer) => answer,
        fixed => panic!("{fixed:?}"),
    }
}

fn addr(answer: &watch::Receiver<Answer>) -> watch::Receiver<Addr> {
    match &*answer.borrow() {
        Answer::Ok(NameTree::Leaf(Named::Bound(bound))) => bound.addr.clone(),
        other => panic!("{other:?}"),
    }
}

fn shown(answer: &watch::Receiver<Answer>) -> String {
    match &*answer.borrow() {
        Answer::Ok(tree) => tree.to_string(),
        other => format!("{other:?}"),
    }
}

fn members(addr: &watch::Receiver<Addr>) -> String {
    match &*addr.borrow() {
        Addr::Bound(all) => all.iter().map(|e| e.addr.to_string()).collect::<Vec<_>>().join(" "),
        other => format!("{other:?}"),
    }
}

/// Waits until what is watched looks like this.
async fn until<T>(watch: &mut watch::Receiver<T>, look: fn(&watch::Receiver<T>) -> String, want: &str) {
    let wait = async {
        while look(watch) != want {
            watch.changed().await.unwrap();
        }
    };
    if timeout(Duration::from_secs(20), wait).await.is_err() {
        panic!("still {}, not {want}", look(watch));
    }
}

#[tokio::test]
async fn a_name_is_the_file_and_the_rest_is_residual() {
    let (_folder, fs) =
        with(&[("web", "192.0.2.1 80"), ("a/b/c", "192.0.2.2 80 * 0.5"), ("empty", "# none\n")]);
    for (asked, found) in [
        ("/#/fs/web", "/#/fs/web"),
        ("/#/fs/web/v1/x", "/#/fs/web + /v1/x"),
        ("/#/fs/a/b/c/d", "/#/fs/a/b/c + /d"),
        ("/#/fs/a/b", "~"),
        ("/#/fs/absent", "~"),
        ("/#/fs", "~"),
    ] {
        assert_eq!(shown(&live(&fs, asked)), found, "{asked}");
    }
    assert_eq!(members(&addr(&live(&fs, "/#/fs/web"))), "192.0.2.1:80");
    assert_eq!(members(&addr(&live(&fs, "/#/fs/empty"))), "", "no members is not negative");
    let Addr::Bound(all) = addr(&live(&fs, "/#/fs/a/b/c")).borrow().clone() else { panic!() };
    assert_eq!(all[0].weight, 0.5);
}

#[tokio::test]
async fn nothing_outside_of_the_root_is_reached() {
    let (folder, _) =
        with(&[("secret", "192.0.2.1 80"), ("names/web", "192.0.2.1 80"), ("names/.hidden", "192.0.2.1 80")]);
    let fs = namer(&folder.path().join("names"));
    let absolute = folder.path().join("secret");
    let absolute = Path::parse("/#/fs").unwrap().child(absolute.to_str().unwrap().as_bytes()).unwrap();
    for asked in [
        "/#/fs/../secret",
        r"/#/fs/\x2e\x2e\x2fsecret",
        r"/#/fs/\x2e\x2e/secret",
        r"/#/fs/web\x2f..\x2f..\x2fsecret",
        r"/#/fs/web\x00",
        "/#/fs/./web",
        "/#/fs/.hidden",
        absolute.as_str(),
    ] {
        assert_eq!(shown(&live(&fs, asked)), "~", "{asked}");
    }
}

#[tokio::test]
async fn a_file_appears_changes_is_replaced_and_goes() {
    let (folder, fs) = with(&[]);
    let mut answer = live(&fs, "/#/fs/web/x");
    assert_eq!(shown(&answer), "~");
    fs::write(folder.path().join("web"), "192.0.2.1 80").unwrap();
    until(&mut answer, shown, "/#/fs/web + /x").await;
    let mut held = addr(&answer);
    until(&mut held, members, "192.0.2.1:80").await;
    fs::write(folder.path().join("web"), "192.0.2.2 80").unwrap();
    until(&mut held, members, "192.0.2.2:80").await;
    fs::write(folder.path().join(".web.new"), "192.0.2.3 80").unwrap();
    fs::rename(folder.path().join(".web.new"), folder.path().join("web")).unwrap();
    until(&mut held, members, "192.0.2.3:80").await;
    fs::remove_file(folder.path().join("web")).unwrap();
    until(&mut answer, shown, "~").await;
    until(&mut held, members, "Neg").await;
    // Whoever still holds the addresses sees it come back.
    fs::write(folder.path().join("web"), "192.0.2.4 80").unwrap();
    until(&mut held, members, "192.0.2.4:80").await;
    until(&mut answer, shown, "/#/fs/web + /x").await;
    assert!(addr(&answer).same_channel(&held));
}

#[tokio::test]
async fn a_folder_may_appear_later() {
    let (folder, fs) = with(&[]);
    let mut answer = live(&fs, "/#/fs/a/b");
    fs::create_dir(folder.path().join("a")).unwrap();
    fs::write(folder.path().join("a/b"), "192.0.2.1 80").unwrap();
    until(&mut answer, shown, "/#/fs/a/b").await;
}

#[tokio::test]
async fn a_bad_file_keeps_its_last_good_content() {
    let (folder, fs) = with(&[("web", "192.0.2.1 80"), ("bad", "192.0.2.1"), ("other", "192.0.2.1 80")]);
    let (mut web, mut other) = (addr(&live(&fs, "/#/fs/web")), addr(&live(&fs, "/#/fs/other")));
    let bad = members(&addr(&live(&fs, "/#/fs/bad")));
    assert!(bad.starts_with("Failed(") && bad.contains("/bad: line 1: want `host port`"), "{bad}");
    fs::write(folder.path().join("web"), "192.0.2.2 80\nnonsense\n").unwrap();
    let large = "192.0.2.9 80 # large\n".repeat(file::MAX_FILE / 20);
    fs::write(folder.path().join("bad"), large).unwrap();
    fs::write(folder.path().join("other"), "192.0.2.3 80").unwrap();
    until(&mut other, members, "192.0.2.3:80").await;
    assert_eq!(members(&web), "192.0.2.1:80");
    fs::write(folder.path().join("web"), "192.0.2.5 80").unwrap();
    until(&mut web, members, "192.0.2.5:80").await;
    let large = members(&addr(&live(&fs, "/#/fs/bad")));
    assert!(large.contains("more than 500000 bytes"), "{large}");
}

#[tokio::test]
async fn links_that_are_switched_are_followed() {
    let (folder, _) = with(&[("..one/web", "192.0.2.1 80"), ("..two/web", "192.0.2.2 80")]);
    let link = |from: &str, to: &str| std::os::unix::fs::symlink(from, folder.path().join(to)).unwrap();
    link("..one", "..data");
    link("..data/web", "web");
    let fs = namer(folder.path());
    let mut held = addr(&live(&fs, "/#/fs/web"));
    assert_eq!(members(&held), "192.0.2.1:80");
    link("..two", "..new");
    fs::rename(folder.path().join("..new"), folder.path().join("..data")).unwrap();
    until(&mut held, members, "192.0.2.2:80").await;
}

#[tokio::test]
async fn a_missing_root_is_failed_until_it_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("names");
    let fs = namer(&root);
    let mut answer = live(&fs, "/#/fs/web");
    assert!(shown(&answer).starts_with("Failed("), "{}", shown(&answer));
    fs::create_dir(&root).unwrap();
    until(&mut answer, shown, "~").await;
    fs::write(root.join("web"), "192.0.2.1 80").unwrap();
    until(&mut answer, shown, "/#/fs/web").await;
}

#[tokio::test]
async fn host_names_in_a_file_are_followed() {
    let (folder, fs) = with(&[("web", "web.test 80\nnobody.test 80\n192.0.2.1 81")]);
    let mut held = addr(&live(&fs, "/#/fs/web"));
    until(&mut held, members, "192.0.2.1:81 192.0.2.7:80").await;
    fs::write(folder.path().join("web"), "192.0.2.1 81").unwrap();
    until(&mut held, members, "192.0.2.1:81").await;
}

#[tokio::test]
async fn invented_names_are_forgotten() {
    let (_folder, fs) = with(&[]);
    for n in 0..5000 {
        drop(live(&fs, &format!("/#/fs/{n}")));
    }
    assert!(fs.shared.live.len() < 2000, "{}", fs.shared.live.len());
}

#[tokio::test]
async fn a_mark_at_the_start_and_brackets_around_an_address_are_understood() {
    let (_folder, fs) = with(&[("marked", "\u{feff}192.0.2.1 80"), ("six", "[::1] 9000\n2001:db8::1 80")]);
    assert_eq!(members(&addr(&live(&fs, "/#/fs/marked"))), "192.0.2.1:80");
    assert_eq!(members(&addr(&live(&fs, "/#/fs/six"))), "[::1]:9000 [2001:db8::1]:80");
    assert_eq!(&*file::parse(b"[web] 80").unwrap()[0].host, "[web]");
}
