//! The whole gateway over loopback sockets, beside a byte forwarder in the same run.
//!
//! Services, forwarder and gateway are processes of their own; callers are here. The cases take turns within each round
//! and the ways within each case, so that what disturbs the machine disturbs all alike; what counts is the ratio to the
//! forwarder. Every reply is compared with what its call must get, and one that differs fails the run.
//!
//! ```text
//! cargo bench --bench loopback [-- --quick] [--seconds S] [--rounds N]
//! ```
//!
//! Callers, proxy and service share the machine's processors: calls a second say what the whole chain manages,
//! processor time of the proxy per call says what the proxy costs.

mod cases;
mod forward;
mod idle;
#[path = "../peers/mod.rs"]
mod peers;
mod process;
mod report;

use cases::{Case, Servers, Times};
use peers::backend;
use report::Row;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Builder;

/// The share of the measured time that calls are made before.
const WARM: f64 = 0.2;

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match args.first().map(String::as_str) {
            Some("backend") => {
                let proto = required(&args, "--proto")?;
                backend::serve(listener().await?, proto).await
            }
            Some("forward") => {
                let dest: SocketAddr = required(&args, "--dest")?;
                forward::serve(listener().await?, dest).await
            }
            // `cargo test --benches` runs this too, and wants no numbers.
            _ if !args.iter().any(|arg| arg == "--bench") => Ok(()),
            _ => compare(&args).await,
        }
    })
}

/// A free port, told to whoever started us.
async fn listener() -> io::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    println!("listening {}", listener.local_addr()?);
    Ok(listener)
}

async fn compare(args: &[String]) -> io::Result<()> {
    let (seconds, rounds) = if args.iter().any(|arg| arg == "--quick") { (0.25, 2) } else { (1.0, 5) };
    let seconds = value(args, "--seconds")?.unwrap_or(seconds);
    let rounds = value(args, "--rounds")?.unwrap_or(rounds);
    let measured = Duration::try_from_secs_f64(seconds).map_err(io::Error::other)?;
    let times = Times { warm: measured.mul_f64(WARM), measured };
    let servers = Servers::start()?;
    let idle = idle::measure(servers.framed.addr(), servers.mux.addr()).await?;
    let mut rows: Vec<Row> = Case::all()
        .into_iter()
        .flat_map(|case| case.ways().iter().map(move |&way| Row { case, way, samples: Vec::new() }))
        .collect();
    eprintln!("{} measurements of {seconds} s in {rounds} rounds", rows.len());
    for round in 1..=rounds {
        for row in &mut rows {
            row.samples.push(cases::measure(&servers, row.case, row.way, times).await?);
        }
        eprintln!("round {round} of {rounds} done");
    }
    let peaks = [
        ("forwarder, framed", &servers.forward_framed),
        ("forwarder, thriftmux", &servers.forward_mux),
        ("gateway to framed", &servers.to_framed),
        ("gateway to thriftmux", &servers.to_mux),
    ];
    let peaks: io::Result<Vec<_>> =
        peaks.into_iter().map(|(name, process)| Ok((name, process.resident()?.1))).collect();
    report::print(&rows, &idle, &peaks?);
    let wrong = rows.iter().flat_map(|row| &row.samples).map(|sample| sample.wrong);
    match wrong.chain(idle.iter().map(|idle| idle.wrong)).sum() {
        0u64 => Ok(()),
        wrong => Err(io::Error::other(format!("{wrong} replies were not those of their calls"))),
    }
}

fn value<T: FromStr>(args: &[String], flag: &str) -> io::Result<Option<T>> {
    let Some(at) = args.iter().position(|arg| arg == flag) else { return Ok(None) };
    let value = args.get(at + 1).and_then(|value| value.parse().ok());
    value.map(Some).ok_or_else(|| io::Error::other(format!("{flag} needs a value")))
}

fn required<T: FromStr>(args: &[String], flag: &str) -> io::Result<T> {
    value(args, flag)?.ok_or_else(|| io::Error::other(format!("{flag} is missing")))
}

/// The path of this program, to start it in another role.
fn this_program() -> io::Result<String> {
    let path = std::env::current_exe()?;
    path.into_os_string().into_string().map_err(|path| io::Error::other(format!("{path:?} is no text")))
}
