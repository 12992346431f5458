//! What good files mean.

use crate::config::plan::Plan;
use crate::config::{Report, parse, parse_with_store};
use crate::flow::accept::{CallLimits, Trust};
use crate::flow::bind::{Backoff, Classifier, Retries};
use crate::flow::choose::Balancer;
use crate::flow::dispatch::{Accrual, Upstream};
use crate::flow::{accept, admit, bind, choose, dispatch};
use crate::names::namers::configured::Discovery;
use crate::names::namers::fs;
use crate::outside::http::Credentials;
use muxgate_wire::mux::handshake::CompressionLevel;
use muxgate_wire::name::{NameError, Path};
use muxgate_wire::thrift::Protocol as Encoding;
use std::time::Duration;

/// Why a test cannot go on: one of the texts in it is wrong.
#[derive(Debug)]
struct Bad(#[expect(dead_code, reason = "shown when a test fails")] String);

impl From<Report> for Bad {
    fn from(report: Report) -> Self {
        Self(report.to_string())
    }
}

impl From<NameError> for Bad {
    fn from(error: NameError) -> Self {
        Self(error.to_string())
    }
}

const SMALLEST: &str = include_str!("../../../examples/minimal.yaml");

fn client(plan: &Plan, id: &str) -> Result<(choose::Params, dispatch::Params), Bad> {
    Ok(plan.client(&Path::parse(id)?))
}

#[test]
fn the_smallest_file_has_the_documented_defaults() -> Result<(), Bad> {
    let plan = parse("gate.yaml", SMALLEST)?;
    assert_eq!(plan.text(), SMALLEST);
    assert_eq!(plan.admin().map(|admin| admin.address.to_string()).as_deref(), Some("127.0.0.1:9990"));
    assert_eq!(plan.grace(), Duration::from_secs(10));
    assert!(plan.threads() >= 1);
    assert!(plan.zipkin().is_none());
    assert_eq!(plan.dtab().to_string(), "/svc=>/#/io.l5d.fs");
    let [namer] = plan.namers() else { return Err(Bad("one namer".into())) };
    assert_eq!(namer.prefix.as_str(), "/io.l5d.fs");
    assert_eq!(namer.discovery, Discovery::Fs(fs::Params { root: "disco".into() }));
    let [listener] = plan.listeners() else { return Err(Bad("one listener".into())) };
    assert_eq!(listener.accept.name, "thrift-4114");
    assert_eq!(listener.accept.address.to_string(), "127.0.0.1:4114");
    assert_eq!((listener.address.prefix.as_str(), listener.address.default.as_str()), ("/svc", "/users"));
    assert_eq!(listener.admit, admit::Params::default());
    assert_eq!(plan.service(&Path::parse("/svc/users")?), bind::Params::default());
    assert_eq!(client(&plan, "/#/io.l5d.fs/users")?, Default::default());
    Ok(())
}

#[test]
fn the_full_example_shows_the_defaults() -> Result<(), Bad> {
    let (full, small) =
        (parse("full.yaml", include_str!("../../../examples/full.yaml"))?, parse("-", SMALLEST)?);
    assert_eq!((full.admin(), full.grace()), (small.admin(), small.grace()));
    assert_eq!(full.recent_traces(), small.recent_traces());
    let [(full_listener, small_listener)] =
        full.listeners().iter().zip(small.listeners()).collect::<Vec<_>>()[..]
    else {
        return Err(Bad("one listener".into()));
    };
    assert_eq!(
        (&full_listener.accept, &full_listener.admit),
        (&small_listener.accept, &small_listener.admit)
    );
    assert_eq!(full_listener.address.default.as_str(), "/thrift-4114");
    assert_eq!(full.service(&Path::parse("/svc/users")?), bind::Params::default());
    assert_eq!(client(&full, "/#/io.l5d.fs/users")?, Default::default());
    let framed = dispatch::Params { upstream: Upstream::Framed, ..Default::default() };
    assert_eq!(client(&full, "/#/io.l5d.fs/orders")?.1, framed);
    Ok(())
}

#[test]
fn the_files_of_the_readme_are_good() -> Result<(), Bad> {
    let readme = include_str!("../../../README.md");
    let files: Vec<_> =
        readme.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(!files.is_empty());
    files.into_iter().try_for_each(|file| parse("README.md", file).map(drop).map_err(Bad::from))
}

#[test]
fn the_example_of_the_containers_is_good() -> Result<(), Bad> {
    let plan = parse("gateway.yaml", include_str!("../../../examples/compose/gateway.yaml"))?;
    assert_eq!(plan.listeners().len(), 3);
    Ok(())
}

#[test]
fn a_store_needs_no_table_and_the_command_line_wins() -> Result<(), Bad> {
    let file = "store: {addresses: ['http://a:4180/', 'http://[::1]:1'], namespace: shop, tokenFile: t}
listeners: [{port: 0}]
";
    let plan = parse("gate.yaml", file)?;
    let store = plan.store().ok_or(Bad("a store".into()))?;
    assert_eq!(store.to_string(), "the table shop of http://a:4180 or http://[::1]:1");
    assert_eq!(store.stores[1].credentials, Credentials::TokenFile("t".into()));
    assert!(plan.dtab().is_empty());

    for file in [file, "listeners: [{port: 0}]"] {
        let plan = parse_with_store("gate.yaml", file, &["http://b:1".into()], None).map_err(Bad)?;
        assert_eq!(plan.store().map(ToString::to_string).as_deref(), Some("the table default of http://b:1"));
    }
    for (address, namespace, said) in [
        ("b:1", None, "--store b:1: want http://HOST:PORT"),
        ("https://b", None, "write `store` and its `tls` into the file"),
        ("http://b", Some("a b"), "--namespace: `a b` cannot be"),
    ] {
        let wrong = parse_with_store("gate.yaml", file, &[address.into()], namespace);
        assert!(wrong.as_ref().is_err_and(|why| why.contains(said)), "{wrong:?}");
    }
    Ok(())
}

#[test]
fn server_sets_are_read_and_announced() -> Result<(), Bad> {
    let plan = parse(
        "gate.yaml",
        "namers: [{kind: io.l5d.serversets, zkAddrs: [{host: a}, {host: \"::1\", port: 7}], sessionTimeoutMs: 2000}]
announcers:
- {kind: io.l5d.serversets, zkAddrs: [{host: b}], authInfo: {scheme: digest, auth: \"me:secret\"}}
- {kind: io.l5d.serversets, zkAddrs: [{host: c}], pathPrefix: /x/y, prefix: /other}
dtab: /svc => /#/io.l5d.serversets/prod
listeners: [{port: 0, announce: [/#/io.l5d.serversets/eu/web, /#/other/web]}]
",
    )?;
    let [namer] = plan.namers() else { return Err(Bad("one namer".into())) };
    assert_eq!(namer.discovery.to_string(), "server sets in ZooKeeper at a:2181,[::1]:7");
    let [listener] = plan.listeners() else { return Err(Bad("one listener".into())) };
    let announced: Vec<_> =
        listener.announce.iter().map(|to| format!("{} at {}", to.node, to.params.zk)).collect();
    assert_eq!(announced, ["/discovery/eu/web at b:2181", "/x/y/web at c:2181"]);
    Ok(())
}

#[test]
fn later_entries_win_key_by_key() -> Result<(), Bad> {
    let rules = "
services:
- totalTimeoutMs: 1000
  retries: {budget: {percentCanRetry: 0.5, minRetriesPerSec: 1}}
- prefix: /svc/*/slow
  totalTimeoutMs: none
- prefix: /svc/eu
  retries: {budget: {percentCanRetry: 0}, backoff: {kind: constant, ms: 0}}
  responseClassifier: {kind: io.l5d.thrift.retryableFailures}
clients:
- protocol: framed
  thriftProtocol: compact
  stripServiceName: true
  failureAccrual: {kind: none}
  hostConnectionPool: {maxSize: 5, maxWaiters: 6}
- prefix: /#/io.l5d.fs/mux
  protocol: thriftmux
  thriftProtocol: same
  loadBalancer: {kind: ewma}
  hostConnectionPool: {lifeTimeMs: 60000}
  failureAccrual: {kind: io.l5d.consecutiveFailures, failures: 3, backoff: {kind: constant, ms: 100}}
- prefix: /#/io.l5d.fs/mux/b
  declaredExceptions: failure
  compression: desired
  requestAttemptTimeoutMs: 250
";
    let plan = parse("gate.yaml", &format!("{SMALLEST}{rules}"))?;
    let service = |name| -> Result<bind::Params, Bad> { Ok(plan.service(&Path::parse(name)?)) };
    assert_eq!(service("/svc/us/fast")?.total, Some(Duration::from_secs(1)));
    let both = service("/svc/eu/slow")?;
    assert_eq!((both.total, both.budget.percent, both.budget.min_per_sec), (None, 0.0, 1));
    let (classifier, backoff) = (Classifier::RetryableFailures, Backoff::Constant(Duration::ZERO));
    assert_eq!(both.retries, Retries { classifier, backoff });
    assert_eq!(service("/svc/us/slow")?.retries, Retries::default());

    let (balance, plain) = client(&plan, "/#/io.l5d.fs/users")?;
    assert_eq!(balance.balancer, Balancer::LeastLoaded);
    assert_eq!((plain.upstream, plain.accrual), (Upstream::Framed, None));
    assert_eq!((plain.protocol, plain.strip_service), (Some(Encoding::Compact), true));
    assert_eq!((plain.pool.max_size, plain.pool.max_waiters), (5, 6));

    let (balance, mux) = client(&plan, "/#/io.l5d.fs/mux/b")?;
    assert_eq!(balance.balancer, Balancer::PeakEwma { decay: Duration::from_secs(10) });
    let pause = Duration::from_millis(100);
    assert_eq!(mux.accrual, Some(Accrual { failures: 3, min_backoff: pause, max_backoff: pause }));
    assert_eq!((mux.upstream, mux.attempt), (Upstream::ThriftMux, Some(Duration::from_millis(250))));
    assert!(mux.declared_fails);
    assert_eq!((mux.pool.life, plain.pool.life), (Some(Duration::from_secs(60)), None));
    assert_eq!((mux.compression, plain.compression), (CompressionLevel::Desired, CompressionLevel::Off));
    assert_eq!((mux.protocol, mux.strip_service), (None, true));
    Ok(())
}

#[test]
fn services_may_speak_any_transport() -> Result<(), Bad> {
    for (word, upstream) in [
        ("thriftmux", Upstream::ThriftMux),
        ("framed", Upstream::Framed),
        ("ttwitter", Upstream::TTwitter),
        ("buffered", Upstream::Buffered),
        ("header", Upstream::Header),
    ] {
        let plan =
            parse("-", &format!("{SMALLEST}clients: [{{protocol: {word}, thriftProtocol: binary}}]\n"))?;
        let params = client(&plan, "/#/io.l5d.fs/users")?.1;
        assert_eq!((params.upstream, params.protocol), (upstream, Some(Encoding::Binary)));
    }
    Ok(())
}

#[test]
fn every_key_of_a_listener_arrives() -> Result<(), Bad> {
    let text = "
dtab: /svc => /$/inet/127.0.0.1/9000
admin: {ip: 127.0.0.2, port: 0, shutdownGraceMs: 50}
threads: 3
telemetry:
- {kind: io.l5d.zipkin, url: \"http://127.0.0.1:9411\", sampleRate: 0.5, serviceName: edge}
- {kind: io.l5d.recentRequests, capacity: 7}
listeners:
- name: edge
  ip: 0.0.0.0
  port: 0
  protocol: buffered
  thriftProtocol: compact
  onewayMethods: [note, 'Audit:record']
  dst: /users
  dstPrefix: /in
  thriftMethodInDst: true
  thriftServiceInDst: true
  maxConcurrentRequests: 1
  maxConnections: 2
  maxInFlight: 3
  maxFrameBytes: 4096
  maxQueuedBytes: 8192
  stallTimeoutMs: 6
  idleTimeMs: 7
  lifeTimeMs: 8
  maxConnectionsPerPeer: 9
  trust: outside
  maxContexts: 10
  maxContextBytes: 11
  maxDtabEntries: 0
  maxDestinationBytes: 12
  maxMethodNameBytes: 13
  maxNesting: 14
- {name: mux, port: 0, protocol: thriftmux, compression: accepted}
";
    let plan = parse("gate.yaml", text)?;
    assert_eq!(plan.admin().map(|admin| admin.address.to_string()).as_deref(), Some("127.0.0.2:0"));
    assert_eq!((plan.threads(), plan.grace(), plan.recent_traces()), (3, Duration::from_millis(50), 7));
    let zipkin = plan.zipkin().ok_or(Bad("no zipkin".into()))?;
    assert_eq!(zipkin.url.to_string(), "http://127.0.0.1:9411/api/v2/spans");
    assert_eq!((zipkin.sample_rate, zipkin.service_name.as_str()), (0.5, "edge"));
    let [listener, mux] = plan.listeners() else { return Err(Bad("two listeners".into())) };
    let accept = &listener.accept;
    assert_eq!((accept.name.as_str(), accept.address.to_string().as_str()), ("edge", "0.0.0.0:0"));
    assert_eq!(
        (accept.protocol, accept.thrift_protocol),
        (accept::Protocol::Buffered, Some(Encoding::Compact))
    );
    assert_eq!(accept.oneway_methods, ["note", "Audit:record"]);
    assert_eq!((accept.max_connections, accept.max_in_flight), (2, 3));
    assert_eq!((accept.max_frame, accept.max_queued), (4096, 8192));
    assert_eq!((accept.stall, accept.idle), (Duration::from_millis(6), Some(Duration::from_millis(7))));
    assert_eq!((accept.life, accept.max_per_peer), (Some(Duration::from_millis(8)), Some(9)));
    assert_eq!(accept.trust, Trust::Outside);
    let limits = CallLimits {
        contexts: 10,
        context_bytes: 11,
        dtab_entries: 0,
        destination_bytes: 12,
        method_bytes: 13,
        nesting: 14,
    };
    assert_eq!(accept.limits, limits);
    assert_eq!(mux.accept.compression, CompressionLevel::Accepted);
    assert_eq!(listener.admit.max_concurrent, Some(1));
    assert_eq!(listener.address.prefix.as_str(), "/in");
    assert!(listener.address.method_in_dst && listener.address.service_in_dst);
    Ok(())
}

#[test]
fn odd_but_lawful_files_are_taken() -> Result<(), Bad> {
    assert!(parse("-", &format!("admin: none\n{SMALLEST}"))?.admin().is_none());
    // An empty table is lawful when it is written: calls may bring their own.
    assert!(parse("-", "dtab: ''\nlisteners: [{port: 1}]\n")?.dtab().is_empty());
    // A name below /# without a namer is lawful if the table itself rewrites it.
    parse("-", "dtab: /#/old => /$/inet/127.0.0.1/1 ; /svc => /#/old\nlisteners: [{port: 1}]\n")?;
    // Ports that the system chooses do not clash.
    parse("-", "dtab: ''\nadmin: {port: 0}\nlisteners: [{name: a, port: 0}, {name: b, port: 0}]\n")?;
    // Anchors work; what they copy is checked where it is used.
    let text =
        "dtab: ''\nlisteners: [{port: 1}]\nclients:\n- &a {protocol: framed}\n- {<<: *a, prefix: /$/inet}\n";
    assert_eq!(client(&parse("-", text)?, "/$/inet/127.0.0.1/1")?.1.upstream, Upstream::Framed);
    Ok(())
}

#[test]
fn what_is_too_large_is_refused_early() {
    let long = format!("dtab: ''\n#{}\n", "x".repeat(crate::config::MAX_FILE));
    let deep = format!("dtab: {}{}\n", "[".repeat(40), "]".repeat(40));
    let wide = format!("listeners: [{}]\n", "1,".repeat(30_000));
    for text in [long, deep, wide] {
        assert_eq!(parse("-", &text).map_err(|report| report.count()).err(), Some(1));
    }
}
