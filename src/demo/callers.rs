//! Two ways to bring a call to the gateway.

use super::services::{MAX_FRAME, Service};
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use muxgate_rpc::events::Uncounted;
use muxgate_rpc::{Payload, Request, Serve, mux};
use muxgate_wire::mux::client::ClientConfig;
use muxgate_wire::name::Path;
use parking_lot::Mutex;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_util::codec::{Framed, LengthDelimitedCodec};

/// Connections to one listener that are kept for later calls.
const MAX_IDLE: usize = 64;

/// Time to connect.
const CONNECT: Duration = Duration::from_secs(2);

/// Plain framed Thrift, as an Apache Thrift client speaks it: a call names no service, so each has a listener of its own.
pub(super) struct Plain {
    gate: String,
    idle: Mutex<Vec<Framed<TcpStream, LengthDelimitedCodec>>>,
}

impl Plain {
    pub fn new(gate: String) -> Self {
        Self { gate, idle: Mutex::new(Vec::new()) }
    }

    pub async fn call(&self, body: Bytes) -> Result<Bytes, String> {
        let kept = self.idle.lock().pop();
        let mut connection = match kept {
            Some(connection) => connection,
            None => {
                let socket =
                    TcpStream::connect(&self.gate).await.map_err(|error| format!("connect: {error}"))?;
                socket.set_nodelay(true).map_err(|error| format!("connect: {error}"))?;
                LengthDelimitedCodec::builder().max_frame_length(MAX_FRAME).new_framed(socket)
            }
        };
        connection.send(body).await.map_err(|error| format!("send: {error}"))?;
        let reply = connection.next().await.ok_or("the gateway closed the connection")?;
        let reply = reply.map_err(|error| format!("receive: {error}"))?.freeze();
        let mut idle = self.idle.lock();
        if idle.len() < MAX_IDLE {
            idle.push(connection);
        }
        Ok(reply)
    }
}

/// ThriftMux, as a Finagle client speaks it: one connection, and every call names its service.
pub(super) struct Multiplexed(mux::Client);

impl Multiplexed {
    pub fn new(address: SocketAddr) -> Self {
        let params = mux::ClientParams {
            address,
            tls: None,
            connect: CONNECT,
            max_frame: MAX_FRAME,
            declared_fails: false,
            life: None,
            session: ClientConfig::default(),
            upgrade: None,
        };
        Self(mux::Client::new(params, Arc::new(Uncounted)))
    }

    pub async fn call(&self, service: Service, body: Bytes) -> Result<Bytes, String> {
        let body = Payload::thrift(body).map_err(|error| error.to_string())?;
        let mut request = Request::new(body, Instant::now(), None);
        request.dst = Path::parse(format!("/{}", service.name())).map_err(|error| error.to_string())?;
        let response = self.0.call(&mut request).await.map_err(|failure| format!("{failure:?}"))?;
        Ok(response.body)
    }
}
