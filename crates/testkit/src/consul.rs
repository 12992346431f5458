//! An agent of Consul that knows one data centre, in the form that a real one was recorded to have: blocking queries with an index.

use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How it behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// As it should.
    Well,
    /// Every request is answered with this status.
    Status(u16),
    /// It shows nothing: the token has no rights.
    Filtered,
    /// Every connection is cut.
    Dead,
}

/// The agent. Dropping it closes everything.
pub struct Consul {
    addr: SocketAddr,
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

struct Shared {
    state: Mutex<State>,
    changed: watch::Sender<u64>,
}

struct State {
    mode: Mode,
    index: u64,
    /// By id; each says its service.
    instances: BTreeMap<String, (String, Value)>,
}

impl Consul {
    /// On a free port of 127.0.0.1, without a service.
    ///
    /// # Panics
    /// If there is no free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let addr = listener.local_addr().expect("an address");
        let state = State { mode: Mode::Well, index: 100, instances: BTreeMap::new() };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: watch::Sender::new(0) });
        let (mut tasks, serving) = (JoinSet::new(), Arc::clone(&shared));
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((io, _)) = listener.accept().await {
                let shared = Arc::clone(&serving);
                connections.spawn(async move { drop(serve(io, &shared).await) });
            }
        });
        Self { addr, shared, _tasks: tasks }
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Behaves so from now on.
    pub fn set(&self, mode: Mode) {
        self.change(|state| state.mode = mode);
    }

    /// Registers an instance of a service, with the status of its only check.
    pub fn put(&self, id: &str, service: &str, at: SocketAddr, status: &str) {
        let instance = json!({
            "Node": {"Node": "n", "Address": "127.0.0.2", "Datacenter": "dc1"},
            "Service": {
                "ID": id, "Service": service, "Tags": [], "Address": at.ip().to_string(), "Port": at.port(),
                "Weights": {"Passing": 1, "Warning": 1},
            },
            "Checks": [{"CheckID": "c", "Status": status}],
        });
        self.change(|state| {
            state.index += 1;
            state.instances.insert(id.into(), (service.into(), instance));
        });
    }

    /// Takes an instance out.
    pub fn delete(&self, id: &str) {
        self.change(|state| {
            state.index += 1;
            state.instances.remove(id);
        });
    }

    /// All is lost, and the index begins anew.
    pub fn lose_all(&self) {
        self.change(|state| (state.index, state.instances) = (1, BTreeMap::new()));
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.shared.state.lock());
        self.shared.changed.send_modify(|at| *at += 1);
    }
}

/// One request, and the end of the connection.
async fn serve(io: TcpStream, shared: &Shared) -> io::Result<()> {
    let mut changed = shared.changed.subscribe();
    let mut io = BufReader::new(io);
    let (mut line, mut first) = (String::new(), String::new());
    while io.read_line(&mut line).await? > 0 && !line.trim().is_empty() {
        if first.is_empty() {
            first.clone_from(&line);
        }
        line.clear();
    }
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let service = path.strip_prefix("/v1/health/service/").and_then(|rest| rest.split('?').next());
    let asked = path.split("index=").nth(1).and_then(|rest| rest.split('&').next()?.parse::<u64>().ok());
    loop {
        changed.mark_unchanged();
        let (mode, index, all) = {
            let state = shared.state.lock();
            let ours = state.instances.values().filter(|(of, _)| Some(of.as_str()) == service);
            (state.mode, state.index, ours.map(|(_, instance)| instance.clone()).collect::<Vec<_>>())
        };
        let (status, body, more) = match mode {
            Mode::Dead => return Ok(()),
            Mode::Status(status) => (status, json!("refused"), String::new()),
            _ if service.is_none() => (200, json!("127.0.0.1:8300"), String::new()),
            // A blocking query: nothing is new.
            _ if asked == Some(index) => {
                let _ = changed.changed().await;
                continue;
            }
            Mode::Well => (200, Value::Array(all), format!("X-Consul-Index: {index}\r\n")),
            Mode::Filtered => {
                let filtered =
                    format!("X-Consul-Index: {index}\r\nX-Consul-Results-Filtered-By-Acls: true\r\n");
                (200, json!([]), filtered)
            }
        };
        let body = body.to_string();
        let head = format!(
            "HTTP/1.1 {status} It\r\ncontent-type: application/json\r\nconnection: close\r\n{more}content-length: {}\r\n\r\n",
            body.len()
        );
        return io.get_mut().write_all((head + &body).as_bytes()).await;
    }
}
