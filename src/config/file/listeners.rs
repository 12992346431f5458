//! `listeners`.

use super::observe::ip;
use super::{Fields, Shape, announcers, overrides, tls};
use crate::config::plan::{Admin, Announcer, Listener};
use crate::flow::accept::{CallLimits, Protocol, Trust};
use crate::flow::{accept, address, admit};
use bytes::Bytes;
use muxgate_wire::mux::handshake::{CompressionLevel, TlsLevel};
use muxgate_wire::name::{MAX_PATH_TEXT, Path};
use muxgate_wire::thrift;
use std::net::SocketAddr;

/// Smallest limit on frames that is of any use.
const MIN_FRAME: u64 = 1024;

/// Largest limit on frames: what a Thrift length can say, and no more memory than a host can spare for one call.
pub(super) const MAX_FRAME: u64 = 1 << 30;

/// Largest limit on things that are counted.
const MAX_COUNT: u64 = 1_000_000;

/// Most contexts, or entries of a dtab, that one call may be allowed: reading them takes time that grows with their square.
const MAX_PAIRS: u64 = 1024;

/// Words for how much compression is wanted.
pub(super) const COMPRESSION: [(&str, CompressionLevel); 3] = [
    ("off", CompressionLevel::Off),
    ("accepted", CompressionLevel::Accepted),
    ("desired", CompressionLevel::Desired),
];

/// Tags of a Mux connection.
const MAX_TAGS: u64 = (1 << 23) - 1;

const LISTENER: Shape = Shape {
    what: "a listener",
    keys: &[
        "name",
        "ip",
        "port",
        "protocol",
        "thriftProtocol",
        "onewayMethods",
        "dst",
        "dstPrefix",
        "thriftMethodInDst",
        "thriftServiceInDst",
        "maxConcurrentRequests",
        "maxConnections",
        "maxConnectionsPerPeer",
        "maxInFlight",
        "maxFrameBytes",
        "maxQueuedBytes",
        "stallTimeoutMs",
        "idleTimeMs",
        "tls",
        "lifeTimeMs",
        "trust",
        "maxContexts",
        "maxContextBytes",
        "maxDtabEntries",
        "maxDestinationBytes",
        "maxMethodNameBytes",
        "maxNesting",
        "compression",
        "announce",
        "dtabOverrides",
    ],
    strangers: &[
        ("label", "did you mean `name`?"),
        (
            "thriftFramed",
            "write `protocol: framed` or `protocol: buffered`, or leave it out: first bytes tell",
        ),
        ("oneway", "did you mean `onewayMethods`?"),
        ("dtab", "there is one `dtab`, at the top of the file"),
        ("timeoutMs", "write `totalTimeoutMs` in an entry of `services`"),
        ("address", "write `ip` and `port`"),
        ("clearContext", "write `trust: outside`: then callers' contexts and dtabs are dropped"),
        ("serverSession", "write `idleTimeMs` and `lifeTimeMs` directly below the listener"),
    ],
};

/// The listeners, if none has a mistake that leaves nothing to build.
pub(super) fn listeners(
    root: &Fields<'_>,
    admin: Option<&Admin>,
    announcers: Option<&[Announcer]>,
) -> Option<Vec<Listener>> {
    root.missing("listeners", "for example `listeners: [{port: 4114}]`");
    let all = root.list("listeners", &LISTENER)?;
    if all.is_empty() {
        root.wrong("listeners", "there is no listener", "for example `- port: 4114`");
    }
    let mut found: Vec<Listener> = Vec::new();
    for fields in &all {
        if let Some(listener) = listener(fields, announcers) {
            check_conflicts(fields, &listener, &found, admin);
            found.push(listener);
        }
    }
    (found.len() == all.len() && !found.is_empty()).then_some(found)
}

fn listener(fields: &Fields<'_>, announcers: Option<&[Announcer]>) -> Option<Listener> {
    fields.missing("port", "for example `port: 4114`");
    let port = fields.count("port", 0..=u16::MAX.into(), "").map(|port| port as u16);
    let address = SocketAddr::new(ip(fields), port.unwrap_or_default());
    let name = match fields.get("name") {
        None => format!("thrift-{}", address.port()),
        Some(_) => name(fields)?,
    };
    let (accept, admit) = (accept(fields, &name, address), admit(fields));
    let prefix = path_or(fields, "dstPrefix", "/svc");
    let default = path_or(fields, "dst", &format!("/{name}"));
    let method_in_dst = fields.flag("thriftMethodInDst").unwrap_or(false);
    let service_in_dst = fields.flag("thriftServiceInDst").unwrap_or(false);
    let announce = announcers::announce(fields, announcers);
    let tls = tls::server(fields);
    if fields.get("tls").is_some() && !fields.is_none("tls") {
        tls.as_ref()?;
    }
    let agreed = tls.as_ref().is_some_and(|tls| tls.opportunistic != TlsLevel::Off);
    check_agreements(fields, &accept, agreed);
    port?;
    Some(Listener {
        tls,
        accept,
        address: address::Params { prefix: prefix?, default: default?, method_in_dst, service_in_dst },
        admit,
        announce,
    })
}

/// What is agreed upon in a Mux handshake says nothing where none can come in.
fn check_agreements(fields: &Fields<'_>, accept: &accept::Params, tls: bool) {
    if matches!(accept.protocol, Protocol::Detect | Protocol::ThriftMux) {
        return;
    }
    if accept.compression != CompressionLevel::Off {
        let help = "leave it out, or set `protocol: thriftmux`, or `detect`";
        fields.wrong("compression", "compression is agreed upon in Mux's handshake", help);
    }
    if tls {
        let help = "leave `opportunistic` out: connections are encrypted from their first byte";
        let message = "only thriftmux can begin in clear and go on encrypted";
        fields.wrong_in("tls", "opportunistic", message, help);
    }
}

fn path_or(fields: &Fields<'_>, key: &str, default: &str) -> Option<Path> {
    match fields.get(key) {
        None => Path::parse(default).ok(),
        Some(_) => fields.path(key),
    }
}

/// A name is a label of metrics and an element of a path.
fn name(fields: &Fields<'_>) -> Option<String> {
    let name = fields.word("name")?;
    if let Some(odd) = name.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.')) {
        let help = "a name holds letters, digits, `-`, `_` and `.`";
        fields.in_text("name", name, odd, format!("`{name}` cannot be the name of a listener"), help);
        return None;
    }
    Some(name.to_string())
}

fn accept(fields: &Fields<'_>, name: &str, address: SocketAddr) -> accept::Params {
    let mut params = accept::Params::new(name, address);
    let zero = "nothing could come in; leave the key out for the default";
    let count = |key: &str, bounds, value: &mut usize| {
        if let Some(said) = fields.count(key, bounds, zero) {
            *value = said as usize;
        }
    };
    count("maxConnections", 1..=MAX_COUNT, &mut params.max_connections);
    count("maxInFlight", 1..=MAX_TAGS, &mut params.max_in_flight);
    count("maxFrameBytes", MIN_FRAME..=MAX_FRAME, &mut params.max_frame);
    count("maxQueuedBytes", MIN_FRAME..=MAX_FRAME, &mut params.max_queued);
    params.stall = fields.millis("stallTimeoutMs").unwrap_or(params.stall);
    if !fields.is_none("maxConnectionsPerPeer") {
        let most = fields.count("maxConnectionsPerPeer", 1..=MAX_COUNT, zero);
        params.max_per_peer = most.map(|most| most as usize);
    }
    params.compression = fields.choice("compression", &COMPRESSION).unwrap_or(params.compression);
    params.idle = fields.keep_or_none("idleTimeMs").unwrap_or(params.idle);
    params.life = fields.keep_or_none("lifeTimeMs").unwrap_or(params.life);
    params.trust =
        fields.choice("trust", &[("inside", Trust::Inside), ("outside", Trust::Outside)]).unwrap_or_default();
    params.overrides = overrides::overrides(fields, params.trust);
    params.limits = call_limits(fields);
    spoken(fields, &mut params);
    params
}

fn call_limits(fields: &Fields<'_>) -> CallLimits {
    let mut limits = CallLimits::default();
    let count = |key: &str, bounds, zero: &str, value: &mut usize| {
        if let Some(said) = fields.count(key, bounds, zero) {
            *value = said as usize;
        }
    };
    let zero = "Finagle callers send some with every call; leave the key out for the default";
    count("maxContexts", 1..=MAX_PAIRS, zero, &mut limits.contexts);
    count("maxContextBytes", 1..=MAX_FRAME, zero, &mut limits.context_bytes);
    count("maxDtabEntries", 0..=MAX_PAIRS, "", &mut limits.dtab_entries);
    let zero = "every call with a name would be refused; leave the key out for the default";
    count("maxDestinationBytes", 1..=MAX_PATH_TEXT as u64, zero, &mut limits.destination_bytes);
    let zero = "every call has a method; leave the key out for the default";
    count("maxMethodNameBytes", 1..=thrift::MAX_NAME as u64, zero, &mut limits.method_bytes);
    let zero = "arguments are a struct, which is one level; leave the key out for the default";
    count("maxNesting", 1..=thrift::MAX_DEPTH as u64, zero, &mut limits.nesting);
    limits
}

fn spoken(fields: &Fields<'_>, params: &mut accept::Params) {
    let protocols = [
        ("detect", Protocol::Detect),
        ("thriftmux", Protocol::ThriftMux),
        ("framed", Protocol::Framed),
        ("buffered", Protocol::Buffered),
        ("header", Protocol::Header),
    ];
    params.protocol = fields.choice("protocol", &protocols).unwrap_or_default();
    let encodings = [
        ("detect", None),
        ("binary", Some(thrift::Protocol::Binary)),
        ("compact", Some(thrift::Protocol::Compact)),
    ];
    params.thrift_protocol = fields.choice("thriftProtocol", &encodings).unwrap_or_default();
    let help = "for example `onewayMethods: [note, Audit:record]`";
    let methods = fields.words("onewayMethods", help).unwrap_or_default();
    if let Some(long) = methods.iter().find(|method| method.len() > thrift::MAX_NAME) {
        let message = format!("a method name has {} bytes", long.len());
        fields.wrong("onewayMethods", message, format!("names have {} at most", thrift::MAX_NAME));
    }
    params.oneway_methods =
        methods.into_iter().map(|method| Bytes::copy_from_slice(method.as_bytes())).collect();
}

fn admit(fields: &Fields<'_>) -> admit::Params {
    if fields.is_none("maxConcurrentRequests") {
        return admit::Params { max_concurrent: None };
    }
    let zero = "every call would be refused; leave the key out for no limit";
    let most = fields.count("maxConcurrentRequests", 1..=MAX_COUNT, zero);
    admit::Params { max_concurrent: most.map(|most| most as usize) }
}

fn check_conflicts(fields: &Fields<'_>, listener: &Listener, found: &[Listener], admin: Option<&Admin>) {
    let address = listener.accept.address;
    if let Some(other) = found.iter().find(|other| clash(other.accept.address, address)) {
        let message = format!("{address} is taken by the listener `{}`", other.accept.name);
        fields.wrong("port", message, "give each listener a port of its own");
    } else if found.iter().any(|other| other.accept.name == listener.accept.name) {
        let message = format!("two listeners have the name `{}`", listener.accept.name);
        fields.wrong("name", message, "names tell listeners apart in logs and metrics");
    }
    if admin.is_some_and(|admin| clash(admin.address, address)) {
        let help = "choose another port here, or `admin: {port: ...}`";
        fields.wrong("port", format!("{address} is taken by the admin server"), help);
    }
}

/// Whether two sockets cannot listen side by side. Port 0 means any free port.
fn clash(a: SocketAddr, b: SocketAddr) -> bool {
    let everywhere = a.ip().is_unspecified() || b.ip().is_unspecified();
    a.port() == b.port() && a.port() != 0 && (a.ip() == b.ip() || everywhere)
}
