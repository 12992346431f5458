//! The laws of ARCHITECTURE.md, sections 2 and 10, as a test: it reads the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Longest file, in lines.
const MAX_LINES: usize = 600;
/// Longest `main.rs`.
const MAX_MAIN: usize = 40;
/// The rooms of the flow; what else lies in its folder joins them.
const FLOW: [&str; 6] = ["accept", "address", "admit", "bind", "choose", "dispatch"];

/// Which rooms a room may use. `flow/*` are the rooms of the flow.
fn may_use(room: &str) -> &'static [&'static str] {
    match room {
        "outside" | "observe" => &[],
        "names" => &["outside", "observe"],
        "flow" => &["flow/*", "names", "observe"],
        "config" | "admin" => &["flow/*", "flow", "names", "observe", "outside"],
        "store" => &["config", "names", "observe", "outside"],
        "app" => &["config", "admin", "store", "flow/*", "flow", "names", "observe", "outside"],
        "cli" | "demo" => &[
            "app", "cli", "demo", "config", "admin", "store", "flow/*", "flow", "names", "observe", "outside",
        ],
        flow if flow.starts_with("flow/") => &["names", "observe"],
        other => panic!("a room without a law: {other}"),
    }
}

/// What only the crate in its column may depend on.
const DEPENDENCIES: [(&str, &[&str]); 2] = [
    ("wire", &["bytes", "flate2", "lz4_flex", "twox-hash"]),
    (
        "rpc",
        &[
            "muxgate-wire",
            "tokio",
            "tokio-util",
            "tower",
            "bytes",
            "tracing",
            "rustls",
            "tokio-rustls",
            "x509-parser",
        ],
    ),
];

#[test]
fn rooms_use_only_what_stands_below_them() {
    let mut wrong = Vec::new();
    for (from, to, file) in uses() {
        let allowed =
            may_use(&from).iter().any(|law| *law == to || (*law == "flow/*" && to.starts_with("flow/")));
        if !allowed {
            wrong.push(format!("{file}: {from} uses {to}"));
        }
    }
    wrong.dedup();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn there_is_no_circle_among_rooms() {
    let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (from, to, _) in uses() {
        edges.entry(to.clone()).or_default();
        edges.entry(from).or_default().insert(to);
    }
    assert!(edges.len() > 10, "the rooms are found: {edges:#?}");
    // Rooms that need nothing go, until none is left or all that is left needs each other.
    loop {
        let free: Vec<_> =
            edges.iter().filter(|(_, needs)| needs.is_empty()).map(|(room, _)| room.clone()).collect();
        if free.is_empty() {
            break;
        }
        edges.retain(|room, _| !free.contains(room));
        edges.values_mut().for_each(|needs| needs.retain(|room| !free.contains(room)));
    }
    assert!(edges.is_empty(), "{edges:#?}");
}

#[test]
fn the_wire_knows_no_socket_and_no_clock() {
    for (crate_name, _) in DEPENDENCIES {
        let folder = root().join("crates").join(crate_name);
        for file in sources(&folder.join("src")) {
            for path in paths(&file) {
                let first = path[0].as_str();
                let clock = ["Instant", "SystemTime"].iter().any(|word| path.iter().any(|part| part == word));
                let system = first == "std"
                    && ["net", "thread", "fs", "process"].contains(&path.get(1).map_or("", |p| p));
                let forbidden = match crate_name {
                    "wire" => {
                        clock || system || ["tokio", "tracing", "muxgate_rpc", "muxgate"].contains(&first)
                    }
                    _ => first == "muxgate",
                };
                assert!(!forbidden, "{}: {}", show(&file), path.join("::"));
            }
        }
    }
}

#[test]
fn crates_below_depend_on_little() {
    for (crate_name, allowed) in DEPENDENCIES {
        let text = read(&root().join("crates").join(crate_name).join("Cargo.toml"));
        let section =
            text.split("[dependencies]").nth(1).expect("dependencies").split("\n[").next().unwrap_or("");
        let names = section.lines().filter_map(|line| Some(line.split(['.', ' ', '=']).next()?.trim()));
        for name in names.filter(|name| !name.is_empty() && !name.starts_with('#')) {
            let small = ["arc-swap", "base64", "futures-util", "parking_lot", "slab", "socket2", "foldhash"]
                .contains(&name);
            assert!(
                allowed.contains(&name) || (small && crate_name == "rpc"),
                "{crate_name} depends on {name}"
            );
        }
    }
}

#[test]
fn files_are_short() {
    for file in sources(&root()) {
        let lines = read(&file).lines().count();
        assert!(lines <= MAX_LINES, "{} has {lines} lines", show(&file));
    }
    let main = read(&root().join("src/main.rs")).lines().count();
    assert!(main <= MAX_MAIN, "main.rs has {main} lines");
}

#[test]
fn nothing_is_unsafe_and_locks_are_those_of_parking_lot() {
    for file in sources(&root()) {
        let words = words(&read(&file));
        assert!(!words.iter().any(|word| word == "unsafe"), "{}: unsafe", show(&file));
        for path in paths(&file) {
            let lock = path.starts_with(&["std".into(), "sync".into()])
                && path.last().is_some_and(|last| ["Mutex", "RwLock", "Condvar"].contains(&last.as_str()));
            assert!(!lock, "{}: {}", show(&file), path.join("::"));
        }
    }
}

/// Nothing that depends on the machine it was written on, nothing left for later, no half-done merge, and no test that sleeps.
#[test]
fn nothing_foreign_is_left_in_the_sources() {
    let machine = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];
    let later = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("#[ig", "nore"),
        concat!("#[allow(dead", "_code"),
    ];
    for file in files(&root(), &|file| is_text(file)) {
        let text = read(&file);
        for word in machine {
            assert!(!text.contains(word), "{} has {word}", show(&file));
        }
        let merged = ["<".repeat(7), ">".repeat(7)];
        let is_mark = |line: &str| merged.iter().any(|mark| line.starts_with(mark));
        assert!(!text.lines().any(is_mark), "{} is not merged to its end", show(&file));
        if file.extension().is_some_and(|ext| ext == "rs") {
            for word in later {
                assert!(!text.contains(word), "{} has {word}", show(&file));
            }
            let sleep = concat!("sle", "ep(");
            assert!(
                !file.starts_with(root().join("tests/it")) || !text.contains(sleep),
                "{} sleeps",
                show(&file)
            );
        }
    }
}

#[test]
fn the_readme_says_how_to_see_it_run_and_how_to_test_it() {
    let readme = read(&root().join("README.md"));
    for command in ["cargo run --release -- demo", "scripts/test-all"] {
        assert!(readme.contains(command), "README.md does not mention {command}");
    }
    assert!(root().join("scripts/test-all").exists());
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn show(file: &Path) -> String {
    file.strip_prefix(root()).unwrap_or(file).display().to_string()
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn is_text(file: &Path) -> bool {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let known =
        ["rs", "md", "toml", "yaml", "yml", "json", "html", "css", "js", "thrift", "go", "py", "scala", "sh"];
    known.contains(&name.rsplit('.').next().unwrap_or_default()) || ["test-all", "Dockerfile"].contains(&name)
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    files(folder, &|file| file.extension().is_some_and(|ext| ext == "rs"))
}

/// All files below a folder, hidden ones and what is built left out.
fn files(folder: &Path, wanted: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with('.') || name == "target" {
            continue;
        }
        if path.is_dir() {
            found.extend(files(&path, wanted));
        } else if wanted(&path) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Every use of one room by another: who, whom, where.
fn uses() -> Vec<(String, String, String)> {
    let src = root().join("src");
    let mut found = Vec::new();
    for file in sources(&src) {
        let Some(from) = room(&module(&src, &file)) else { continue };
        for path in paths(&file) {
            if path[0] != "crate" {
                continue;
            }
            if let Some(to) = room(&path[1..]).filter(|to| *to != from) {
                found.push((from.clone(), to, show(&file)));
            }
        }
    }
    found
}

/// The room that a path below the crate belongs to.
fn room(path: &[String]) -> Option<String> {
    const ROOMS: [&str; 10] =
        ["admin", "app", "cli", "config", "demo", "flow", "names", "observe", "outside", "store"];
    let first = path.first().filter(|first| ROOMS.contains(&first.as_str()))?;
    match path.get(1).filter(|second| first == "flow" && FLOW.contains(&second.as_str())) {
        Some(second) => Some(format!("flow/{second}")),
        None => Some(first.clone()),
    }
}

/// The module path of a file.
fn module(src: &Path, file: &Path) -> Vec<String> {
    let relative = file.strip_prefix(src).expect("a file below src").with_extension("");
    let mut path: Vec<_> = relative.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if path.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        path.pop();
    }
    path
}

/// All paths with `::` in a file, groups of `use` spread out; `super` and `self` become paths from `crate`.
fn paths(file: &Path) -> Vec<Vec<String>> {
    let (src, words) = (root().join("src"), words(&read(file)));
    let mut here = if file.starts_with(&src) { module(&src, file) } else { vec!["elsewhere".into(); 8] };
    let mut found = Vec::new();
    // Modules inside the file, each with the depth of braces at which it ends.
    let (mut inside, mut depth) = (Vec::new(), 0);
    let mut at = 0;
    while at < words.len() {
        match words[at].as_str() {
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                if inside.last() == Some(&depth) {
                    inside.pop();
                    here.pop();
                }
            }
            "mod" if words.get(at + 2).is_some_and(|word| word == "{") => {
                here.push(words[at + 1].clone());
                inside.push(depth);
                at += 1;
            }
            word if starts_path(word, words.get(at + 1)) => {
                let known = found.len();
                let group = word == "use" && words[at + 1] == "{";
                at = spread(&words, at + usize::from(group), &mut Vec::new(), &mut found);
                found[known..].iter_mut().for_each(|path| absolute(path, &here));
                continue;
            }
            _ => (),
        }
        at += 1;
    }
    found
}

fn starts_path(word: &str, next: Option<&String>) -> bool {
    next.is_some_and(|next| (is_name(word) && next == "::") || (word == "use" && next == "{"))
}

fn absolute(path: &mut Vec<String>, here: &[String]) {
    let ups = path.iter().take_while(|part| *part == "super").count();
    let own = path.first().is_some_and(|first| first == "self");
    if ups > 0 || own {
        let mut full = vec!["crate".to_owned()];
        full.extend(here[..here.len().saturating_sub(ups)].iter().cloned());
        full.extend(path.drain(ups + usize::from(own)..));
        *path = full;
    }
}

/// Reads one path or group from `at`; returns where it ends.
fn spread(words: &[String], mut at: usize, before: &mut Vec<String>, found: &mut Vec<Vec<String>>) -> usize {
    let length = before.len();
    while let Some(word) = words.get(at) {
        if word == "{" {
            at += 1;
            while words.get(at).is_some_and(|word| word != "}") {
                at = match words[at].as_str() {
                    "," => at + 1,
                    _ => spread(words, at, before, found).max(at + 1),
                };
            }
            before.truncate(length);
            return at + 1;
        }
        if !is_name(word) && word != "*" {
            break;
        }
        before.push(word.clone());
        at += 1;
        if words.get(at).is_none_or(|word| word != "::") {
            break;
        }
        at += 1;
    }
    found.push(before.clone());
    before.truncate(length);
    at
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The words and signs of a source, without comments, texts and characters. `::` is one sign.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let taken = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' => quoted(rest),
            'r' if rest.starts_with("r#\"") => rest.find("\"#").map_or(rest.len(), |end| end + 2),
            '\'' => character(rest),
            ':' if rest.starts_with("::") => {
                words.push("::".into());
                2
            }
            c if c.is_alphanumeric() || c == '_' => {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                words.push(rest[..end].into());
                end
            }
            c => {
                if !c.is_whitespace() {
                    words.push(c.into());
                }
                c.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    words
}

/// Length of a text in quotes.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            _ => escaped = c == '\\' && !escaped,
        }
    }
    text.len()
}

/// Length of a character in quotes; of a lifetime, the quote alone.
fn character(text: &str) -> usize {
    let mut inside = text.char_indices().skip(1);
    match inside.next() {
        Some((_, '\\')) => text.char_indices().skip(3).find(|(_, c)| *c == '\'').map_or(1, |(at, _)| at + 1),
        Some(_) => inside.next().filter(|(_, c)| *c == '\'').map_or(1, |(at, _)| at + 1),
        None => 1,
    }
}

#[test]
fn paths_are_read_as_the_compiler_reads_them() {
    let words = words(
        "use a::{b, c::{self, D}}; let x = 'a'; fn f<'a>(s: &'a str) { \"::no::\"; e::f::<G>() } // h::i",
    );
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        at = if starts_path(&words[at], words.get(at + 1)) {
            spread(&words, at, &mut Vec::new(), &mut found)
        } else {
            at + 1
        };
    }
    let found: Vec<_> = found.iter().map(|path| path.join("::")).collect();
    assert_eq!(found, ["a::b", "a::c::self", "a::c::D", "e::f"]);
}
