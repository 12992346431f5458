//! A gateway for one column, with a listener, a name and a service for each row.

use crate::cell::{BROKEN, Row, headers};
use crate::forms::{Inbound, Outbound};
use crate::rule::Outcome;
use bytes::Bytes;
use muxgate::{app, config};
use muxgate_testkit::Backend;
use muxgate_testkit::backend::{Call, ClosedPort, Plan, Reply};
use muxgate_testkit::certs::{Authority, Issued};
use muxgate_testkit::link::{Dialect, NAME};
use muxgate_testkit::luggage::response_contexts;
use muxgate_testkit::speaker::Security;
use muxgate_testkit::thrift::Message;
use muxgate_testkit::tunnel::{ClientSide, ServerSide};
use std::collections::HashMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

/// The longest frame that the gateway takes, on both sides.
const LONGEST: usize = 65_536;
/// A text that does not fit.
pub const LARGE: usize = 100_000;
/// The time of calls that are never answered.
const LATE_MS: u32 = 1000;

/// An authority and one certificate, which gateways and services share.
pub struct Trust {
    authority: Authority,
    issued: Issued,
    /// `ca.pem`, `cert.pem` and `cert.key`.
    folder: TempDir,
}

impl Trust {
    pub fn new() -> Self {
        let authority = Authority::new("matrix");
        let issued = authority.issue(NAME, &[NAME]);
        let folder = tempfile::tempdir().expect("a folder");
        authority.write(folder.path(), "ca");
        issued.write(folder.path(), "cert");
        Self { authority, issued, folder }
    }

    fn server(&self) -> Arc<rustls::ServerConfig> {
        ServerSide::new(&self.issued).config()
    }

    fn client(&self) -> Arc<rustls::ClientConfig> {
        ClientSide::new(self.authority.pem(), NAME).config()
    }
}

/// A gateway and its rows.
pub struct Scene<'a> {
    pub gateway: app::Gateway,
    pub rows: Vec<Row<'a>>,
    /// Where connections are refused.
    _closed: ClosedPort,
}

impl<'a> Scene<'a> {
    /// Starts all of it.
    pub async fn start(outbound: &'a Outbound, inbound: &'a [Inbound], trust: &Trust) -> Self {
        let closed = ClosedPort::new();
        let mut backends = Vec::new();
        for _ in inbound {
            backends.push(backend(outbound, trust).await);
        }
        let yaml = yaml(outbound, inbound, &backends, closed.addr(), trust.folder.path());
        let plan = config::parse("matrix.yaml", &yaml).unwrap_or_else(|report| panic!("{report}"));
        let gateway = app::Gateway::start(Arc::new(plan)).await.unwrap_or_else(|error| panic!("{error}"));
        let ports: HashMap<_, _> = gateway.listeners().map(|(name, at)| (name.to_owned(), at)).collect();
        let row = |(n, (inbound, backend)): (u16, (&'a Inbound, Backend))| Row {
            inbound,
            outbound,
            addr: ports[&format!("row{n}")],
            name: format!("/row{n}"),
            backend,
            tls: trust.client(),
            made: n.into(),
        };
        let rows = (0..).zip(inbound.iter().zip(backends)).map(row).collect();
        Self { gateway, rows, _closed: closed }
    }
}

async fn backend(outbound: &Outbound, trust: &Trust) -> Backend {
    let backend = Backend::start().await;
    if outbound.security != Security::Clear {
        backend.accept_tls(trust.server(), outbound.security == Security::Opportunistic);
    }
    if outbound.lz4 {
        backend.accept_lz4();
    }
    if let Some(window) = outbound.window {
        backend.ask_for_pieces(window);
    }
    if outbound.dialect == Dialect::TTwitter {
        backend.accept_upgrades();
    }
    if outbound.dialect == Dialect::Buffered {
        backend.expect_no_frames();
    }
    backend.decide(|call| Plan::now(reply(call)));
    backend
}

/// What a service does, by method.
fn reply(call: &Call) -> Reply {
    let method = call.method();
    let outcome = Outcome::ALL.into_iter().find(|outcome| outcome.method() == method);
    match (outcome, &call.message) {
        (Some(Outcome::Declared | Outcome::UnknownMethod), Some(message)) => {
            let answer = outcome.and_then(|outcome| crate::cell::answer(outcome, message));
            Reply::Bytes(answer.map_or(Bytes::new(), |answer| answer.to_bytes()))
        }
        (Some(Outcome::Luggage), _) if call.how.dialect == Dialect::Header => Reply::With(headers()),
        (Some(Outcome::Luggage), _) => Reply::With(response_contexts(&headers())),
        (Some(Outcome::LargeReply), Some(message)) => {
            let large = Message::call(message.protocol, "large", message.seqid, &"x".repeat(LARGE));
            Reply::Bytes(large.served().map_or(Bytes::new(), |answer| answer.to_bytes()))
        }
        (Some(Outcome::Drip), _) => Reply::Drip,
        (Some(Outcome::Error), _) => Reply::Error(Vec::new(), BROKEN.into()),
        (Some(Outcome::Garbage), _) => Reply::Bytes(Bytes::from_static(b"<html>")),
        (Some(Outcome::Nack), _) => Reply::Nack(Vec::new()),
        (Some(Outcome::Timeout | Outcome::Cancel), _) => Reply::Hang,
        (Some(Outcome::Cut), _) => Reply::Cut,
        _ => Reply::Serve,
    }
}

fn yaml(
    outbound: &Outbound,
    inbound: &[Inbound],
    backends: &[Backend],
    closed: SocketAddr,
    folder: &Path,
) -> String {
    let (mut listeners, mut dtab) = (String::new(), String::new());
    let inet = |addr: SocketAddr| format!("/$/inet/{}/{}", addr.ip(), addr.port());
    for (n, (inbound, backend)) in inbound.iter().zip(backends).enumerate() {
        // What the caller speaks is detected in columns without a protocol of their own.
        let keys = inbound.keys(folder, outbound.protocol.is_some());
        // Writing to a text does not fail.
        let _ = writeln!(
            listeners,
            "  - {{name: row{n}, port: 0, dst: /row{n}, thriftMethodInDst: true, {keys}maxFrameBytes: {LONGEST}}}"
        );
        let _ = writeln!(dtab, "  /svc/row{n} => {} ;", inet(backend.addr()));
        if !outbound.is_mux() {
            let _ = writeln!(dtab, "  /svc/row{n}/{} => {} ;", Outcome::Nack.method(), inet(closed));
        }
    }
    format!(
        "admin: none\nlisteners:\n{listeners}\
         services: [{{prefix: /svc/*/{}, totalTimeoutMs: {LATE_MS}}}]\n\
         clients: [{{{}maxFrameBytes: {LONGEST}, connectTimeoutMs: 5000, failureAccrual: {{kind: none}}}}]\n\
         dtab: |\n{dtab}",
        Outcome::Timeout.method(),
        outbound.keys(folder)
    )
}
