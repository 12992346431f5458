//! A load that must never see a failure, whatever is done to the discovery system behind the gateway, step by step.
//!
//! ```no_run
//! # use muxgate_testkit::drill::{Drill, Echoes};
//! # async fn drill(gateway: std::net::SocketAddr) {
//! let echoes = Echoes::start(2).await;
//! // ... a gateway whose listener's `dst` is found by discovery, which knows echoes.addr(0)
//! let mut drill = Drill::start(gateway);
//! drill.step("add a second", async { /* register echoes.addr(1) */ }).await;
//! drill.traffic(&echoes, &[0, 1]).await;
//! drill.step("kill the server", async { /* kill -9 */ }).await;
//! drill.end().await;
//! # }
//! ```
//!
//! Each step prints one line: `kill the server: 212 calls, 100.00 %`.

use crate::backend::Backend;
use crate::load::{Call, Load};
use crate::until::LIMIT;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

/// Callers of the load.
const CALLERS: usize = 4;
/// Between two calls of one caller.
const PAUSE: Duration = Duration::from_millis(4);
/// Calls that must end after the work of a step is done.
const AFTER: usize = 200;
/// Calls by which it is seen who gets traffic.
const SAMPLE: usize = 100;
/// Failures that a panic shows.
const SHOWN: usize = 5;

/// A running load, and how far it has been looked at.
pub struct Drill {
    load: Arc<Load>,
    seen: usize,
}

impl Drill {
    /// Starts the load: calls of `echo`, framed, without a name of their own.
    pub fn start(gateway: SocketAddr) -> Self {
        Self { load: Arc::new(Load::start(gateway, CALLERS, PAUSE)), seen: 0 }
    }

    /// Does `work` under the load, lets the load go on for some hundred calls more, and prints how many calls there were
    /// since the last step.
    ///
    /// # Panics
    /// With the first failures, if there were any, or if the load does not go on.
    pub async fn step<T>(&mut self, what: &str, work: impl Future<Output = T>) -> T {
        let done = work.await;
        self.more(AFTER).await;
        self.look(what);
        done
    }

    /// Waits until `n` more calls have ended.
    ///
    /// # Panics
    /// If they do not in time.
    pub async fn more(&self, n: usize) {
        let load = Arc::clone(&self.load);
        spawn_blocking(move || load.more(n)).await.unwrap_or_else(|e| panic!("{e}"));
    }

    /// Waits until exactly these of `echoes` get traffic.
    ///
    /// # Panics
    /// With what each one gets, if that is not so in time.
    pub async fn traffic(&self, echoes: &Echoes, wanted: &[usize]) {
        let end = Instant::now() + LIMIT;
        loop {
            let before = echoes.counts();
            self.more(SAMPLE).await;
            let got: Vec<usize> = echoes.counts().iter().zip(before).map(|(now, then)| now - then).collect();
            if got.iter().enumerate().all(|(at, calls)| (*calls > 0) == wanted.contains(&at)) {
                return;
            }
            assert!(
                Instant::now() < end,
                "waited for traffic to {wanted:?}; of {SAMPLE} calls each got {got:?}"
            );
        }
    }

    /// The share of each of `echoes` in the next `n` calls.
    ///
    /// # Panics
    /// If the load does not go on.
    pub async fn shares(&self, echoes: &Echoes, n: usize) -> Vec<f64> {
        let before = echoes.counts();
        self.more(n).await;
        let got: Vec<f64> =
            echoes.counts().iter().zip(before).map(|(now, then)| (now - then) as f64).collect();
        let all: f64 = got.iter().sum();
        got.iter().map(|calls| calls / all).collect()
    }

    /// Ends the load, and looks at its last calls.
    ///
    /// # Panics
    /// With the first failures, if there were any.
    pub async fn end(self) {
        let load = Arc::into_inner(self.load).expect("nobody else waits for the load");
        let calls = spawn_blocking(move || load.stop()).await.unwrap_or_else(|e| panic!("{e}"));
        judge("the end", calls.get(self.seen..).unwrap_or_default());
        println!("all steps: {} calls", calls.len());
    }

    fn look(&mut self, what: &str) {
        let calls = self.load.calls_from(self.seen);
        self.seen += calls.len();
        judge(what, &calls);
    }
}

fn judge(what: &str, calls: &[Call]) {
    let failures: Vec<&str> = calls.iter().filter_map(|call| call.failure.as_deref()).collect();
    let good = calls.len() - failures.len();
    let line =
        format!("{what}: {} calls, {:.2} %", calls.len(), 100.0 * good as f64 / calls.len().max(1) as f64);
    println!("{line}");
    assert!(failures.is_empty(), "{line}; {:#?}", &failures[..failures.len().min(SHOWN)]);
}

/// Backends that are well, whether discovery knows them or not.
pub struct Echoes(Vec<Backend>);

impl Echoes {
    /// So many, each on a free port of 127.0.0.1.
    ///
    /// # Panics
    /// If that fails.
    pub async fn start(n: usize) -> Self {
        let mut all = Vec::new();
        for _ in 0..n {
            all.push(Backend::start().await);
        }
        Self(all)
    }

    /// So many on one port, each on an address of its own: 127.0.0.1, 127.0.0.2 and so on.
    ///
    /// # Panics
    /// If that fails.
    pub async fn on_one_port(n: u8) -> Self {
        let first = Backend::start().await;
        let port = first.addr().port();
        let mut all = vec![first];
        for last in 2..=n {
            all.push(Backend::on(SocketAddr::from(([127, 0, 0, last], port))).await);
        }
        Self(all)
    }

    /// Where one of them listens.
    pub fn addr(&self, at: usize) -> SocketAddr {
        self.0[at].addr()
    }

    /// All of them, in order.
    pub fn addrs(&self) -> Vec<SocketAddr> {
        self.0.iter().map(Backend::addr).collect()
    }

    /// The calls that each one has got.
    pub fn counts(&self) -> Vec<usize> {
        self.0.iter().map(Backend::count).collect()
    }

    /// One of them, to tell it how to behave.
    pub fn backend(&self, at: usize) -> &Backend {
        &self.0[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Plan, Reply};

    #[tokio::test(flavor = "multi_thread")]
    async fn steps_see_traffic_and_failures() {
        let echoes = Echoes::start(2).await;
        let mut drill = Drill::start(echoes.addr(0));
        drill.step("nothing", async {}).await;
        drill.traffic(&echoes, &[0]).await;
        assert_eq!(drill.shares(&echoes, 20).await, [1.0, 0.0]);
        echoes.backend(0).script([Plan::now(Reply::Close)]);
        let ended = tokio::spawn(async move { drill.step("close", async {}).await }).await;
        assert!(ended.expect_err("a call failed").is_panic());
    }
}
