//! The demo's folder of services, its configuration, and what is said at its start.

use super::rates::say;
use super::services::{Service, Services};
use super::{Gateway, Options};
use std::fmt::Write;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

/// A folder in which each file is a service; it goes away with the demo.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub fn new(services: &Services) -> Result<Self, String> {
        let path = std::env::temp_dir().join(format!("muxgate-demo-{}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|error| format!("cannot make {}: {error}", path.display()))?;
        let folder = Self(path);
        for service in Service::ALL {
            let mut lines = String::new();
            for (_, address) in services.endpoints().iter().filter(|(owner, _)| *owner == service) {
                let _ = writeln!(lines, "{} {}", address.ip(), address.port());
            }
            let file = folder.0.join(service.name());
            std::fs::write(&file, lines)
                .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        }
        Ok(folder)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(folder = %self.0.display(), %error, "the demo's folder stays");
        }
    }
}

/// The demo's configuration. It is read like any file, and shown under `/config`.
pub(super) fn file(options: &Options, folder: &Folder) -> String {
    let admin = options.admin.unwrap_or_else(default_admin);
    let mut out = format!(
        "# The gateway of `muxgate demo`.\nadmin:\n  ip: \"{}\"\n  port: {}\n",
        admin.ip(),
        admin.port()
    );
    if let Some(url) = &options.zipkin {
        let url = serde_json::Value::from(url.as_str());
        let _ = write!(out, "\ntelemetry:\n- kind: io.l5d.zipkin\n  url: {url}\n  sampleRate: 1.0\n");
    }
    let folder = serde_json::Value::from(folder.path().display().to_string());
    let _ = write!(out, "\n# Each file in this folder is a service: edit one and see what happens.\n");
    let _ = write!(out, "namers:\n- kind: io.l5d.fs\n  rootDir: {folder}\n");
    out.push_str(NAMES);
    for service in Service::ALL {
        let name = service.name();
        let _ = write!(out, "- name: {name}\n  port: 0\n  dst: /{name}\n");
    }
    out.push_str("\n# What the services speak, and when an endpoint is left out.\nclients:\n");
    for service in Service::ALL {
        let (name, protocol) = (service.name(), service.protocol());
        let _ = write!(out, "- prefix: /#/io.l5d.fs/{name}\n  protocol: {protocol}\n");
    }
    out.push_str(SETTINGS);
    out
}

const NAMES: &str = "
# A call for users has the name /svc/users.
dtab: |
  /host => /#/io.l5d.fs ;
  /svc  => /host ;

# Plain Thrift calls name no service, so each service has a port. ThriftMux calls may come in by any of them.
listeners:
";

const SETTINGS: &str = "- prefix: /
  loadBalancer: {kind: ewma}
  failureAccrual:
    kind: io.l5d.consecutiveFailures
    failures: 5
    backoff: {kind: jittered, minMs: 500, maxMs: 5000}

services:
- prefix: /svc
  totalTimeoutMs: 2000
  retries:
    budget: {percentCanRetry: 0.2, minRetriesPerSec: 10}
";

/// linkerd's admin port, or a free one if somebody has it.
fn default_admin() -> SocketAddr {
    let usual = SocketAddr::from(([127, 0, 0, 1], 9990));
    match TcpListener::bind(usual) {
        Ok(_) => usual,
        Err(_) => {
            say("Port 9990 is taken; the admin pages get a free one.\n");
            SocketAddr::from(([127, 0, 0, 1], 0))
        }
    }
}

/// Says what is there to be seen.
pub(super) fn welcome(gateway: &impl Gateway, folder: &Folder) {
    let mut out = String::from(
        "muxgate demo: users (fast), orders (slow), payments (fails at times), one gateway.\n\n",
    );
    if let Some(admin) = gateway.admin() {
        for (what, path) in
            [("numbers", "/"), ("traces", "/traces"), ("metrics", "/metrics"), ("config", "/config")]
        {
            let _ = writeln!(out, "  {what:9} http://{admin}{path}");
        }
    }
    let _ =
        writeln!(out, "  services  {} (one file each; edits take effect at once)", folder.path().display());
    out.push_str("\nCalls of your own (framed or buffered Thrift, THeader, TTwitter or ThriftMux; binary or compact) go to:\n\n");
    for service in Service::ALL {
        if let Some(address) = gateway.listener(service.name()) {
            let _ = writeln!(out, "  {:9} {address}  {}", service.name(), service.signature());
        }
    }
    out.push_str("\nCtrl-C ends it. One line a service, each second:\n\n");
    say(&out);
}
