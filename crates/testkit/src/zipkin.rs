//! Zipkin 3.5.1, in memory, and its query API.

use crate::http;
use crate::proc::{LIMIT, Proc, START_LIMIT};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::Instant;

const ARTIFACT: &str = "io.zipkin:zipkin-server:3.5.1:jar:exec";
const JAR: &str = "zipkin-server-3.5.1-exec.jar";
/// How long fetching may take.
const FETCH_LIMIT: Duration = Duration::from_secs(600);
/// Between two questions; the API has nothing to wait on.
const POLL: Duration = Duration::from_millis(50);

/// A running Zipkin.
pub struct Zipkin {
    proc: Proc,
    addr: SocketAddr,
}

impl Zipkin {
    /// Fetches the server into `target` if need be, starts it on a free port and waits until it serves.
    ///
    /// # Panics
    /// If it cannot be had or started.
    pub fn start(target: &Path) -> Self {
        let jar = jar(target);
        let jar = jar.to_string_lossy();
        let flags = ["-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-jar", &jar];
        let port = ["ip=127.0.0.1", "port=0", "protocols[0]=http"].map(|s| format!("--armeria.ports[0].{s}"));
        let args = flags.into_iter().chain(port.iter().map(String::as_str));
        let proc = Proc::start("zipkin", "java", args, &[]);
        let addr = proc.wait_line("its address", START_LIMIT, |line| {
            let rest = line.split_once("Serving HTTP at /")?.1;
            rest.split(' ').next()?.parse().ok()
        });
        Self { proc, addr }
    }

    /// Where spans are posted.
    pub fn collector(&self) -> String {
        format!("http://{}/api/v2/spans", self.addr)
    }

    /// Asks until the trace `id` has at least `n` spans: Zipkin stores a moment after it has said yes.
    ///
    /// # Panics
    /// With the spans that were there, if they stay too few.
    pub fn trace(&self, id: &str, n: usize) -> Vec<Value> {
        let end = Instant::now() + LIMIT;
        loop {
            let spans = self.spans(id);
            if spans.len() >= n {
                return spans;
            }
            assert!(
                Instant::now() < end,
                "waited for {n} spans of {id}, have {spans:#?}\n{}",
                self.proc.report()
            );
            std::thread::sleep(POLL);
        }
    }

    /// The spans of the trace `id` that are there by now.
    ///
    /// # Panics
    /// If Zipkin does not answer, or not in JSON.
    pub fn spans(&self, id: &str) -> Vec<Value> {
        match self.get(&format!("/api/v2/trace/{id}")) {
            (200, json) => json.as_array().cloned().unwrap_or_default(),
            (404, _) => Vec::new(),
            other => panic!("zipkin says {other:?}"),
        }
    }

    /// Names of the services that have reported, in lower case as Zipkin keeps them.
    pub fn services(&self) -> Vec<String> {
        let (_, json) = self.get("/api/v2/services");
        json.as_array().into_iter().flatten().filter_map(|s| s.as_str().map(str::to_owned)).collect()
    }

    fn get(&self, path: &str) -> (u16, Value) {
        let (status, text) =
            http::get_blocking(&format!("http://{}{path}", self.addr)).unwrap_or_else(|e| panic!("{e}"));
        (status, serde_json::from_str(&text).unwrap_or(Value::Null))
    }
}

/// The server's file in `target`, fetched if need be.
fn jar(target: &Path) -> PathBuf {
    let jar = target.join(JAR);
    if !jar.exists() {
        let artifact = format!("-Dartifact={ARTIFACT}");
        let folder = format!("-DoutputDirectory={}", target.display());
        let mvn = Proc::start("mvn", "mvn", ["-q", "-B", "dependency:copy", &artifact, &folder], &[]);
        let status = mvn.wait(FETCH_LIMIT);
        assert!(status.success() && jar.exists(), "Zipkin cannot be fetched: {status}\n{}", mvn.report());
    }
    jar
}
