//! Finagle over TLS on both sides of the gateway, and what OpenSSL makes.

use crate::world::{FINAGLE, program, trace_id};
use muxgate_testkit::Gateway;
use muxgate_testkit::certs::{Authority, Files};
use muxgate_testkit::finagle::Server;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Certificates of everybody, and what the gateway finds services in.
struct World {
    folder: TempDir,
    authority: Authority,
    bundle: String,
    gate: Files,
    caller: Files,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("disco")).expect("a folder");
        let authority = Authority::new("Test Authority");
        let bundle = text(&authority.write(folder.path(), "ca"));
        let gate = authority.issue("gate", &["gate.example.org"]).write(folder.path(), "gate");
        let caller =
            authority.issue("caller", &["spiffe://example.org/caller"]).write(folder.path(), "caller");
        Self { folder, authority, bundle, gate, caller }
    }

    /// A Finagle server with a certificate for `NAME.example.org`, which asks for those of this authority.
    fn server(&self, name: &str, more: &[&str]) -> Server {
        let files =
            self.authority.issue(name, &[&format!("{name}.example.org")]).write(self.folder.path(), name);
        let (cert, key) = (text(&files.certificate), text(&files.key));
        let args = ["--tls-cert", &cert, "--tls-key", &key, "--tls-client-ca", &self.bundle];
        let server = FINAGLE.server(name, &[&args[..], more].concat());
        let line = format!("{} {}\n", server.addr.ip(), server.addr.port());
        std::fs::write(self.folder.path().join("disco").join(name), line).expect("written");
        server
    }

    /// A gateway that requires certificates and shows its own, in front of the service `name`.
    fn gateway(&self, name: &str, protocol: &str, level: &str) -> Gateway {
        let (cert, key) = (self.gate.certificate.display(), self.gate.key.display());
        let (bundle, folder) = (&self.bundle, self.folder.path().join("disco"));
        let yaml = format!(
            "admin: {{port: 0}}\nnamers: [{{kind: io.l5d.fs, rootDir: {}}}]\ndtab: /svc => /#/io.l5d.fs\n\
             listeners:\n- port: 0\n  dst: /{name}\n  tls: {{certPath: {cert}, keyPath: {key}, caCertPath: {bundle}, \
             requireClientAuth: true, opportunistic: {level}}}\n\
             clients:\n- prefix: /#/io.l5d.fs/{{service}}\n  protocol: {protocol}\n  \
             tls: {{commonName: '{{service}}.example.org', trustCertsBundle: {bundle}, \
             clientAuth: {{certPath: {cert}, keyPath: {key}}}, opportunistic: {level}}}\n",
            folder.display()
        );
        let path = self.folder.path().join(format!("{name}-{protocol}-{level}.yaml"));
        std::fs::write(&path, yaml).expect("written");
        Gateway::of_file(&program(), &path)
    }

    /// What makes a Finagle client believe the gateway and show who it is.
    fn caller(&self) -> Vec<String> {
        let (cert, key) = (text(&self.caller.certificate), text(&self.caller.key));
        ["--tls-ca", &self.bundle, "--sni", "gate.example.org", "--client-cert", &cert, "--client-key", &key]
            .map(String::from)
            .to_vec()
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Calls by Finagle, and who the server says has called.
fn call(world: &World, gateway: &Gateway, server: &Server, more: &[&str]) {
    let (from, trace) = (server.mark(), trace_id());
    let caller = world.caller();
    let mut args: Vec<&str> = caller.iter().map(String::as_str).collect();
    args.extend(["--n", "20", "--concurrency", "4", "--trace-id", &trace, "--sampled"]);
    args.extend(more);
    FINAGLE.call(gateway.addr, &args).all_ok();
    let peer = server.wait_log(from, "a request by TLS", |event| {
        (event["event"] == "request").then(|| event["tls_peer"].as_str().unwrap_or_default().to_owned())
    });
    assert!(peer.contains("CN=gate"), "{more:?}: {peer}");
}

#[test]
fn finagle_calls_finagle_by_tls_with_certificates_on_both_sides() {
    let world = World::new();
    let server = world.server("echo", &[]);
    for protocol in ["thriftmux", "framed", "ttwitter"] {
        let gateway = world.gateway("echo", protocol, "off");
        for proto in ["thriftmux", "thrift", "ttwitter"] {
            call(&world, &gateway, &server, &["--tls", "--proto", proto]);
            // More than fits into one record, both ways.
            call(&world, &gateway, &server, &["--tls", "--proto", proto, "--size", "300000"]);
        }
        assert_eq!(gateway.metrics().sum("muxgate_listener_tls_failures_total", &[]), 0.0);
        gateway.stop();
    }
}

#[test]
fn finagle_without_a_certificate_is_refused_and_counted() {
    let world = World::new();
    let server = world.server("alone", &[]);
    let gateway = world.gateway("alone", "thriftmux", "off");
    let args = ["--tls", "--tls-ca", &world.bundle, "--sni", "gate.example.org", "--n", "3", "--no-retries"];
    assert_eq!(FINAGLE.call(gateway.addr, &args).ok(), 0);
    gateway.wait_metrics("the missing certificate is counted", |metrics| {
        metrics.sum("muxgate_listener_tls_failures_total", &[("cause", "no_certificate")]) >= 1.0
    });
    gateway.stop();
    drop(server);
}

#[test]
fn finagle_and_the_gateway_agree_on_tls_in_the_handshake_of_mux() {
    let world = World::new();
    let server = world.server("agreed", &["--opportunistic-tls", "required"]);
    let gateway = world.gateway("agreed", "thriftmux", "required");
    for level in ["desired", "required"] {
        call(&world, &gateway, &server, &["--opportunistic-tls", level]);
    }
    gateway.stop();
}

/// The commands of the README, and keys in the older forms.
#[test]
fn what_openssl_makes_is_taken() {
    let world = World::new();
    let readme = include_str!("../../README.md");
    let block =
        readme.split("```sh\nopenssl").nth(1).and_then(|rest| rest.split("```").next()).expect("commands");
    let older = "openssl rsa -in gate.key -traditional -out pkcs1.key\n\
                 openssl ecparam -name prime256v1 -genkey -noout -out sec1.key\n\
                 openssl req -new -key sec1.key -subj /CN=ec -out ec.csr\n\
                 openssl x509 -req -in ec.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 9 -extfile gate.ext -out ec.pem\n";
    let folder = tempfile::tempdir().expect("a folder");
    let run = Command::new("sh")
        .arg("-ec")
        .arg(format!("openssl{block}{older}"))
        .current_dir(folder.path())
        .output();
    let run = run.expect("a shell");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let begins = |name: &str, with: &str| {
        let text = std::fs::read_to_string(folder.path().join(name)).expect("a key");
        assert!(text.starts_with(with), "{name}: {text}");
    };
    begins("gate.key", "-----BEGIN PRIVATE KEY-----");
    begins("pkcs1.key", "-----BEGIN RSA PRIVATE KEY-----");
    begins("sec1.key", "-----BEGIN EC PRIVATE KEY-----");
    let at = |name: &str| folder.path().join(name);
    for (cert, key) in [("gate.pem", "gate.key"), ("gate.pem", "pkcs1.key"), ("ec.pem", "sec1.key")] {
        served(&world, &at(cert), &at(key), &at("ca.pem"));
    }
}

/// A gateway behind another one that believes its certificate.
fn served(world: &World, cert: &Path, key: &Path, bundle: &Path) {
    let start = |name: &str, yaml: String| {
        let path: PathBuf = world.folder.path().join(name);
        std::fs::write(&path, yaml).expect("written");
        Gateway::of_file(&program(), &path)
    };
    let server = &crate::world::THRIFTMUX;
    let inner = start(
        "inner.yaml",
        format!(
            "admin: {{port: 0}}\ndtab: /svc => {}\nlisteners: [{{port: 0, tls: {{certPath: {}, keyPath: {}}}}}]\n",
            crate::world::inet(server.addr),
            cert.display(),
            key.display()
        ),
    );
    let outer = start(
        "outer.yaml",
        format!(
            "admin: {{port: 0}}\ndtab: /svc => {}\nlisteners: [{{port: 0}}]\n\
             clients: [{{tls: {{commonName: gate.example.org, trustCertsBundle: {}}}}}]\n",
            crate::world::inet(inner.addr),
            bundle.display()
        ),
    );
    FINAGLE.call(outer.addr, &["--n", "5"]).all_ok();
    outer.stop();
    inner.stop();
}
