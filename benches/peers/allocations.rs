//! What one call through the whole flow allocates.
//!
//! The gateway runs on the thread that counts, its caller and its service on another, so that only its own allocations
//! are counted. A buffer that grows counts as a new one, of its new size.

use super::compact;
use super::inside::listen;
use super::peers::{Proto, backend, load::Caller};
use muxgate::flow::dispatch::Upstream;
use muxgate_wire::thrift::Protocol;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Calls before the count begins: connections are made, names bound, buffers grown.
const BEFORE: u64 = 200;
/// Calls that are counted.
const COUNTED: u64 = 1000;

/// What a call allocates, on average.
#[derive(Clone, Copy, Debug)]
pub struct PerCall {
    /// Allocations.
    pub count: f64,
    /// Bytes of all of them.
    pub bytes: f64,
}

/// Makes calls of `size` bytes, one at a time on one connection, and counts.
///
/// # Errors
/// When a call fails or its reply is wrong.
pub fn per_call(callers: Proto, services: Proto, size: usize) -> io::Result<PerCall> {
    let upstream = match services {
        Proto::Framed => Upstream::Framed,
        Proto::Mux => Upstream::ThriftMux,
    };
    count(callers, upstream, None, size, move |listener| tokio::spawn(backend::serve(listener, services)))
}

/// As [`per_call`], with framed services that speak compact: calls and replies are translated.
///
/// # Errors
/// As [`per_call`].
pub fn per_translated_call(callers: Proto, size: usize) -> io::Result<PerCall> {
    let protocol = Some(Protocol::Compact);
    count(callers, Upstream::Framed, protocol, size, |listener| tokio::spawn(compact::serve(listener)))
}

fn count(
    callers: Proto,
    upstream: Upstream,
    protocol: Option<Protocol>,
    size: usize,
    serve: impl FnOnce(TcpListener) -> JoinHandle<io::Result<()>> + Send + 'static,
) -> io::Result<PerCall> {
    let (service, service_at) = oneshot::channel();
    let (gateway, gateway_at) = oneshot::channel();
    let (ready, is_ready) = oneshot::channel();
    let (start, is_started) = oneshot::channel();
    let (finish, is_finished) = oneshot::channel();
    let others = std::thread::spawn(move || -> io::Result<()> {
        runtime()?.block_on(async {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            let _ = service.send(listener.local_addr()?);
            let served = serve(listener);
            let gateway: SocketAddr = gateway_at.await.map_err(io::Error::other)?;
            let io = TcpStream::connect(gateway).await?;
            io.set_nodelay(true)?;
            let mut caller = Caller::start(io, callers, size, 1).await?;
            make_calls(&mut caller, BEFORE).await?;
            let _ = ready.send(());
            is_started.await.map_err(io::Error::other)?;
            make_calls(&mut caller, COUNTED).await?;
            served.abort();
            let _ = finish.send(());
            Ok(())
        })
    });
    let runtime = runtime()?;
    let listening = runtime.block_on(async {
        let listener = listen(service_at.await.map_err(io::Error::other)?, upstream, protocol)?;
        let _ = gateway.send(listener.address());
        // An error here is told by the other thread's end.
        let _ = is_ready.await;
        io::Result::Ok(listener)
    });
    let counted = allocation_counter::measure(|| {
        runtime.block_on(async {
            let _ = start.send(());
            let _ = is_finished.await;
        });
    });
    others.join().map_err(|_| io::Error::other("the callers panicked"))??;
    drop(listening?);
    let calls = COUNTED as f64;
    Ok(PerCall { count: counted.count_total as f64 / calls, bytes: counted.bytes_total as f64 / calls })
}

async fn make_calls(caller: &mut Caller<TcpStream>, calls: u64) -> io::Result<()> {
    let left = AtomicU64::new(calls);
    let more = || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
    let tally = caller.run(more).await?;
    match (tally.calls, tally.wrong) {
        (made, 0) if made == calls => Ok(()),
        (made, wrong) => Err(io::Error::other(format!("{made} of {calls} calls made, {wrong} wrong"))),
    }
}

fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}
