//! A gateway for one column, with a listener, a name and a service for each row.

use crate::cell::{BROKEN, Row, headers};
use crate::forms::{Inbound, Outbound};
use crate::rule::Outcome;
use bytes::Bytes;
use muxgate::{app, config};
use muxgate_testkit::Backend;
use muxgate_testkit::backend::{Call, ClosedPort, Plan, Reply};
use muxgate_testkit::link::Dialect;
use muxgate_testkit::luggage::response_contexts;
use muxgate_testkit::speaker::Security;
use muxgate_testkit::thrift::Message;
use muxgate_testkit::tls::Authority;
use std::collections::HashMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

/// The longest frame that the gateway takes, on both sides.
const LONGEST: usize = 65_536;
/// A text that does not fit.
pub const LARGE: usize = 100_000;
/// The time of calls that are never answered.
const LATE_MS: u32 = 1000;

/// A gateway and its rows.
pub struct Scene<'a> {
    pub gateway: app::Gateway,
    pub rows: Vec<Row<'a>>,
    /// Where connections are refused.
    _closed: ClosedPort,
}

impl<'a> Scene<'a> {
    /// Starts all of it; certificates are in `folder`.
    pub async fn start(
        outbound: &'a Outbound,
        inbound: &'a [Inbound],
        authority: &Authority,
        folder: &Path,
    ) -> Self {
        let closed = ClosedPort::new();
        let mut backends = Vec::new();
        for _ in inbound {
            backends.push(backend(outbound, authority).await);
        }
        let yaml = yaml(outbound, inbound, &backends, closed.addr(), folder);
        let plan = config::parse("matrix.yaml", &yaml).unwrap_or_else(|report| panic!("{report}"));
        let gateway = app::Gateway::start(Arc::new(plan)).await.unwrap_or_else(|error| panic!("{error}"));
        let ports: HashMap<_, _> = gateway.listeners().map(|(name, at)| (name.to_owned(), at)).collect();
        let row = |(n, (inbound, backend)): (u16, (&'a Inbound, Backend))| Row {
            inbound,
            outbound,
            addr: ports[&format!("row{n}")],
            name: format!("/row{n}"),
            backend,
            tls: authority.client(),
            made: n.into(),
        };
        let rows = (0..).zip(inbound.iter().zip(backends)).map(row).collect();
        Self { gateway, rows, _closed: closed }
    }
}

async fn backend(outbound: &Outbound, authority: &Authority) -> Backend {
    let backend = Backend::start().await;
    if outbound.security != Security::Clear {
        backend.accept_tls(authority.server(), outbound.security == Security::Opportunistic);
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
