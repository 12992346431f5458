//! Apache Thrift peers in Python and Go. Both are one program with the same flags and the same output:
//!
//! * `server --name N [--port P] --protocol binary|compact` prints `READY host:port`, then for each call a line of
//!   JSON when it comes in (`"event":"arrival"`) and one when its reply is written (`"event":"done"`);
//! * `client --dest host:port --protocol binary|compact --n N` calls every method of Echo N times on one connection,
//!   compares every reply, and prints one line of JSON.
//!
//! Sources are in `tests/peers/python` and `tests/peers/go`; their libraries are fetched by pip and go at the first use.

use crate::finagle::{CLIENT_LIMIT, Summary};
use crate::proc::{Proc, START_LIMIT};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The version of the Python library; go.mod has that of Go's.
const PYTHON_LIBRARY: &str = "thrift==0.23.0";
/// How long fetching and building may take.
const BUILD_LIMIT: Duration = Duration::from_secs(600);

/// One language's peer, ready to be started.
#[derive(Clone, Debug)]
pub struct Apache {
    language: &'static str,
    command: Vec<PathBuf>,
}

impl Apache {
    /// The Python peer, in a virtual environment below `target`.
    ///
    /// # Panics
    /// If it cannot be set up.
    pub fn python(repository: &Path, target: &Path) -> Self {
        let venv = target.join("python-peer");
        let python = venv.join("bin/python");
        let stamp = venv.join(PYTHON_LIBRARY);
        if !stamp.exists() {
            let venv = venv.to_string_lossy();
            run("python venv", "python3", &["-m", "venv", "--clear", &venv], &[]);
            run(
                "pip install",
                &python.to_string_lossy(),
                &["-m", "pip", "install", "-q", PYTHON_LIBRARY],
                &[],
            );
            std::fs::write(&stamp, "").expect("the virtual environment can be written to");
        }
        Self { language: "python", command: vec![python, repository.join("tests/peers/python/peer.py")] }
    }

    /// The Go peer, built into `target`.
    ///
    /// # Panics
    /// If it cannot be built.
    pub fn go(repository: &Path, target: &Path) -> Self {
        let program = target.join("go-peer");
        let source = repository.join("tests/peers/go");
        let (source, out) = (source.to_string_lossy(), program.to_string_lossy());
        run(
            "go build",
            "go",
            &["build", "-C", &source, "-buildvcs=false", "-o", &out, "."],
            &[("GOWORK", "off")],
        );
        Self { language: "go", command: vec![program] }
    }

    fn start<'a>(&'a self, name: &str, args: impl IntoIterator<Item = &'a str>) -> Proc {
        let (program, before) = self.command.split_first().expect("a command has a program");
        let before = before.iter().map(|p| p.as_os_str());
        let args = before.chain(args.into_iter().map(AsRef::as_ref));
        Proc::start(&format!("{} {name}", self.language), program, args, &[])
    }

    /// Starts the Echo server, on a free port unless `args` has a `--port`, and waits until it listens.
    ///
    /// # Panics
    /// If it does not become ready.
    pub fn server(&self, name: &str, args: &[&str]) -> Server {
        let all = ["server", "--name", name].into_iter().chain(args.iter().copied());
        let proc = self.start(&format!("server {name}"), all);
        let addr = proc.wait_line("READY", START_LIMIT, |l| l.strip_prefix("READY ")?.parse().ok());
        Server { proc, addr }
    }

    /// Calls all methods of `dest`, to the client's end.
    ///
    /// # Panics
    /// If the client does not end or has no summary.
    pub fn call(&self, dest: SocketAddr, args: &[&str]) -> Summary {
        let dest = dest.to_string();
        let all = ["client", "--dest", &dest].into_iter().chain(args.iter().copied());
        let client = self.start(&format!("client {}", args.join(" ")), all);
        let status = client.wait(CLIENT_LIMIT);
        match client.out.all().last().and_then(|l| serde_json::from_str(l).ok()) {
            Some(json) if status.success() => Summary(json),
            _ => panic!("{} ended with {status}\n{}", client.name(), client.report()),
        }
    }
}

/// A running server.
pub struct Server {
    /// The process; its stdout is its log of calls.
    pub proc: Proc,
    /// Where it listens.
    pub addr: SocketAddr,
}

impl Server {
    /// Its log so far.
    pub fn log(&self) -> Vec<Value> {
        self.proc.out.all().iter().filter_map(|l| serde_json::from_str(l).ok()).collect()
    }

    /// The first arguments of the calls that are logged with `event`, so far.
    pub fn args_of(&self, event: &str) -> Vec<String> {
        let of = |e: Value| (e["event"] == event).then(|| e["arg"].as_str().map(str::to_owned)).flatten();
        self.log().into_iter().filter_map(of).collect()
    }
}

fn run(what: &str, program: &str, args: &[&str], env: &[(&str, &str)]) {
    let proc = Proc::start(what, program, args, env);
    let status = proc.wait(BUILD_LIMIT);
    assert!(status.success(), "{what}: {status}\n{}", proc.report());
}
