//! A fake of a Consul agent: leader and health of services, with blocking queries, in the form that a real one has
//! (`tests/golden/consul`).

use crate::until::LIMIT;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::pending;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// An instance of a service.
#[derive(Clone)]
pub struct Instance {
    /// Where it is; its node has no address.
    pub addr: SocketAddr,
    /// Its tags.
    pub tags: Vec<&'static str>,
    /// Its weight while it passes.
    pub weight: u32,
    /// Of its own check.
    pub status: &'static str,
}

impl Instance {
    /// One that passes, without tags.
    pub fn new(addr: SocketAddr) -> Self {
        Self { addr, tags: Vec::new(), weight: 1, status: "passing" }
    }

    fn json(&self, service: &str) -> Value {
        let id = format!("{service}-{}", self.addr.port());
        let check = |id: &str, status: &str| json!({"CheckID": id, "Status": status});
        json!({
            "Node": {"Node": "fake", "Address": "", "Datacenter": "dc1"},
            "Service": {
                "ID": id, "Service": service, "Tags": self.tags, "Address": self.addr.ip().to_string(),
                "Port": self.addr.port(), "Weights": {"Passing": self.weight, "Warning": 1},
            },
            "Checks": [check("serfHealth", "passing"), check(&format!("service:{id}"), self.status)],
        })
    }
}

#[derive(Clone, Default)]
struct State {
    index: u64,
    services: BTreeMap<String, Vec<Instance>>,
    blind: bool,
    mute: bool,
}

/// The agent. Dropping it closes everything.
pub struct Consul {
    addr: SocketAddr,
    state: watch::Sender<State>,
    tasks: JoinSet<()>,
}

impl Consul {
    /// Listens on a free port of 127.0.0.1.
    ///
    /// # Panics
    /// If that fails.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let addr = listener.local_addr().expect("an address");
        let state = watch::Sender::new(State { index: 1000, ..State::default() });
        let mut consul = Self { addr, state, tasks: JoinSet::new() };
        consul.tasks.spawn(accept(listener, consul.state.subscribe()));
        consul
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// A service has these instances now.
    pub fn put(&self, service: &str, instances: &[Instance]) {
        self.state.send_modify(|state| {
            state.index += 1;
            state.services.insert(service.to_owned(), instances.to_vec());
        });
    }

    /// What it knows is as it was, but its index begins anew: as after a snapshot was restored.
    pub fn rewind(&self) {
        self.state.send_modify(|state| state.index = 10);
    }

    /// The token has no right to see anything, or has it again.
    pub fn blind(&self, blind: bool) {
        self.state.send_modify(|state| {
            state.index += 1;
            state.blind = blind;
        });
    }

    /// Connections stay, and nothing is answered, until the next restart.
    pub fn mute(&self) {
        self.state.send_modify(|state| state.mute = true);
    }

    /// All connections end, and nobody listens.
    pub async fn kill(&mut self) {
        self.tasks.shutdown().await;
    }

    /// Listens again on the same port.
    ///
    /// # Panics
    /// If the port is taken.
    pub async fn restart(&mut self) {
        self.kill().await;
        self.state.send_modify(|state| state.mute = false);
        let listener = TcpListener::bind(self.addr).await.expect("the port is still free");
        self.tasks.spawn(accept(listener, self.state.subscribe()));
    }

    /// The same, and everything is forgotten.
    ///
    /// # Panics
    /// If the port is taken.
    pub async fn restart_empty(&mut self) {
        self.kill().await;
        self.state.send_replace(State { index: 10, ..State::default() });
        self.restart().await;
    }
}

async fn accept(listener: TcpListener, state: watch::Receiver<State>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let state = state.clone();
        connections.spawn(async move {
            let service = service_fn(|request| answer(request, state.clone()));
            // A connection that breaks is the gateway's affair.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    mut state: watch::Receiver<State>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let query: BTreeMap<&str, &str> = request
        .uri()
        .query()
        .unwrap_or_default()
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .collect();
    if state.borrow().mute {
        pending::<()>().await;
    }
    if query.get("dc").is_some_and(|dc| *dc != "dc1") {
        return Ok(respond(500, 0, false, "No path to datacenter"));
    }
    let path = request.uri().path();
    if path == "/v1/status/leader" {
        return Ok(respond(200, 0, false, "\"127.0.0.1:8300\""));
    }
    let Some(service) = path.strip_prefix("/v1/health/service/") else {
        return Ok(respond(404, 0, false, "Invalid URL path"));
    };
    let from = query.get("index").and_then(|index| index.parse().ok()).unwrap_or(0);
    let wait = query.get("wait").and_then(|wait| wait.strip_suffix('s')?.parse().ok());
    let wait = wait.map_or(LIMIT, Duration::from_secs);
    if from > 0 {
        // An index that went back answers, too.
        let _ = tokio::time::timeout(wait, state.wait_for(|state| state.index != from)).await;
    }
    if state.borrow().mute {
        pending::<()>().await;
    }
    let now = state.borrow().clone();
    let instances = now.services.get(service).filter(|_| !now.blind).into_iter().flatten();
    let has_tag =
        |i: &&Instance| query.get("tag").is_none_or(|tag| i.tags.iter().any(|t| t.eq_ignore_ascii_case(tag)));
    let all: Vec<Value> = instances.filter(has_tag).map(|instance| instance.json(service)).collect();
    Ok(respond(200, now.index, now.blind, &Value::from(all).to_string()))
}

fn respond(status: u16, index: u64, filtered: bool, text: &str) -> Response<Full<Bytes>> {
    let mut response = Response::builder().status(status);
    if index > 0 {
        response = response.header("X-Consul-Index", index).header("X-Consul-KnownLeader", "true");
    }
    if filtered {
        response = response.header("X-Consul-Results-Filtered-By-Acls", "true");
    }
    response.body(Full::new(Bytes::copy_from_slice(text.as_bytes()))).expect("a response")
}
