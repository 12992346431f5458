//! Connections of the store's port: bounded, encrypted if there are certificates, cut when they take nothing.

use super::stall::Stalling;
use axum::Router;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use muxgate_rpc::io::Io;
use muxgate_rpc::tls::{Identity, ServerTls};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

/// Most connections at once; more wait in the kernel's queue.
const MAX_CONNECTIONS: usize = 8192;

/// Time for a TLS handshake, and for the headers of a request.
const HEADERS_WITHIN: Duration = Duration::from_secs(30);

/// How long a caller may take nothing of what is ready for it.
const STALL: Duration = Duration::from_secs(30);

/// Time for answers that are being written when the server stops.
const GRACE: Duration = Duration::from_secs(2);

/// A pause after a connection that could not be accepted: descriptors may be short.
const PAUSE: Duration = Duration::from_millis(100);

/// Who a request comes from: an extension of each.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub address: SocketAddr,
    /// Of a certificate that was verified.
    pub identity: Option<Arc<Identity>>,
}

/// Serves until `stop`, then a little longer for answers that are on their way.
pub(super) async fn serve(
    listener: TcpListener,
    tls: Option<ServerTls>,
    router: Router,
    stop: CancellationToken,
) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let tasks = TaskTracker::new();
    loop {
        let next = async {
            let permit = Arc::clone(&room).acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            () = stop.cancelled() => break,
            next = next => next,
        };
        let (socket, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection was not accepted");
                sleep(PAUSE).await;
                continue;
            }
        };
        let (tls, router, stop) = (tls.clone(), router.clone(), stop.clone());
        tasks.spawn(async move {
            // Nothing is lost by a socket that keeps small answers back.
            let _ = socket.set_nodelay(true);
            match tls {
                None => speak(socket, Connection { address, identity: None }, router, stop).await,
                Some(tls) => match timeout(HEADERS_WITHIN, tls.accept(socket)).await {
                    Ok(Ok((socket, identity))) => {
                        let identity = identity.map(Arc::new);
                        speak(socket, Connection { address, identity }, router, stop).await;
                    }
                    Ok(Err(error)) => tracing::debug!(%address, %error, "no TLS"),
                    Err(_) => tracing::debug!(%address, "a handshake took too long"),
                },
            }
            drop(permit);
        });
    }
    drop(listener);
    tasks.close();
    if timeout(GRACE, tasks.wait()).await.is_err() {
        tracing::debug!(connections = tasks.len(), "cut off at the end");
    }
}

async fn speak(io: impl Io, from: Connection, router: Router, stop: CancellationToken) {
    let service = service_fn(|mut request: http::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(from.clone());
        router.clone().oneshot(request.map(axum::body::Body::new))
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEADERS_WITHIN).half_close(true);
    let connection = http.serve_connection(TokioIo::new(Stalling::new(io, STALL)), service);
    tokio::pin!(connection);
    // What goes wrong on a connection is its own matter.
    let _ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
}
