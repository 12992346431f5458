//! The gateway itself, as a process: what a user starts and sees, and no more.

use crate::caller::{Caller, Form};
use crate::http;
use crate::metrics::{self, Exposition};
use crate::mux;
use crate::proc::{LIMIT, Proc};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::Instant;

/// How long it may take to accept calls.
const START_LIMIT: Duration = Duration::from_secs(60);
/// Between two looks at the metrics.
const POLL: Duration = Duration::from_millis(50);

/// A running gateway.
pub struct Gateway {
    /// The process.
    pub proc: Proc,
    /// The first listener's address.
    pub addr: SocketAddr,
    /// All listeners, by name.
    pub listeners: HashMap<String, SocketAddr>,
    /// The admin server's address.
    pub admin: SocketAddr,
    /// Where its file is, if it was written for it.
    _file: Option<TempDir>,
    /// What it keeps, if its file names no other place for that.
    _state: TempDir,
}

impl Gateway {
    /// Starts `muxgate run` with one listener on a free port, an admin server, and `args`, and waits until it accepts
    /// calls. `program` is the binary, which only a test of the root package knows: `env!("CARGO_BIN_EXE_muxgate")`.
    ///
    /// # Panics
    /// With its log, if it does not accept calls.
    pub fn start(program: &str, args: &[&str]) -> Self {
        let mut all = vec!["run", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
        all.extend(args);
        Self::run(program, &all)
    }

    /// Starts `muxgate run FILE`; the file must have one listener or more and an admin server.
    ///
    /// # Panics
    /// With its log, if it does not accept calls.
    pub fn of_file(program: &str, file: &Path) -> Self {
        Self::run(program, &["run", &file.to_string_lossy()])
    }

    /// Starts `muxgate run` with a file of this content; it must have one listener or more and an admin server.
    ///
    /// # Panics
    /// With its log, if it does not accept calls.
    pub fn of_yaml(program: &str, yaml: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("gate.yaml");
        std::fs::write(&file, yaml).expect("a file");
        Self { _file: Some(folder), ..Self::of_file(program, &file) }
    }

    fn run(program: &str, args: &[&str]) -> Self {
        let state = tempfile::tempdir().expect("a folder");
        let place = state.path().to_string_lossy();
        let env = [("XDG_STATE_HOME", &*place), ("STATE_DIRECTORY", "")];
        let proc = Proc::start("muxgate", program, args, &env);
        let mut listeners = Vec::new();
        let admin = proc.wait_line("listening and admin lines", START_LIMIT, |line| {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["listening", name, addr] => listeners.push((name.to_owned(), addr.parse().ok()?)),
                ["admin", addr] => return addr.parse().ok(),
                _ => (),
            }
            None
        });
        // Whichever of the two kinds of line comes first, one listener is needed.
        if listeners.is_empty() {
            listeners.push(proc.wait_line("a listening line", START_LIMIT, |line| {
                let (name, addr) = line.strip_prefix("listening ")?.split_once(' ')?;
                Some((name.to_owned(), addr.parse().ok()?))
            }));
        }
        let addr = listeners[0].1;
        Self { proc, addr, listeners: listeners.into_iter().collect(), admin, _file: None, _state: state }
    }

    /// GETs a page of the admin server, in a test on a runtime.
    ///
    /// # Panics
    /// If there is no answer.
    pub async fn get(&self, path: &str) -> (u16, String) {
        http::get(&format!("http://{}{path}", self.admin)).await.unwrap_or_else(|e| panic!("{e}"))
    }

    /// What a call of `echo` to this name comes to: nothing if it is answered well, the text of its error if not.
    ///
    /// # Panics
    /// If the connection ends.
    pub async fn refusal(&self, name: &str) -> Option<String> {
        let answer = Caller::connect(Form::ThriftMux, self.addr).await.echo(name, "drill").await;
        (answer.status != mux::OK).then(|| answer.text())
    }

    /// GETs a page of the admin server.
    ///
    /// # Panics
    /// If there is no answer, or inside a runtime.
    #[track_caller]
    pub fn page(&self, path: &str) -> (u16, String) {
        http::get_blocking(&format!("http://{}{path}", self.admin)).unwrap_or_else(|e| panic!("{e}"))
    }

    /// The metrics, read by the strict parser.
    ///
    /// # Panics
    /// If they cannot be had or read, or inside a runtime.
    #[track_caller]
    pub fn metrics(&self) -> Exposition {
        let (status, text) = self.page("/metrics");
        assert_eq!(status, 200, "{text}");
        metrics::parse(&text).unwrap_or_else(|e| panic!("/metrics: {e}\n{text}"))
    }

    /// Asks for the metrics until `look` is content with them; they have nothing to wait on.
    ///
    /// # Panics
    /// With the last metrics, if it does not become content in time.
    #[track_caller]
    pub fn wait_metrics(&self, what: &str, look: impl Fn(&Exposition) -> bool) {
        let end = Instant::now() + LIMIT;
        loop {
            let metrics = self.metrics();
            if look(&metrics) {
                return;
            }
            assert!(Instant::now() < end, "waited until {what}: {:#?}", metrics.samples);
            std::thread::sleep(POLL);
        }
    }

    /// Ends it as an operator does, and asserts that it ended well.
    ///
    /// # Panics
    /// If it does not end in time with status 0.
    #[track_caller]
    pub fn stop(self) {
        self.proc.terminate();
        let status = self.proc.wait(LIMIT);
        assert!(status.success(), "the gateway ended with {status}\n{}", self.proc.report());
    }
}
