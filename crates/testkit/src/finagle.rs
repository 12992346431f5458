//! Finagle 20.4.1 as a server and as a client: the kit that lies beside the repository, run where it is.
//!
//! `MUXGATE_FINAGLE` names the kit's script; without it, it is `../shared/peers/finagle/finagle` seen from the root of the
//! repository. What the kit builds goes to `FINAGLE_PEER_BUILD` if that is set, else below the cargo target folder.

use crate::proc::{LIMIT, Proc, START_LIMIT};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a run of the client may take.
pub const CLIENT_LIMIT: Duration = Duration::from_secs(180);
/// How long the kit's first build may take.
const BUILD_LIMIT: Duration = Duration::from_secs(900);
/// Calls are few and runs are short: what the second compiler would give is not worth the CPU it takes from others.
const JAVA: &str = "-XX:TieredStopAtLevel=1";

/// The built kit.
#[derive(Clone, Debug)]
pub struct Finagle {
    script: PathBuf,
    build: String,
}

impl Finagle {
    /// Finds the kit and builds it if need be; `target` is where it may build.
    ///
    /// # Panics
    /// If it is not there, or does not build: a test that needs it then fails.
    pub fn find(repository: &Path, target: &Path) -> Self {
        let script = std::env::var_os("MUXGATE_FINAGLE")
            .map_or_else(|| repository.join("../shared/peers/finagle/finagle"), PathBuf::from);
        assert!(
            script.exists(),
            "no Finagle kit at {}; MUXGATE_FINAGLE may say where it is",
            script.display()
        );
        let build = std::env::var("FINAGLE_PEER_BUILD")
            .unwrap_or_else(|_| target.join("finagle-peer").to_string_lossy().into_owned());
        let kit = Self { script, build };
        let built = kit.start("finagle build", ["build"]);
        let status = built.wait(BUILD_LIMIT);
        assert!(status.success(), "the Finagle kit does not build\n{}", built.report());
        kit
    }

    fn start<'a>(&self, name: &str, args: impl IntoIterator<Item = &'a str>) -> Proc {
        let env = [("FINAGLE_PEER_BUILD", self.build.as_str()), ("FINAGLE_PEER_JAVA", JAVA)];
        Proc::start(name, &self.script, args, &env)
    }

    /// Starts the Echo server, on a free port unless `args` has a `--port`, and waits until it answers. Its requests
    /// are logged (arrivals too) as lines of its stdout.
    ///
    /// # Panics
    /// If it does not become ready.
    pub fn server(&self, name: &str, args: &[&str]) -> Server {
        let mut all = vec!["server", "--name", name, "--log", "/dev/stdout", "--log-arrivals"];
        if !args.contains(&"--port") {
            all.extend(["--port", "0"]);
        }
        all.extend(args);
        let proc = self.start(&format!("finagle server {name}"), all);
        let addr = proc.wait_line("READY", START_LIMIT, |l| l.strip_prefix("READY ")?.parse().ok());
        Server { proc, addr }
    }

    /// Starts a client that calls `dest`.
    pub fn client(&self, dest: SocketAddr, args: &[&str]) -> Calls {
        let dest = dest.to_string();
        let mut all = vec!["client", "--dest", &dest];
        all.extend(args);
        Calls(self.start(&format!("finagle client {}", args.join(" ")), all))
    }

    /// Runs a client to its end.
    ///
    /// # Panics
    /// If it does not end or has no summary.
    pub fn call(&self, dest: SocketAddr, args: &[&str]) -> Summary {
        self.client(dest, args).result()
    }
}

/// A running Echo server.
pub struct Server {
    /// The process; its stdout is its log of requests.
    pub proc: Proc,
    /// Where it listens.
    pub addr: SocketAddr,
}

impl Server {
    /// Where its log is now: what comes later is from later requests.
    pub fn mark(&self) -> usize {
        self.proc.out.len()
    }

    /// Waits for a line of its log, from line `from` on, that `look` makes something of.
    ///
    /// # Panics
    /// If none comes.
    pub fn wait_log<T>(&self, from: usize, what: &str, mut look: impl FnMut(&Value) -> Option<T>) -> T {
        self.proc.wait_line_from(from, what, LIMIT, |line| look(&event(line)?))
    }

    /// Waits for the end of the first request, logged at `from` or later, whose trace id is `trace`.
    ///
    /// # Panics
    /// If none comes.
    pub fn ended(&self, from: usize, trace: &str) -> Value {
        self.wait_log(from, &format!("the end of a request of trace {trace}"), |e| {
            (e["event"] == "request" && e["trace"]["trace_id"] == trace).then(|| e.clone())
        })
    }

    /// All lines of its log so far.
    pub fn log(&self) -> Vec<Value> {
        self.proc.out.all().iter().filter_map(|l| event(l)).collect()
    }
}

fn event(line: &str) -> Option<Value> {
    line.starts_with("{\"event\"").then(|| serde_json::from_str(line).ok())?
}

/// A client at work.
pub struct Calls(pub Proc);

impl Calls {
    /// Waits for its end and reads its summary.
    ///
    /// # Panics
    /// If it does not end or has no summary.
    pub fn result(self) -> Summary {
        let status = self.0.wait(CLIENT_LIMIT);
        let summary = self.0.out.all().last().and_then(|l| serde_json::from_str(l).ok());
        match summary {
            Some(json) if status.success() => Summary(json),
            _ => panic!("{} ended with {status}\n{}", self.0.name(), self.0.report()),
        }
    }
}

/// What a client says of its calls.
#[derive(Clone, Debug)]
pub struct Summary(pub Value);

impl Summary {
    /// Calls that were answered, with the right reply.
    pub fn ok(&self) -> u64 {
        self.0["ok"].as_u64().unwrap_or(0)
    }

    /// Calls made.
    pub fn n(&self) -> u64 {
        self.0["n"].as_u64().unwrap_or(0)
    }

    /// Asserts that there were calls and that all of them went well.
    ///
    /// # Panics
    /// With the summary, if not.
    #[track_caller]
    pub fn all_ok(&self) {
        assert!(self.n() > 0 && self.ok() == self.n(), "not all calls went well: {}", self.0);
    }

    /// Asserts that each call ended with the exception `name`, as the kit writes it.
    ///
    /// # Panics
    /// With the summary, if not.
    #[track_caller]
    pub fn all_raised(&self, name: &str) {
        let raised = self.0["app_exceptions"][name].as_u64().or_else(|| self.0["failures"][name].as_u64());
        assert!(self.n() > 0 && raised == Some(self.n()), "not all calls ended with {name}: {}", self.0);
    }
}
