//! What the tests share: servers that are started once (a JVM costs seconds), gateways, names and ids.

use muxgate_testkit::Gateway;
use muxgate_testkit::finagle::{Finagle, Server};
use muxgate_testkit::language::{ALL, Language, Name};
use muxgate_testkit::zipkin::Zipkin;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, OnceLock};
use tempfile::TempDir;

/// The kit.
pub static FINAGLE: LazyLock<Finagle> = LazyLock::new(|| Finagle::find(repository(), target()));
/// ThriftMux, binary; every reply has a header.
pub static THRIFTMUX: LazyLock<Server> =
    LazyLock::new(|| FINAGLE.server("thriftmux", &["--reply-header", "from=thriftmux"]));
/// Mux, binary; every reply has a header.
pub static MUX: LazyLock<Server> =
    LazyLock::new(|| FINAGLE.server("mux", &["--proto", "mux", "--reply-header", "from=mux"]));
/// Framed Thrift, binary; TTwitter understood.
pub static THRIFT: LazyLock<Server> =
    LazyLock::new(|| FINAGLE.server("thrift", &["--proto", "thrift", "--strict-oneway"]));
/// ThriftMux, compact.
pub static COMPACT: LazyLock<Server> = LazyLock::new(|| FINAGLE.server("compact", &["--codec", "compact"]));
/// The Python peer.
pub static PYTHON: LazyLock<&Language> = LazyLock::new(|| language(Name::Python));
/// The Go peer.
pub static GO: LazyLock<&Language> = LazyLock::new(|| language(Name::Go));
/// Zipkin.
pub static ZIPKIN: LazyLock<Zipkin> = LazyLock::new(|| Zipkin::start(target()));

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn target() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// A peer in another language, built once for all tests.
pub fn language(name: Name) -> &'static Language {
    static BUILT: [OnceLock<Language>; ALL.len()] = [const { OnceLock::new() }; ALL.len()];
    BUILT[name as usize].get_or_init(|| Language::build(name, repository(), target()))
}

/// The program under test; `MUXGATE_BIN` names another build of it.
pub fn program() -> String {
    std::env::var("MUXGATE_BIN").unwrap_or_else(|_| env!("CARGO_BIN_EXE_muxgate").to_owned())
}

/// A gateway in front of one address. `upstream` is its protocol there.
pub fn gateway(to: SocketAddr, upstream: &str, more: &[&str]) -> Gateway {
    let dtab = format!("/svc => {}", inet(to));
    let mut args = vec!["--dtab", &dtab, "--upstream", upstream];
    args.extend(more);
    Gateway::start(&program(), &args)
}

/// The address as a name.
pub fn inet(addr: SocketAddr) -> String {
    format!("/$/inet/{}/{}", addr.ip(), addr.port())
}

/// A gateway in front of several endpoints of one service, which a file names.
pub struct Cluster {
    /// The gateway.
    pub gateway: Gateway,
    _files: TempDir,
}

/// Starts a [`Cluster`].
pub fn cluster(endpoints: &[SocketAddr], upstream: &str) -> Cluster {
    let files = tempfile::tempdir().expect("a temporary folder");
    let lines: String = endpoints.iter().map(|a| format!("{} {}\n", a.ip(), a.port())).collect();
    std::fs::write(files.path().join("echo"), lines).expect("the temporary folder can be written to");
    let folder = files.path().to_string_lossy().into_owned();
    let args = ["--dtab", "/svc => /#/io.l5d.fs/echo", "--fs", &folder, "--upstream", upstream];
    Cluster { gateway: Gateway::start(&program(), &args), _files: files }
}

/// A 64-bit trace id that nobody else uses: how a test finds its own calls in the log of a shared server.
pub fn trace_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("7e57{:08x}{:04x}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}
