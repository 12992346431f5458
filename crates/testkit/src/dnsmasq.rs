//! dnsmasq, a DNS server for what lies below `.test`. Its records change by a restart on the same port.

use crate::proc::{Proc, START_LIMIT};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};

/// Ports that are tried before it is given up.
const TRIES: usize = 20;

/// A running dnsmasq, or one that was killed.
pub struct Dnsmasq {
    proc: Proc,
    addr: SocketAddr,
}

impl Dnsmasq {
    /// Starts it on a free port of 127.0.0.1 with these [`records`](host), and waits until it answers.
    ///
    /// # Panics
    /// With its log, if it does not start.
    pub fn start(records: &[String]) -> Self {
        let addr = free();
        Self { proc: run(addr, records), addr }
    }

    /// Where it listens, for UDP and TCP.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Starts it anew on the same port, with other records. What ran before is killed.
    ///
    /// # Panics
    /// With its log, if it does not start.
    pub fn restart(&mut self, records: &[String]) {
        self.proc.kill();
        self.proc = run(self.addr, records);
    }

    /// `kill -9`: questions are refused from now on.
    pub fn kill(&self) {
        self.proc.kill();
    }

    /// From now on questions stay without any answer.
    pub fn freeze(&self) {
        self.proc.freeze();
    }

    /// Ends [`freeze`](Self::freeze).
    pub fn thaw(&self) {
        self.proc.thaw();
    }
}

/// An address of a host; a host may have several.
pub fn host(name: &str, ip: impl Into<IpAddr>, ttl: u32) -> String {
    format!("--host-record={name},{},{ttl}", ip.into())
}

/// An SRV record. All of them live as long as [`ttl`] says, or 0 s.
pub fn srv(name: &str, target: &str, port: u16, priority: u16, weight: u16) -> String {
    format!("--srv-host={name},{target},{port},{priority},{weight}")
}

/// How long records live that do not say so themselves, in seconds.
pub fn ttl(seconds: u32) -> String {
    format!("--local-ttl={seconds}")
}

fn run(addr: SocketAddr, records: &[String]) -> Proc {
    let port = format!("--port={}", addr.port());
    let user = format!("--user={}", std::env::var("USER").unwrap_or_else(|_| "root".into()));
    let fixed = [
        "--keep-in-foreground",
        "--conf-file=/dev/null",
        "--listen-address=127.0.0.1",
        "--bind-interfaces",
        "--no-resolv",
        "--no-hosts",
        "--pid-file=",
        "--local=/test/",
        "--log-facility=-",
        &port,
        &user,
    ];
    let args = fixed.into_iter().chain(records.iter().map(String::as_str));
    let proc = Proc::start("dnsmasq", "dnsmasq", args, &[]);
    let started = |line: &str| line.contains("started, version").then_some(());
    if let Err(why) = proc.err.find(0, START_LIMIT, started) {
        panic!("dnsmasq does not start: {why}\n{}", proc.report());
    }
    proc
}

/// A port that is free for UDP and for TCP.
fn free() -> SocketAddr {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    (0..TRIES)
        .find_map(|_| {
            let udp = UdpSocket::bind(any).ok()?;
            let addr = udp.local_addr().ok()?;
            TcpListener::bind(addr).ok().map(|_| addr)
        })
        .expect("a free port")
}
