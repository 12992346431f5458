//! A gateway inside the test, and its pages.

use bytes::Bytes;
use muxgate::{app, config};
use muxgate_testkit::collector::Collector;
use muxgate_testkit::metrics::{self, Exposition};
use muxgate_testkit::mux::Dispatch;
use muxgate_testkit::thrift::{Message, Protocol};
use muxgate_testkit::{Caller, caller::Form, http, until};
use serde_json::Value;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

/// add(1, 2) with seqid 8: as a framed call, as a Tdispatch with tag 2, and what answers them.
pub const ADD: &str = "0000001e800100010000000361646400000008080001000000010800020000000200";
pub const ADD_REPLY: &str = "000000178001000200000003616464000000080800000000000300";
pub const ADD_MUX: &str = "0000003002000002000000082f732f70726f62650000800100010000000361646400000008080001000000010800020000000200";
pub const ADD_MUX_REPLY: &str = "0000001efe0000020000008001000200000003616464000000080800000000000300";

/// The name of a call to `/s/probe` in the gateway.
pub const ROUTE: &str = "/svc/s/probe";

/// A configuration in which `dtab` says where `/s/probe` is, the destination of calls that have none; `clients` holds more
/// settings of all clients, in YAML's flow style.
pub fn yaml(dtab: &str, protocol: &str, clients: &str) -> String {
    format!(
        "admin: {{port: 0}}\nlisteners: [{{name: in, port: 0, dst: /s/probe}}]\n\
         clients: [{{protocol: {protocol}, {clients}}}]\ndtab: /svc => / ; {dtab}\n"
    )
}

/// A dtab that leads `/s/probe` to one address.
pub fn to(address: SocketAddr) -> String {
    format!("/s/probe => {}", inet(address))
}

/// An address as a name.
pub fn inet(address: SocketAddr) -> String {
    format!("/$/inet/{}/{}", address.ip(), address.port())
}

/// A folder for the file namer.
pub struct Disco(tempfile::TempDir);

impl Disco {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    /// What to write into the configuration.
    pub fn namer(&self) -> String {
        format!("namers: [{{kind: io.l5d.fs, prefix: /fs, rootDir: {}}}]\n", self.0.path().display())
    }

    /// Writes a file with these addresses, at once.
    pub fn put(&self, name: &str, addresses: &[SocketAddr]) {
        let lines: String = addresses.iter().map(|a| format!("{} {}\n", a.ip(), a.port())).collect();
        let hidden = self.0.path().join(format!(".{name}"));
        std::fs::write(&hidden, lines).expect("a file");
        std::fs::rename(hidden, self.path(name)).expect("a file in place");
    }

    pub fn remove(&self, name: &str) {
        std::fs::remove_file(self.path(name)).expect("a file to remove");
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        Path::new(self.0.path()).join(name)
    }
}

/// A gateway in this process. Its admin pages are reached through it.
pub struct House {
    gateway: app::Gateway,
    pub listeners: HashMap<String, SocketAddr>,
    /// The first listener.
    pub addr: SocketAddr,
    pub pages: Pages,
    /// Where its spans go: all of them.
    pub collector: Collector,
}

impl House {
    pub async fn start(yaml: &str) -> Self {
        Self::sampling(yaml, 1.0).await
    }

    /// The same; of the calls that nobody has decided about, only this share is traced.
    pub async fn sampling(yaml: &str, rate: f64) -> Self {
        let collector = Collector::start().await;
        let url = collector.url();
        let yaml =
            format!("{yaml}telemetry: [{{kind: io.l5d.zipkin, url: '{url}', sampleRate: {rate:.1}}}]\n");
        let yaml = yaml.as_str();
        let plan = config::parse("test.yaml", yaml).unwrap_or_else(|report| panic!("{report}"));
        let gateway = app::Gateway::start(Arc::new(plan)).await.unwrap_or_else(|error| panic!("{error}"));
        let listeners: HashMap<_, _> = gateway.listeners().map(|(name, at)| (name.to_owned(), at)).collect();
        let addr = gateway.listeners().next().expect("a listener").1;
        let pages = Pages(gateway.admin().expect("an admin server"));
        Self { gateway, listeners, addr, pages, collector }
    }

    /// One service behind `/s/probe`, which speaks `protocol`.
    pub async fn before(address: SocketAddr, protocol: &str) -> Self {
        Self::start(&yaml(&to(address), protocol, "")).await
    }

    pub async fn mux(&self) -> Caller {
        Caller::connect(Form::ThriftMux, self.addr).await
    }

    pub async fn plain(&self) -> Caller {
        Caller::connect(Form::FramedBinary, self.addr).await
    }

    pub async fn drain(self) {
        self.gateway.drain().await;
    }
}

/// The admin pages of a gateway.
#[derive(Clone, Copy)]
pub struct Pages(pub SocketAddr);

impl Pages {
    pub async fn get(self, path: &str) -> String {
        let (status, text) = http::get(&format!("http://{}{path}", self.0)).await.expect("a page");
        assert_eq!(status, 200, "{path}: {text}");
        text
    }

    pub async fn json(self, path: &str) -> Value {
        let text = self.get(path).await;
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}: {text}"))
    }

    pub async fn metrics(self) -> Exposition {
        let text = self.get("/metrics").await;
        metrics::parse(&text).unwrap_or_else(|why| panic!("/metrics: {why}\n{text}"))
    }

    pub async fn sum(self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.metrics().await.sum(name, labels)
    }

    /// Waits until a number is what it should be.
    pub async fn until(self, name: &str, labels: &[(&str, &str)], value: f64) {
        let what = format!("{name}{labels:?} = {value}");
        until(&what, || async move { (self.sum(name, labels).await == value).then_some(()) }).await;
    }

    /// Waits until nothing is in flight anywhere.
    pub async fn until_idle(self) {
        let kinds = ["listener", "route", "endpoint"].map(|k| format!("muxgate_{k}_in_flight_requests"));
        let kinds = &kinds;
        let idle = || async move {
            let metrics = self.metrics().await;
            kinds.iter().all(|kind| metrics.sum(kind, &[]) == 0.0).then_some(())
        };
        until("nothing in flight", idle).await;
    }
}

/// A Tdispatch of `echo` to `dest`.
pub fn echo(dest: &str, text: &str) -> Dispatch {
    let body = Message::call(Protocol::Binary, "echo", 7, text).to_bytes();
    Dispatch { dest: Bytes::copy_from_slice(dest.as_bytes()), body, ..Dispatch::default() }
}

/// A failed span.
pub fn is_error(span: &Value) -> bool {
    span["tags"].get("error").is_some()
}

/// Spans of this kind.
pub fn of_kind<'a>(spans: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    spans.iter().filter(move |span| span["kind"] == kind)
}
