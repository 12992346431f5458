//! A Kubernetes API server that knows EndpointSlices alone, in the form that a real one was recorded to have.

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
    /// Every request is answered with this status, and what streams is cut.
    Status(u16),
    /// Nothing is answered, and nothing more comes on what streams: every packet is lost.
    Silent,
    /// Every connection is cut.
    Dead,
}

/// The server. Dropping it closes everything.
pub struct Kubernetes {
    addr: SocketAddr,
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

struct Shared {
    state: Mutex<State>,
    /// Moves with each change of the state.
    changed: watch::Sender<u64>,
}

struct State {
    mode: Mode,
    version: u64,
    /// Versions before this one are forgotten.
    oldest: u64,
    slices: BTreeMap<String, Value>,
    events: Vec<(u64, Value)>,
}

impl Kubernetes {
    /// On a free port of 127.0.0.1, without a slice.
    ///
    /// # Panics
    /// If there is no free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let addr = listener.local_addr().expect("an address");
        let (slices, events) = (BTreeMap::new(), Vec::new());
        let state = State { mode: Mode::Well, version: 100, oldest: 100, slices, events };
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

    /// Writes the slice `name` in the namespace `shop`: one endpoint of `service`, at its port `thrift`.
    pub fn put(&self, name: &str, service: &str, at: SocketAddr, ready: bool) {
        self.change(|state| {
            state.version += 1;
            let kind = if state.slices.contains_key(name) { "MODIFIED" } else { "ADDED" };
            let slice = json!({
                "kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1",
                "metadata": {
                    "name": name, "namespace": "shop", "resourceVersion": state.version.to_string(),
                    "labels": {"kubernetes.io/service-name": service},
                },
                "addressType": "IPv4",
                "endpoints": [{"addresses": [at.ip().to_string()], "conditions": {"ready": ready}}],
                "ports": [{"name": "thrift", "protocol": "TCP", "port": at.port()}],
            });
            state.slices.insert(name.into(), slice.clone());
            state.events.push((state.version, json!({"type": kind, "object": slice})));
        });
    }

    /// Deletes a slice.
    pub fn delete(&self, name: &str) {
        self.change(|state| {
            let Some(mut slice) = state.slices.remove(name) else { return };
            state.version += 1;
            slice["metadata"]["resourceVersion"] = state.version.to_string().into();
            state.events.push((state.version, json!({"type": "DELETED", "object": slice})));
        });
    }

    /// Forgets all slices at once, without an event, as a server whose data was lost.
    pub fn lose_all(&self) {
        self.change(|state| {
            state.slices.clear();
            state.version += 1;
            state.oldest = state.version;
        });
    }

    /// Forgets what was: open watches are told that their version is too old.
    pub fn forget(&self) {
        self.change(|state| {
            state.version += 1;
            state.oldest = state.version;
        });
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
    loop {
        let mode = shared.state.lock().mode;
        match mode {
            Mode::Well => break,
            Mode::Dead => return Ok(()),
            Mode::Status(status) => {
                let said =
                    json!({"kind": "Status", "status": "Failure", "code": status, "message": "refused"});
                return answer(&mut io, status, &said).await;
            }
            Mode::Silent => drop(changed.changed().await),
        }
    }
    if path.contains("watch=1") {
        return stream(&mut io, &path, shared, changed).await;
    }
    let is_shop = path.contains("/namespaces/shop/");
    let list = {
        let state = shared.state.lock();
        let items: Vec<_> = state.slices.values().filter(|_| is_shop).cloned().collect();
        let version = state.version.to_string();
        json!({"kind": "EndpointSliceList", "metadata": {"resourceVersion": version}, "items": items})
    };
    answer(&mut io, 200, &list).await
}

async fn answer(io: &mut BufReader<TcpStream>, status: u16, said: &Value) -> io::Result<()> {
    let body = said.to_string();
    let head = format!(
        "HTTP/1.1 {status} It\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    io.get_mut().write_all((head + &body).as_bytes()).await
}

async fn stream(
    io: &mut BufReader<TcpStream>,
    path: &str,
    shared: &Shared,
    mut changed: watch::Receiver<u64>,
) -> io::Result<()> {
    let from = path.split("resourceVersion=").nth(1).and_then(|rest| rest.split('&').next());
    let mut seen: u64 = from.and_then(|from| from.parse().ok()).unwrap_or(0);
    io.get_mut().write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n").await?;
    let is_shop = path.contains("/namespaces/shop/");
    loop {
        changed.mark_unchanged();
        let mut lines = String::new();
        let (mode, too_old) = {
            let state = shared.state.lock();
            let news = state.events.iter().filter(|(version, _)| *version > seen && is_shop);
            if state.mode == Mode::Well && seen >= state.oldest {
                news.for_each(|(_, event)| lines += &format!("{event}\n"));
                seen = state.version;
            }
            (state.mode, seen < state.oldest)
        };
        match mode {
            Mode::Well if too_old => {
                let gone = json!({"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410});
                let line = format!("{}\n", json!({"type": "ERROR", "object": gone}));
                return io.get_mut().write_all(line.as_bytes()).await;
            }
            Mode::Well => io.get_mut().write_all(lines.as_bytes()).await?,
            Mode::Silent => {}
            Mode::Dead | Mode::Status(_) => return Ok(()),
        }
        let _ = changed.changed().await;
    }
}
