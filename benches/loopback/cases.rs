//! What is measured: cases, ways, and one measurement.

use super::peers::{Proto, load::Caller};
use super::process::Process;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

/// A measurement that takes so much longer than it should has failed.
const LATE: Duration = Duration::from_secs(20);

/// What the callers do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// What they speak.
    pub proto: Proto,
    /// On how many connections.
    pub connections: usize,
    /// Calls at once on each.
    pub in_flight: usize,
    /// Bytes of the argument.
    pub size: usize,
}

impl Case {
    /// All cases.
    pub fn all() -> Vec<Self> {
        let framed = |size, connections| Self { proto: Proto::Framed, connections, in_flight: 1, size };
        let mux = |in_flight| Self { proto: Proto::Mux, connections: 1, in_flight, size: 64 };
        let sizes = [64, 16 << 10].into_iter();
        let framed = sizes.flat_map(|size| [1, 16, 64].map(|connections| framed(size, connections)));
        framed.chain([1, 64, 128].map(mux)).collect()
    }

    /// The ways that are open to these callers; the forwarder, to which the others are compared, is always one.
    pub fn ways(self) -> &'static [Way] {
        match self.proto {
            Proto::Framed => &[Way::Direct, Way::Forwarder, Way::ToFramed, Way::ToMux],
            Proto::Mux => &[Way::Direct, Way::Forwarder, Way::ToMux],
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { proto, connections, in_flight, size } = self;
        let connections = match connections {
            1 => "1 connection".to_owned(),
            more => format!("{more} connections"),
        };
        f.pad(&match proto {
            Proto::Framed => format!("{proto} {size} B, {connections}"),
            Proto::Mux => format!("{proto} {size} B, {connections}, {in_flight} in flight"),
        })
    }
}

/// What stands between the callers and the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Nothing.
    Direct,
    /// The forwarder.
    Forwarder,
    /// The gateway, which speaks framed Thrift to the service.
    ToFramed,
    /// The gateway, which speaks Mux to the service.
    ToMux,
}

/// All processes, each started once.
pub struct Servers {
    /// The framed service.
    pub framed: Process,
    /// The Mux service.
    pub mux: Process,
    /// The forwarder to the framed service.
    pub forward_framed: Process,
    /// The forwarder to the Mux service.
    pub forward_mux: Process,
    /// The gateway before the framed service.
    pub to_framed: Process,
    /// The gateway before the Mux service.
    pub to_mux: Process,
}

impl Servers {
    /// Starts them.
    ///
    /// # Errors
    /// When one does not listen.
    pub fn start() -> io::Result<Self> {
        let (framed, mux) = (backend(Proto::Framed)?, backend(Proto::Mux)?);
        Ok(Self {
            forward_framed: forwarder(framed.addr())?,
            forward_mux: forwarder(mux.addr())?,
            to_framed: gateway(framed.addr(), Proto::Framed)?,
            to_mux: gateway(mux.addr(), Proto::Mux)?,
            framed,
            mux,
        })
    }

    /// Where callers go, and whose processor time counts.
    fn of(&self, proto: Proto, way: Way) -> (SocketAddr, Option<&Process>) {
        let (process, counts) = match (way, proto) {
            (Way::Direct, Proto::Framed) => (&self.framed, false),
            (Way::Direct, Proto::Mux) => (&self.mux, false),
            (Way::Forwarder, Proto::Framed) => (&self.forward_framed, true),
            (Way::Forwarder, Proto::Mux) => (&self.forward_mux, true),
            (Way::ToFramed, _) => (&self.to_framed, true),
            (Way::ToMux, _) => (&self.to_mux, true),
        };
        (process.addr(), counts.then_some(process))
    }
}

/// The service, as a process of this program.
fn backend(proto: Proto) -> io::Result<Process> {
    Process::start(&super::this_program()?, &["backend", "--proto", &proto.to_string()])
}

/// The forwarder, as a process of this program.
///
/// # Errors
/// When it does not listen.
pub fn forwarder(dest: SocketAddr) -> io::Result<Process> {
    Process::start(&super::this_program()?, &["forward", "--dest", &dest.to_string()])
}

/// The gateway that users start, with one listener.
///
/// # Errors
/// When it does not listen.
pub fn gateway(service: SocketAddr, services: Proto) -> io::Result<Process> {
    let dtab = format!("/svc => /$/inet/{}/{}", service.ip(), service.port());
    let upstream = match services {
        Proto::Framed => "framed",
        Proto::Mux => "thriftmux",
    };
    let here = "127.0.0.1:0";
    let args = ["run", "--listen", here, "--dtab", &dtab, "--upstream", upstream, "--admin", here];
    Process::start(env!("CARGO_BIN_EXE_muxgate"), &args)
}

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Calls a second.
    pub rate: f64,
    /// Processor time of what stands between, per call, in microseconds; 0 where nothing does.
    pub cpu: f64,
    /// Replies that were not those of their calls.
    pub wrong: u64,
}

/// How long is measured, and how long calls are made before.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Before.
    pub warm: Duration,
    /// While it is measured.
    pub measured: Duration,
}

/// Makes calls in a closed loop.
///
/// # Errors
/// When a connection is lost or nothing comes back.
pub async fn measure(servers: &Servers, case: Case, way: Way, times: Times) -> io::Result<Sample> {
    let measured = timeout(times.warm + times.measured + LATE, measure_unbounded(servers, case, way, times));
    measured
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
        .map_err(|error| io::Error::other(format!("{case}, {way:?}: {error}")))
}

async fn measure_unbounded(servers: &Servers, case: Case, way: Way, times: Times) -> io::Result<Sample> {
    let (addr, process) = servers.of(case.proto, way);
    let mut callers = Vec::new();
    for _ in 0..case.connections {
        callers.push(connect(addr, case).await?);
    }
    let cpu = || process.map_or(Ok(Duration::ZERO), Process::cpu);
    let (callers, _, warm_wrong) = run(callers, times.warm).await?;
    let (cpu_before, begun) = (cpu()?, Instant::now());
    let (_, calls, wrong) = run(callers, times.measured).await?;
    let (took, used) = (begun.elapsed(), cpu()?.saturating_sub(cpu_before));
    Ok(Sample {
        rate: calls as f64 / took.as_secs_f64(),
        cpu: used.as_secs_f64() * 1e6 / calls.max(1) as f64,
        wrong: wrong + warm_wrong,
    })
}

/// One connection of a case.
///
/// # Errors
/// When it cannot be made.
pub async fn connect(addr: SocketAddr, case: Case) -> io::Result<Caller<TcpStream>> {
    let io = TcpStream::connect(addr).await?;
    io.set_nodelay(true)?;
    Caller::start(io, case.proto, case.size, case.in_flight).await
}

/// Gives back the callers, how many calls they made, and how many replies were wrong.
async fn run(
    callers: Vec<Caller<TcpStream>>,
    time: Duration,
) -> io::Result<(Vec<Caller<TcpStream>>, u64, u64)> {
    let end = Instant::now() + time;
    let mut running = JoinSet::new();
    for mut caller in callers {
        running.spawn(async move {
            let tally = caller.run(|| Instant::now() < end).await?;
            io::Result::Ok((caller, tally))
        });
    }
    let (mut callers, mut calls, mut wrong) = (Vec::new(), 0, 0);
    while let Some(ended) = running.join_next().await {
        let (caller, tally) = ended.map_err(io::Error::other)??;
        callers.push(caller);
        calls += tally.calls;
        wrong += tally.wrong;
    }
    Ok((callers, calls, wrong))
}
