//! Small calls beside a large one on the same Mux session: what the large one costs the others.
//!
//! Caller, gateway and service are processes of their own, on loopback. The caller makes small calls at a steady rate, each
//! counted from the moment when it was due; in every other round there is always a call of 64 MiB in flight on the same
//! session, in pieces both ways, on both sides of the gateway. The limits of all three are raised for it, and nothing else.
//! The same without a gateway shows what of it is the machine's and the two ends'.
//!
//! ```text
//! cargo bench --bench fragments [-- --seconds S] [--rounds N] [--rate R] [--mbit M]
//! ```
//!
//! Caller and service write `M` million bits a second at most, as on a network of that speed; 0 is as fast as they can, which
//! leaves no processor idle.

mod caller;
mod pace;
#[path = "../loopback/process.rs"]
mod process;
mod service;

use caller::{Caller, Round};
use process::Process;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Builder;

/// Bytes of the large call's argument, and of its result.
const LARGE: usize = 64 << 20;
/// Largest message that anybody takes: the large one with what is around it.
const LIMIT: usize = LARGE + (1 << 20);
/// Million bits a second that caller and service write, if nothing else is said.
const MEGABITS: u32 = 1000;
/// What the small calls' p99 may grow by.
const TARGET: f64 = 3.0;

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match args.first().map(String::as_str) {
            Some("service") => {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
                println!("listening {}", listener.local_addr()?);
                let megabits = value(&args, "--mbit")?.unwrap_or(MEGABITS);
                service::serve(listener, megabits).await
            }
            // `cargo test --benches` runs this too, and wants no numbers.
            _ if !args.iter().any(|arg| arg == "--bench") => Ok(()),
            _ => compare(&args).await,
        }
    })
}

async fn compare(args: &[String]) -> io::Result<()> {
    let time =
        Duration::try_from_secs_f64(value(args, "--seconds")?.unwrap_or(5.0)).map_err(io::Error::other)?;
    let rounds = value(args, "--rounds")?.unwrap_or(3);
    let rate: u32 = value(args, "--rate")?.unwrap_or(500);
    let program = std::env::current_exe()?;
    let program = program.to_str().ok_or_else(|| io::Error::other("the path of this program is no text"))?;
    let megabits = value(args, "--mbit")?.unwrap_or(MEGABITS);
    let service = Process::start(program, &["service", "--mbit", &megabits.to_string()])?;
    let (gateway, _config) = gateway(service.addr())?;
    let mut direct = Caller::connect(service.addr(), megabits).await?;
    let mut caller = Caller::connect(gateway.addr(), megabits).await?;
    for warmed in [&mut direct, &mut caller] {
        warmed.round(Duration::from_secs(1), rate, false).await?;
    }
    println!("{rate} small calls a second on one session, {megabits} Mbit/s; times in ms");
    println!(
        "{:<28}{:>8}{:>8}{:>8}{:>8}{:>8}{:>14}",
        "", "calls", "p50", "p99", "p99.9", "max", "large calls"
    );
    let mut ratios = Vec::new();
    let (mut alone, mut beside) = (Round::default(), Round::default());
    for _ in 0..rounds {
        print("no gateway, alone", &direct.round(time, rate, false).await?);
        print("no gateway, 64 MiB in flight", &direct.round(time, rate, true).await?);
        let cpu = gateway.cpu()?;
        let one = caller.round(time, rate, false).await?;
        print("alone", &one);
        let two = caller.round(time, rate, true).await?;
        print("64 MiB in flight", &two);
        println!("{:<28}{:.2} s of processor time in the gateway", "", (gateway.cpu()? - cpu).as_secs_f64());
        ratios.push(two.at(99.0) / one.at(99.0));
        alone.join(one);
        beside.join(two);
    }
    print("alone, all rounds", &alone);
    print("64 MiB in flight, all", &beside);
    ratios.sort_by(f64::total_cmp);
    let ratio = beside.at(99.0) / alone.at(99.0);
    let middle = ratios.get(ratios.len() / 2).copied().unwrap_or(ratio);
    println!(
        "p99 beside / alone: {ratio:.2} of all, {middle:.2} in the middle round (target: below {TARGET})"
    );
    println!("most memory of the gateway: {} MiB", gateway.resident()?.1 >> 10);
    Ok(())
}

fn print(name: &str, round: &Round) {
    println!(
        "{name:<28}{:>8}{:>8.2}{:>8.2}{:>8.2}{:>8.2}{:>14}",
        round.calls(),
        round.at(50.0),
        round.at(99.0),
        round.at(99.9),
        round.at(100.0),
        round.large
    );
}

/// The gateway that users start, with room for large messages.
fn gateway(service: SocketAddr) -> io::Result<(Process, tempfile::NamedTempFile)> {
    let mut file = tempfile::Builder::new().suffix(".yaml").tempfile()?;
    write!(
        file,
        "admin: {{port: 0}}\nlisteners: [{{port: 0, maxFrameBytes: {LIMIT}, maxQueuedBytes: {}}}]\n\
         clients: [{{maxFrameBytes: {LIMIT}}}]\ndtab: /svc => /$/inet/{}/{}\n",
        4 * LIMIT,
        service.ip(),
        service.port()
    )?;
    let path = file.path().to_str().ok_or_else(|| io::Error::other("a path that is no text"))?;
    let gateway = Process::start(env!("CARGO_BIN_EXE_muxgate"), &["run", path])?;
    Ok((gateway, file))
}

fn value<T: FromStr>(args: &[String], flag: &str) -> io::Result<Option<T>> {
    let Some(at) = args.iter().position(|arg| arg == flag) else { return Ok(None) };
    let value = args.get(at + 1).and_then(|value| value.parse().ok());
    value.map(Some).ok_or_else(|| io::Error::other(format!("{flag} needs a value")))
}
