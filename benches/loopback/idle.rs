//! What a connection costs that says nothing: the memory of a fresh process with many of them.

use super::cases::{Case, connect, forwarder, gateway};
use super::peers::Proto;
use super::process::Process;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::sleep;

/// Connections that are opened, if files may be opened for so many.
const CONNECTIONS: usize = 1000;
/// Files that a process needs beside: the forwarder has two for each connection.
const OTHER_FILES: usize = 100;
/// Time for a process to give back what it does not need.
const SETTLE: Duration = Duration::from_millis(500);

/// Memory of one process, in KiB.
#[derive(Clone, Copy, Debug)]
pub struct Idle {
    /// What it is.
    pub name: &'static str,
    /// As soon as it listened.
    pub start: u64,
    /// More, for each idle connection that has made one call.
    pub each: f64,
    /// Idle connections.
    pub connections: usize,
    /// Replies that were not those of their calls.
    pub wrong: u64,
}

/// Measures fresh processes before these services.
///
/// # Errors
/// When one does not listen or a call fails.
pub async fn measure(framed: SocketAddr, mux: SocketAddr) -> io::Result<Vec<Idle>> {
    Ok(vec![
        of("forwarder, framed", forwarder(framed)?, Proto::Framed).await?,
        of("gateway, framed -> framed", gateway(framed, Proto::Framed)?, Proto::Framed).await?,
        of("gateway, framed -> thriftmux", gateway(mux, Proto::Mux)?, Proto::Framed).await?,
        of("gateway, thriftmux -> thriftmux", gateway(mux, Proto::Mux)?, Proto::Mux).await?,
    ])
}

async fn of(name: &'static str, process: Process, proto: Proto) -> io::Result<Idle> {
    let connections = CONNECTIONS.min(open_files()?.saturating_sub(OTHER_FILES) / 2);
    sleep(SETTLE).await;
    let start = process.resident()?.0;
    let case = Case { proto, connections, in_flight: 1, size: 64 };
    let mut wrong = 0;
    // What the first call makes is no connection's own.
    let mut first = connect(process.addr(), case).await?;
    wrong += call_once(&mut first).await?;
    sleep(SETTLE).await;
    let before = process.resident()?.0;
    let mut idle = Vec::with_capacity(connections);
    for _ in 0..connections {
        let mut caller = connect(process.addr(), case).await?;
        wrong += call_once(&mut caller).await?;
        idle.push(caller);
    }
    sleep(SETTLE).await;
    let after = process.resident()?.0;
    let each = after.saturating_sub(before) as f64 / connections.max(1) as f64;
    Ok(Idle { name, start, each, connections, wrong })
}

async fn call_once(caller: &mut super::peers::load::Caller<tokio::net::TcpStream>) -> io::Result<u64> {
    let first = AtomicBool::new(true);
    Ok(caller.run(|| first.swap(false, Ordering::Relaxed)).await?.wrong)
}

/// How many files a process may have open.
fn open_files() -> io::Result<usize> {
    let limits = fs::read_to_string("/proc/self/limits")?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    Ok(line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(usize::MAX))
}
