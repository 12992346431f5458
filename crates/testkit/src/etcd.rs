//! etcd, one member, and what is done to it.

use crate::backend::ClosedPort;
use crate::http;
use crate::proc::{LIMIT, Proc};
use crate::until;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::task::spawn_blocking;

/// Writes in one transaction of [`Etcd::put_all`]: etcd allows 128.
const BATCH: usize = 100;

/// A server on ports of its own; it keeps them when it is started again.
pub struct Etcd {
    proc: Proc,
    folder: TempDir,
    addr: SocketAddr,
    peer: SocketAddr,
}

impl Etcd {
    /// Starts it on free ports of 127.0.0.1 and waits until it answers.
    ///
    /// # Panics
    /// If it does not.
    pub async fn start() -> Self {
        let (addr, peer) = {
            let ports = (ClosedPort::new(), ClosedPort::new());
            (ports.0.addr(), ports.1.addr())
        };
        let folder = tempfile::tempdir().expect("a folder");
        let etcd = Self { proc: run(&folder, addr, peer), folder, addr, peer };
        etcd.ready().await;
        etcd
    }

    /// Where it is asked.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Ends it at once, in the midst of whatever it does.
    pub fn kill(&self) {
        self.proc.kill();
    }

    /// Starts it again with all that it had.
    ///
    /// # Panics
    /// If it does not answer.
    pub async fn restart(&mut self) {
        self.proc = run(&self.folder, self.addr, self.peer);
        self.ready().await;
    }

    /// Starts it again as if it had never held anything.
    ///
    /// # Panics
    /// If it does not answer.
    pub async fn restart_empty(&mut self) {
        self.folder = tempfile::tempdir().expect("a folder");
        self.restart().await;
    }

    /// Stops it where it is: its connections stay, and nothing is answered, as if every packet were lost.
    pub fn freeze(&self) {
        self.proc.freeze();
    }

    /// Lets it go on after [`freeze`](Self::freeze).
    pub fn thaw(&self) {
        self.proc.thaw();
    }

    /// Writes a key; gives the revision.
    ///
    /// # Panics
    /// If it does not say that it has.
    pub async fn put(&self, key: &str, value: &str) -> u64 {
        revision(&self.ask("kv/put", &json!({"key": b64(key), "value": b64(value)})).await)
    }

    /// Writes many keys, some at a time.
    ///
    /// # Panics
    /// If it does not say that it has.
    pub async fn put_all(&self, entries: impl IntoIterator<Item = (String, String)>) {
        let put =
            |(key, value): (String, String)| json!({"request_put": {"key": b64(&key), "value": b64(&value)}});
        let puts: Vec<Value> = entries.into_iter().map(put).collect();
        for some in puts.chunks(BATCH) {
            self.ask("kv/txn", &json!({"success": some})).await;
        }
    }

    /// Writes a key that lives as long as its lease, and gives the lease, of so many seconds.
    ///
    /// # Panics
    /// If it does not say that it has.
    pub async fn put_leased(&self, key: &str, value: &str, seconds: u32) -> String {
        let granted = self.ask("lease/grant", &json!({"TTL": seconds.to_string()})).await;
        let lease = granted["ID"].as_str().expect("a lease").to_owned();
        self.ask("kv/put", &json!({"key": b64(key), "value": b64(value), "lease": lease})).await;
        lease
    }

    /// Deletes a key.
    ///
    /// # Panics
    /// If it does not say that it has.
    pub async fn delete(&self, key: &str) {
        self.ask("kv/deleterange", &json!({"key": b64(key)})).await;
    }

    /// The value of a key.
    ///
    /// # Panics
    /// If it does not answer.
    pub async fn get(&self, key: &str) -> Option<String> {
        let found = self.ask("kv/range", &json!({"key": b64(key)})).await;
        let value = found["kvs"].as_array()?.first()?["value"].as_str().unwrap_or_default();
        String::from_utf8(STANDARD.decode(value).expect("base64")).ok()
    }

    /// Forgets what was before now, so that who has lost its watch cannot go on where it was.
    ///
    /// # Panics
    /// If it does not say that it has.
    pub async fn compact(&self) {
        let now = revision(&self.ask("kv/range", &json!({"key": b64("x")})).await);
        self.ask("kv/compaction", &json!({"revision": now.to_string(), "physical": true})).await;
    }

    /// How many watches are open, and how many messages they have been sent.
    ///
    /// # Panics
    /// If it does not say.
    pub async fn watches(&self) -> (f64, f64) {
        let (_, text) = http::get(&format!("http://{}/metrics", self.addr)).await.expect("metrics");
        let number = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no {name} in {text}"))
        };
        (number("etcd_debugging_mvcc_watch_stream_total"), number("etcd_debugging_mvcc_events_total"))
    }

    async fn ask(&self, what: &str, body: &Value) -> Value {
        let url = format!("http://{}/v3/{what}", self.addr);
        let answer = http::post(&url, body.to_string()).await;
        match answer {
            Ok((200, text)) => serde_json::from_str(&text).unwrap_or_else(|e| panic!("{url}: {e}: {text}")),
            other => panic!("{url}: {other:?}\n{}", self.proc.report()),
        }
    }

    async fn ready(&self) {
        // Not asked before it listens: a connection to a port where nobody listens yet may meet itself.
        let listens = |line: &str| line.contains("serving client traffic").then_some(());
        let (err, report) = (Arc::clone(&self.proc.err), || self.proc.report());
        let found =
            spawn_blocking(move || err.find(0, LIMIT, listens)).await.unwrap_or_else(|e| panic!("{e}"));
        found.unwrap_or_else(|why| panic!("etcd is not ready: {why}\n{}", report()));
        let url = format!("http://{}/health", self.addr);
        let health = || async { http::get(&url).await.is_ok_and(|(status, _)| status == 200).then_some(()) };
        until("the health of etcd", health).await;
    }
}

fn run(folder: &TempDir, addr: SocketAddr, peer: SocketAddr) -> Proc {
    let (client, peer) = (format!("http://{addr}"), format!("http://{peer}"));
    let (data, cluster) = (folder.path().to_string_lossy(), format!("t={peer}"));
    let args = [
        ["--name", "t"],
        ["--data-dir", &data],
        ["--initial-cluster", &cluster],
        ["--listen-client-urls", &client],
        ["--advertise-client-urls", &client],
        ["--listen-peer-urls", &peer],
        ["--initial-advertise-peer-urls", &peer],
    ];
    let flags = ["--unsafe-no-fsync"];
    Proc::start("etcd", "etcd", args.iter().flatten().chain(&flags), &[("ETCD_LOGGER", "zap")])
}

fn b64(text: &str) -> String {
    STANDARD.encode(text)
}

fn revision(answer: &Value) -> u64 {
    let revision = answer["header"]["revision"].as_str().and_then(|revision| revision.parse().ok());
    revision.unwrap_or_else(|| panic!("no revision in {answer}"))
}
