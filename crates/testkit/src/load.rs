//! A load whose every reply is compared: callers on threads of their own, framed binary Thrift, one call at a time each.

use crate::thrift::{EXCEPTION, Message, Protocol, REPLY};
use parking_lot::{Condvar, Mutex};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::time::Instant;

/// How long one call may take before it counts as failed.
const CALL_LIMIT: Duration = Duration::from_secs(30);
/// Calls recorded; a load that makes more of them stops.
pub const MAX_CALLS: usize = 1_000_000;

/// One call that has ended.
#[derive(Clone, Debug)]
pub struct Call {
    /// What was sent, and must come back. No two calls of a load send the same.
    pub text: String,
    /// Just before it was written.
    pub start: Instant,
    /// Just after its reply was read, or it failed.
    pub end: Instant,
    /// Why it failed.
    pub failure: Option<String>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    calls: Mutex<Vec<Call>>,
    changed: Condvar,
}

/// A running load.
pub struct Load {
    shared: Arc<Shared>,
    callers: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts `callers` callers of `echo` at `addr`, each with a connection of its own, which it opens again after a
    /// failure. `pause` lies between two calls of one caller.
    pub fn start(addr: SocketAddr, callers: usize, pause: Duration) -> Self {
        let shared = Arc::new(Shared::default());
        let callers = (0..callers)
            .map(|number| {
                let shared = shared.clone();
                std::thread::spawn(move || caller(addr, number, pause, &shared))
            })
            .collect();
        Self { shared, callers }
    }

    /// The calls that have ended so far.
    pub fn calls(&self) -> Vec<Call> {
        self.shared.calls.lock().clone()
    }

    /// The same without the first `seen`.
    pub fn calls_from(&self, seen: usize) -> Vec<Call> {
        self.shared.calls.lock().get(seen..).unwrap_or_default().to_vec()
    }

    /// Waits until `n` more calls have ended.
    ///
    /// # Panics
    /// If they do not in time.
    pub fn more(&self, n: usize) {
        let mut calls = self.shared.calls.lock();
        let want = calls.len() + n;
        let end = Instant::now() + CALL_LIMIT * 2;
        while calls.len() < want {
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "the load does not go on: {} calls, {:?}", calls.len(), calls.last());
            self.shared.changed.wait_for(&mut calls, left);
        }
    }

    /// Ends the load after the calls that are under way.
    ///
    /// # Panics
    /// If a caller did.
    pub fn stop(self) -> Vec<Call> {
        self.shared.stop.store(true, Ordering::Relaxed);
        for caller in self.callers {
            caller.join().expect("a caller has no reason to panic");
        }
        std::mem::take(&mut self.shared.calls.lock())
    }
}

fn caller(addr: SocketAddr, number: usize, pause: Duration, shared: &Shared) {
    let mut connection = None;
    for i in 0.. {
        if shared.stop.load(Ordering::Relaxed) {
            return;
        }
        let text = format!("caller {number} call {i}");
        let start = Instant::now();
        let result = call(addr, &mut connection, i, &text);
        if result.is_err() {
            connection = None;
        }
        let end = Instant::now();
        let mut calls = shared.calls.lock();
        calls.push(Call { text, start, end, failure: result.err() });
        shared.changed.notify_all();
        if calls.len() >= MAX_CALLS {
            return;
        }
        drop(calls);
        // Not a wait for anything: it is the rate of the load.
        std::thread::sleep(pause);
    }
}

fn call(addr: SocketAddr, connection: &mut Option<TcpStream>, seqid: i32, text: &str) -> Result<(), String> {
    let stream = match connection {
        Some(stream) => stream,
        None => connection.insert(connect(addr).map_err(|e| format!("connect: {e}"))?),
    };
    let request = Message::call(Protocol::Binary, "echo", seqid, text).to_bytes();
    let frame = [&(request.len() as u32).to_be_bytes()[..], &request].concat();
    stream.write_all(&frame).map_err(|e| format!("write: {e}"))?;
    let mut length = [0; 4];
    stream.read_exact(&mut length).map_err(|e| format!("read: {e}"))?;
    let mut reply = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut reply).map_err(|e| format!("read: {e}"))?;
    let reply = Message::parse(&reply.into()).ok_or("not a Thrift message")?;
    let got = reply.string_argument();
    match (reply.kind, reply.seqid == seqid) {
        (REPLY, true) if got.as_deref() == Some(text.as_bytes()) => Ok(()),
        (EXCEPTION, true) => Err(format!("exception: {:?}", got.unwrap_or_default())),
        _ => Err(format!("WRONG REPLY to {text}: {reply:?}")),
    }
}

fn connect(addr: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&addr, CALL_LIMIT)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(CALL_LIMIT))?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Backend, Plan, Reply};

    #[tokio::test(flavor = "multi_thread")]
    async fn every_reply_is_compared() {
        let backend = Backend::start().await;
        let load = Load::start(backend.addr(), 2, Duration::ZERO);
        let calls = tokio::task::spawn_blocking(|| {
            load.more(20);
            load.stop()
        });
        assert!(calls.await.unwrap().iter().all(|c| c.failure.is_none()));
        let wrong = Message::call(Protocol::Binary, "echo", 0, "other").to_bytes();
        backend.set(Plan::now(Reply::Bytes(wrong)));
        let load = Load::start(backend.addr(), 1, Duration::ZERO);
        let calls = tokio::task::spawn_blocking(|| {
            load.more(1);
            load.stop()
        });
        assert!(calls.await.unwrap()[0].failure.as_ref().unwrap().starts_with("WRONG REPLY"));
    }
}
