//! The services: `users` answers at once, `orders` takes its time, `payments` fails at times and has one endpoint of two
//! that is now and then overloaded.

use super::calls::{Call, Outcome};
use bytes::Bytes;
use muxgate_rpc::events::Uncounted;
use muxgate_rpc::io::ReadBuffer;
use muxgate_rpc::{Drain, Failure, Pressure, Request, Response, Rules, Serve, Why, mux, thrift};
use muxgate_wire::mux::server::ServerConfig;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

/// Endpoints of all services together: payments has two.
pub const ENDPOINTS: usize = 4;

/// Connections that one endpoint holds.
const MAX_CONNECTIONS: usize = 256;

/// Largest call; those of the demo are small.
pub(super) const MAX_FRAME: usize = 64 << 10;

/// A caller that makes no progress for so long is cut off.
const STALL: Duration = Duration::from_secs(10);

/// The second endpoint of payments refuses everything for the last part of each period.
const PERIOD: Duration = Duration::from_secs(12);
const REFUSING: Duration = Duration::from_secs(3);

/// How long the endpoints may take to end.
const END_WITHIN: Duration = Duration::from_secs(2);

/// A service of the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Fast, over ThriftMux.
    Users,
    /// Slow, over framed Thrift.
    Orders,
    /// Unreliable, over ThriftMux.
    Payments,
}

impl Service {
    /// In the order of their ports.
    pub const ALL: [Self; 3] = [Self::Users, Self::Orders, Self::Payments];

    /// The name: of the listener, of the file in the folder, and in `/svc/NAME`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Users => "users",
            Self::Orders => "orders",
            Self::Payments => "payments",
        }
    }

    pub(super) fn method(self) -> &'static str {
        match self {
            Self::Users => "getName",
            Self::Orders => "getStatus",
            Self::Payments => "charge",
        }
    }

    /// How the service is called, in Thrift's own language.
    pub(super) fn signature(self) -> String {
        format!("string {}(1: i64 id)", self.method())
    }

    /// What the service speaks, as `clients.protocol` calls it.
    pub(super) fn protocol(self) -> &'static str {
        match self {
            Self::Users | Self::Payments => "thriftmux",
            Self::Orders => "framed",
        }
    }

    /// The one right answer: callers compare every reply with it.
    pub(super) fn answer(self, id: i64) -> Outcome {
        match self {
            Self::Users => Outcome::Result(format!("user {id}")),
            Self::Orders => Outcome::Result(format!("order {id} is on its way")),
            Self::Payments if id % 10 == 0 => Outcome::Exception(format!("payment {id} could not be booked")),
            Self::Payments => Outcome::Result(format!("payment {id} is booked")),
        }
    }

    /// 30 to 80 ms for orders, spread evenly.
    fn takes(self, id: i64) -> Duration {
        match self {
            Self::Orders => Duration::from_millis(30 + id.wrapping_mul(37).rem_euclid(51) as u64),
            _ => Duration::ZERO,
        }
    }
}

/// One endpoint: answers calls, whatever the transport.
struct Endpoint {
    service: Service,
    /// Whether it is the one that refuses at times, and since when it runs.
    refuses_since: Option<Instant>,
}

impl Endpoint {
    fn refuses(&self) -> bool {
        let Some(since) = self.refuses_since else { return false };
        let into = since.elapsed().as_millis() % PERIOD.as_millis();
        into >= (PERIOD - REFUSING).as_millis()
    }
}

impl Serve for Endpoint {
    async fn call(&self, request: &mut Request) -> Result<Response, Failure> {
        if self.refuses() {
            return Err(Failure::new(Why::Overload, "this endpoint has a bad moment"));
        }
        let bad = |error: ::thrift::Error| Failure::new(Why::BadRequest, error.to_string());
        let call = Call::read(request.body.bytes()).map_err(bad)?;
        let takes = self.service.takes(call.id);
        if !takes.is_zero() {
            sleep(takes).await;
        }
        let reply: Bytes = call.answer(&self.service.answer(call.id)).map_err(bad)?;
        Response::judged(&request.body, reply, Vec::new(), false)
    }
}

/// The endpoints of all services.
pub struct Services {
    endpoints: Vec<(Service, SocketAddr)>,
    running: JoinSet<()>,
    ended: Drain,
}

impl Services {
    /// Starts them at these addresses: users, orders, payments, and payments again.
    ///
    /// # Errors
    /// When an address cannot be listened on.
    pub async fn start(addresses: &[SocketAddr; ENDPOINTS]) -> Result<Self, String> {
        let [users, orders, payments] = Service::ALL;
        let mut services = Self { endpoints: Vec::new(), running: JoinSet::new(), ended: Drain::default() };
        for (place, (service, address)) in
            [users, orders, payments, payments].into_iter().zip(addresses).enumerate()
        {
            let cannot = |error| format!("{} cannot listen on {address}: {error}", service.name());
            let listener = TcpListener::bind(address).await.map_err(cannot)?;
            services.endpoints.push((service, listener.local_addr().map_err(cannot)?));
            let refuses_since = (place + 1 == ENDPOINTS).then(Instant::now);
            let endpoint = Arc::new(Endpoint { service, refuses_since });
            services.running.spawn(accept(listener, endpoint, services.ended.clone()));
        }
        Ok(services)
    }

    /// Where each endpoint listens.
    pub fn endpoints(&self) -> &[(Service, SocketAddr)] {
        &self.endpoints
    }

    /// Ends them all.
    pub async fn stop(mut self) {
        self.ended.begin();
        let all = async { while self.running.join_next().await.is_some() {} };
        if timeout(END_WITHIN, all).await.is_err() {
            tracing::warn!("the demo services did not end in time");
        }
    }
}

async fn accept(listener: TcpListener, endpoint: Arc<Endpoint>, ended: Drain) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = ended.begun() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                let Ok((socket, peer)) = accepted else { continue };
                connections.spawn(connection(socket, peer, Arc::clone(&endpoint), ended.clone()));
            }
        }
    }
    while connections.join_next().await.is_some() {}
}

async fn connection(socket: TcpStream, peer: SocketAddr, endpoint: Arc<Endpoint>, ended: Drain) {
    let read = ReadBuffer::new(MAX_FRAME);
    if endpoint.service.protocol() == "framed" {
        let params = thrift::ServerParams::new(MAX_FRAME, STALL, None);
        let caller =
            thrift::Caller { io: socket, read, framing: thrift::Framing::Framed, peer: Some(peer).into() };
        return thrift::serve(caller, &endpoint, &params, &ended, &Uncounted).await;
    }
    let params = mux::ServerParams {
        max_frame: MAX_FRAME,
        max_queued: 16 * MAX_FRAME,
        stall: STALL,
        idle: None,
        rules: Rules::default(),
        session: ServerConfig::default(),
        pressure: Pressure::default(),
        upgrade: None,
    };
    mux::serve(socket, read, Some(peer), endpoint, &params, &ended, Arc::new(Uncounted)).await;
}
