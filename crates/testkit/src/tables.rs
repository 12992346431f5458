//! A store of tables that says what a test tells it to: to gateways that follow it, and in namerd's own way. It knows one
//! table of each name, and what gateways report.

use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How often it says that it is alive.
const ALIVE_EVERY: Duration = Duration::from_secs(2);

/// The store. It ends when it is dropped, and cuts its connections.
pub struct Tables {
    addr: SocketAddr,
    shared: Arc<Shared>,
    task: tokio::task::JoinHandle<()>,
}

struct Shared {
    tables: watch::Sender<BTreeMap<String, (u64, String)>>,
    frozen: watch::Sender<bool>,
    reports: Mutex<Vec<Value>>,
    /// Whether it knows namerd's ways only.
    plain: bool,
}

impl Tables {
    /// Starts one on a free port.
    ///
    /// # Panics
    /// If that fails.
    pub async fn start() -> Self {
        Self::at("127.0.0.1:0".parse().expect("an address"), false).await
    }

    /// One that knows namerd's ways only.
    ///
    /// # Panics
    /// If that fails.
    pub async fn plain() -> Self {
        Self::at("127.0.0.1:0".parse().expect("an address"), true).await
    }

    /// An empty one on the port of one that has been dropped.
    ///
    /// # Panics
    /// If that fails.
    pub async fn again(addr: SocketAddr) -> Self {
        Self::at(addr, false).await
    }

    async fn at(addr: SocketAddr, plain: bool) -> Self {
        let listener = crate::until("the port", || async { TcpListener::bind(addr).await.ok() }).await;
        let addr = listener.local_addr().expect("its address");
        let shared = Arc::new(Shared {
            tables: watch::channel(BTreeMap::new()).0,
            frozen: watch::channel(false).0,
            reports: Mutex::default(),
            plain,
        });
        let task = tokio::spawn(serve(listener, Arc::clone(&shared)));
        Self { addr, shared, task }
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The same as a base address.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Puts a table there under this version.
    pub fn put(&self, namespace: &str, version: u64, dtab: &str) {
        self.shared.tables.send_modify(|tables| {
            tables.insert(namespace.to_owned(), (version, dtab.to_owned()));
        });
    }

    /// Takes a table away.
    pub fn delete(&self, namespace: &str) {
        self.shared.tables.send_modify(|tables| {
            tables.remove(namespace);
        });
    }

    /// Says nothing any more, and keeps its connections.
    pub fn freeze(&self) {
        self.shared.frozen.send_replace(true);
    }

    /// Goes on.
    pub fn thaw(&self) {
        self.shared.frozen.send_replace(false);
    }

    /// The versions that gateways have reported for a table, in order.
    pub fn reported(&self, namespace: &str) -> Vec<Option<u64>> {
        let reports = self.shared.reports.lock();
        let of = reports.iter().filter(|report| report["namespace"] == namespace);
        of.map(|report| report["version"].as_str().and_then(number)).collect()
    }

    /// The last report.
    pub fn last_report(&self) -> Option<Value> {
        self.shared.reports.lock().last().cloned()
    }
}

impl Drop for Tables {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The tag of a version: base64 of its eight bytes.
pub fn tag(version: u64) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(version.to_be_bytes())
}

fn number(tag: &str) -> Option<u64> {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(tag).ok()?;
    bytes.try_into().ok().map(u64::from_be_bytes)
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { return };
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            // A caller that goes is no failure.
            let _ = answer(stream, &shared).await;
        });
    }
}

async fn answer(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut first = String::new();
        if stream.read_line(&mut first).await? == 0 {
            return Ok(());
        }
        let mut length = 0;
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await?;
            if line.trim().is_empty() {
                break;
            }
            if let Some((_, value)) = line.to_ascii_lowercase().split_once("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        let _ = shared.frozen.subscribe().wait_for(|frozen| !frozen).await;
        let mut words = first.split_whitespace();
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        match (method, path.strip_prefix("/api/1/").unwrap_or_default()) {
            ("POST", "gateways") if !shared.plain => {
                shared.reports.lock().extend(serde_json::from_slice::<Value>(&body));
                stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await?;
            }
            ("GET", rest) => match rest.split_once('/') {
                Some(("follow", namespace)) if !shared.plain => {
                    return follow(&mut stream, shared, namespace).await;
                }
                Some(("dtabs", rest)) => match rest.split_once('?') {
                    Some((namespace, _)) => return watch(&mut stream, shared, namespace).await,
                    None => read(&mut stream, shared, rest).await?,
                },
                _ => nothing(&mut stream).await?,
            },
            _ => nothing(&mut stream).await?,
        }
    }
}

async fn nothing(stream: &mut BufReader<TcpStream>) -> io::Result<()> {
    stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").await
}

async fn begin(stream: &mut BufReader<TcpStream>) -> io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n").await
}

/// A line now and at each change, and a sign of life.
async fn follow(stream: &mut BufReader<TcpStream>, shared: &Shared, namespace: &str) -> io::Result<()> {
    begin(stream).await?;
    let (mut tables, mut frozen) = (shared.tables.subscribe(), shared.frozen.subscribe());
    let mut told = None;
    loop {
        let now = tables.borrow_and_update().get(namespace).cloned();
        let line = match (&now, told.as_ref() == Some(&now)) {
            (_, true) => json!({"alive": true}),
            (Some((version, dtab)), _) => json!({"version": tag(*version), "dtab": dtab}),
            (None, _) => json!({"absent": true}),
        };
        told = Some(now);
        let _ = frozen.wait_for(|frozen| !frozen).await;
        stream.write_all(format!("{line}\n").as_bytes()).await?;
        let _ = tokio::time::timeout(ALIVE_EVERY, tables.changed()).await;
    }
}

/// The table as namerd gives it.
fn entries(dtab: &str) -> String {
    let entries = dtab.split(';').filter_map(|entry| entry.split_once("=>"));
    let entries = entries.map(|(prefix, dst)| json!({"prefix": prefix.trim(), "dst": dst.trim()}));
    Value::from(entries.collect::<Vec<_>>()).to_string()
}

async fn read(stream: &mut BufReader<TcpStream>, shared: &Shared, namespace: &str) -> io::Result<()> {
    let Some((version, dtab)) = shared.tables.borrow().get(namespace).cloned() else {
        return nothing(stream).await;
    };
    let (body, tag) = (entries(&dtab), tag(version));
    let head = format!("HTTP/1.1 200 OK\r\nETag: {tag}\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).await
}

async fn watch(stream: &mut BufReader<TcpStream>, shared: &Shared, namespace: &str) -> io::Result<()> {
    let mut tables = shared.tables.subscribe();
    if !tables.borrow().contains_key(namespace) {
        return nothing(stream).await;
    }
    begin(stream).await?;
    loop {
        let Some((_, dtab)) = tables.borrow_and_update().get(namespace).cloned() else { return Ok(()) };
        stream.write_all(format!("{}\n", entries(&dtab)).as_bytes()).await?;
        let _ = tables.changed().await;
    }
}
