//! One call through the whole flow: in memory with a service that answers at once, and over loopback sockets.
//!
//! Before it measures time it prints what a call allocates. The allocator counts all the while, which costs a few
//! nanoseconds an allocation: compare these times with each other, not with those of `loopback`.

#[path = "peers/allocations.rs"]
mod allocations;
#[path = "peers/compact.rs"]
mod compact;
#[path = "peers/inside.rs"]
mod inside;
mod peers;

use allocations::PerCall;
use criterion::{Criterion, Throughput};
use inside::{listen, naming};
use muxgate::flow::accept::Edge;
use muxgate::flow::address::Address;
use muxgate::flow::admit::Admit;
use muxgate::flow::bind::{self, Bind, Bounds, Clusters};
use muxgate::flow::choose::{Build, Cluster, Parts};
use muxgate::flow::dispatch::Upstream;
use muxgate::flow::{accept, choose};
use muxgate::names::Addr;
use muxgate::names::namers::configured::Env;
use muxgate::names::namers::{dns, system};
use muxgate::names::{Binder, Bound};
use muxgate::observe::stats::Limits;
use muxgate::observe::{Registry, Tracer};
use muxgate_rpc::Drain;
use muxgate_rpc::events::Uncounted;
use muxgate_rpc::io::ReadBuffer;
use muxgate_rpc::{Failure, Pressure, Request, Response, Rules, Serve, Svc, mux, thrift};
use muxgate_wire::mux::server::ServerConfig;
use muxgate_wire::name::{Dtab, Path};
use muxgate_wire::thrift::Protocol;
use peers::load::Caller;
use peers::{Proto, backend};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::DuplexStream;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

/// Sizes of the argument, in bytes.
const SIZES: [usize; 2] = [64, 16 << 10];
/// Bytes asked for by one read from memory.
const CHUNK: usize = 64 << 10;

fn main() -> io::Result<()> {
    let mut criterion = Criterion::default().configure_from_args();
    allocated()?;
    in_memory(&mut criterion)?;
    over_loopback(&mut criterion)?;
    criterion.final_summary();
    Ok(())
}

/// Prints what a call allocates. Memory that grows with the body is where the body is put: by the read of the request
/// and by that of the reply, which is 2 bytes a byte; what is above 2 was copied into memory of its own. Below 2, a
/// buffer that is allocated whole for a read of any size had room for the body.
fn allocated() -> io::Result<()> {
    let [small, large] = SIZES;
    println!("what a call allocates, one at a time on one connection");
    println!(
        "{:<20}{:>12}{:>12}{:>12}{:>12}{:>22}",
        "", "64 B", "bytes", "16 KiB", "bytes", "bytes per body byte"
    );
    let row = |name: String, few: PerCall, many: PerCall| {
        let grows = (many.bytes - few.bytes) / (large - small) as f64;
        println!(
            "{name:<20}{:>12.2}{:>12.0}{:>12.2}{:>12.0}{grows:>22.2}",
            few.count, few.bytes, many.count, many.bytes
        );
    };
    for callers in [Proto::Framed, Proto::Mux] {
        for services in [Proto::Framed, Proto::Mux] {
            let per_call = |size| allocations::per_call(callers, services, size);
            row(format!("{callers} -> {services}"), per_call(small)?, per_call(large)?);
        }
        let per_call = |size| allocations::per_translated_call(callers, size);
        row(format!("{callers} -> compact"), per_call(small)?, per_call(large)?);
    }
    Ok(())
}

/// Makes one call at a time.
fn measure<T: muxgate_rpc::io::Io>(
    criterion: &mut Criterion,
    runtime: &Runtime,
    group: &str,
    name: String,
    mut caller: Caller<T>,
) {
    let mut group = criterion.benchmark_group(group);
    group.throughput(Throughput::Elements(1));
    group.bench_function(name, |bencher| {
        bencher.iter_custom(|calls| {
            let left = AtomicU64::new(calls);
            let more = || {
                left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
            };
            let begun = tokio::time::Instant::now();
            let tally = runtime.block_on(caller.run(more)).expect("the calls are answered");
            let took = begun.elapsed();
            assert_eq!((tally.calls, tally.wrong), (calls, 0));
            took
        });
    });
}

fn in_memory(criterion: &mut Criterion) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    for callers in [Proto::Framed, Proto::Mux] {
        for size in SIZES {
            let caller = runtime.block_on(async {
                let (ours, theirs) = tokio::io::duplex(CHUNK);
                tokio::spawn(serve(theirs, callers, rooms()));
                Caller::start(ours, callers, size, 1).await
            })?;
            measure(criterion, &runtime, "flow/memory", format!("{callers}/{size}"), caller);
        }
    }
    Ok(())
}

fn over_loopback(criterion: &mut Criterion) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    // Calls of binary callers pass to the first two services as they come, and are translated for the third.
    for (services, upstream, protocol) in [
        ("framed", Upstream::Framed, None),
        ("mux", Upstream::ThriftMux, None),
        ("compact", Upstream::Framed, Some(Protocol::Compact)),
    ] {
        for callers in [Proto::Framed, Proto::Mux] {
            for size in SIZES {
                let caller = runtime.block_on(async {
                    let service = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
                    let gateway = listen(service.local_addr()?, upstream, protocol)?;
                    match services {
                        "framed" => tokio::spawn(backend::serve(service, Proto::Framed)),
                        "mux" => tokio::spawn(backend::serve(service, Proto::Mux)),
                        _ => tokio::spawn(compact::serve(service)),
                    };
                    let io = TcpStream::connect(gateway.address()).await?;
                    io.set_nodelay(true)?;
                    Caller::start(io, callers, size, 1).await
                })?;
                measure(criterion, &runtime, "flow/loopback", format!("{callers}_{services}/{size}"), caller);
            }
        }
    }
    Ok(())
}

/// Answers `echo` at once, from memory.
struct Echo;

impl Serve for Echo {
    async fn call(&self, request: &mut Request) -> Result<Response, Failure> {
        let mut reply = bytes::BytesMut::from(&request.body.bytes()[..]);
        backend::answer(&mut reply).expect("a call of echo");
        Response::judged(&request.body, reply.freeze(), Vec::new(), false)
    }
}

/// One cluster with one endpoint, whatever the name.
struct OneCluster;

impl Clusters for OneCluster {
    type Cluster = Svc;

    fn cluster(&self, bound: &Bound) -> Svc {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
        let build: Arc<dyn Build> = Arc::new(|_: &Path, _: SocketAddr| Svc::new(Echo));
        Svc::new(Cluster::new(Parts {
            id: bound.id.clone(),
            params: choose::Params::default(),
            binding: Duration::from_secs(1),
            members: Addr::bound([address.into()]).fixed(),
            build,
            events: Arc::new(()),
        }))
    }
}

/// The rooms from the edge to the choice of an endpoint.
fn rooms() -> impl Serve {
    let registry = Registry::new(Limits::default());
    let dtab = Dtab::parse("/svc => /$/inet/127.0.0.1/9").expect("a table");
    let namers = system(&Env::of(&dns::Params::default())).into_iter().collect();
    let binder = Arc::new(Binder::new(namers, watch::channel(dtab.into()).1));
    let params: bind::ParamsOf = Arc::new(|_: &Path| bind::Params::default());
    let bind = Bind::new(binder, Arc::new(OneCluster), params, Arc::clone(&registry), &Bounds::default());
    let named = Address::new(&naming(), Admit::new(Pressure::default(), bind));
    Edge::new(Tracer::off(), registry.listener("bench"), named)
}

async fn serve(io: DuplexStream, callers: Proto, service: impl Serve) {
    let limits = accept::Params::new("bench", (Ipv4Addr::LOCALHOST, 0).into());
    let (drain, read) = (Drain::default(), ReadBuffer::new(CHUNK));
    match callers {
        Proto::Framed => {
            let params = thrift::ServerParams::new(limits.max_frame, limits.stall, limits.idle);
            let caller = thrift::Caller { io, read, framing: thrift::Framing::Framed, peer: None.into() };
            thrift::serve(caller, &Arc::new(service), &params, &drain, &Uncounted).await;
        }
        Proto::Mux => {
            let params = mux::ServerParams {
                max_frame: limits.max_frame,
                max_queued: limits.max_queued,
                stall: limits.stall,
                idle: limits.idle,
                rules: Rules::default(),
                session: ServerConfig::default(),
                pressure: Pressure::default(),
                upgrade: None,
            };
            mux::serve(io, read, None, Arc::new(service), &params, &drain, Arc::new(Uncounted)).await;
        }
    }
}
