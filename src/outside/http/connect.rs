//! Connections of the client, encrypted where certificates are given.

use super::CONNECT_WITHIN;
use http::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use muxgate_rpc::Link;
use muxgate_rpc::tls::ClientTls;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::time::timeout;
use tower::Service;

/// Connects.
#[derive(Clone)]
pub(super) struct Connector {
    tcp: HttpConnector,
    tls: Option<ClientTls>,
}

impl Connector {
    pub(super) fn new(tls: Option<ClientTls>) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(CONNECT_WITHIN));
        tcp.set_connect_timeout(Some(CONNECT_WITHIN));
        Self { tcp, tls }
    }
}

/// A connection.
pub(super) struct Stream(TokioIo<Link>);

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = Box<dyn std::error::Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.tcp.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (connecting, tls) = (self.tcp.call(uri), self.tls.clone());
        Box::pin(async move {
            let tcp = connecting.await?.into_inner();
            let Some(tls) = tls else { return Ok(Stream(TokioIo::new(Link::Tcp(tcp)))) };
            let secured = timeout(CONNECT_WITHIN, Link::connect(tcp, &tls)).await;
            let secured = secured.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
            Ok(Stream(TokioIo::new(secured)))
        })
    }
}

impl hyper::rt::Read for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: hyper::rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl hyper::rt::Write for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
