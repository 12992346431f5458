//! Files with certificates in them.

use crate::config::plan::{ListenerTls, Plan};
use crate::config::{Report, parse};
use muxgate_rpc::tls::{ClientAuth, ClientFiles, ServerFiles, Trust, Versions};
use muxgate_testkit::certs::{Authority, Files};
use muxgate_wire::mux::handshake::TlsLevel;
use muxgate_wire::name::Path;
use std::path::PathBuf;
use tempfile::TempDir;

struct World {
    folder: TempDir,
    bundle: PathBuf,
    pair: Files,
    authority: Authority,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new("Test Authority");
        let bundle = authority.write(folder.path(), "ca");
        let pair = authority.issue("gate", &["gate.example.org"]).write(folder.path(), "gate");
        Self { folder, bundle, pair, authority }
    }

    /// `@/` in a file is the folder.
    fn parse(&self, text: &str) -> Result<Plan, Report> {
        parse("gate.yaml", &text.replace("@/", &format!("{}/", self.folder.path().display())))
    }

    /// What is said about a file, with `@/` for the folder.
    fn said(&self, text: &str) -> String {
        let report =
            self.parse(text).map(|_| "taken".to_string()).unwrap_or_else(|report| report.to_string());
        report.replace(&format!("{}/", self.folder.path().display()), "@/")
    }
}

#[test]
fn certificates_of_both_sides_are_read() {
    let world = World::new();
    let plan = world.parse(
        "dtab: /svc => /#/io.l5d.fs\nnamers: [{kind: io.l5d.fs, rootDir: disco}]\nlisteners:\n- port: 1\n- port: 2\n  \
         tls: {certPath: '@/gate.pem', keyPath: '@/gate.key', caCertPath: '@/ca.pem', requireClientAuth: true, \
         protocols: [TLSv1.3], opportunistic: required}\n- port: 3\n  tls: none\nclients:\n- prefix: /#/io.l5d.fs/{zone}-{name}\n  \
         tls: {commonName: '{name}.{zone}.example.org', trustCertsBundle: '@/ca.pem', \
         clientAuth: {certPath: '@/gate.pem', keyPath: '@/gate.key'}}\n- prefix: /#/io.l5d.fs/eu-plain\n  tls: none\n\
         - prefix: /#/io.l5d.fs/*\n  protocol: framed\n",
    );
    let plan = plan.unwrap_or_else(|report| panic!("{report}"));
    let [plain, encrypted, off] = plan.listeners() else { panic!("three listeners") };
    assert_eq!((&plain.tls, &off.tls), (&None, &None));
    let files = ServerFiles {
        certificate: world.pair.certificate.clone(),
        key: world.pair.key.clone(),
        intermediates: None,
        clients: ClientAuth::Required(world.bundle.clone()),
        versions: Versions::Tls13,
    };
    assert_eq!(encrypted.tls, Some(ListenerTls { files, opportunistic: TlsLevel::Required }));

    let tls = |id: &str| {
        let id = Path::parse(id).unwrap();
        plan.client_tls(&id).map(|(tls, name)| (tls.files.clone(), name))
    };
    let files = ClientFiles {
        trust: Trust::Authorities(world.bundle.clone()),
        certificate: Some((world.pair.certificate.clone(), world.pair.key.clone())),
        versions: Versions::All,
    };
    assert_eq!(tls("/#/io.l5d.fs/eu-users"), Some((files.clone(), Some("users.eu.example.org".into()))));
    assert_eq!(tls("/#/io.l5d.fs/eu-plain"), None);
    assert_eq!(tls("/#/io.l5d.fs/users"), None);
    assert_eq!(plan.client_files().into_iter().collect::<Vec<_>>(), [&files]);
}

#[test]
fn a_key_of_another_certificate_is_said_at_its_key() {
    let world = World::new();
    world.authority.issue("other", &[]).write(world.folder.path(), "other");
    let said = world.said(
        "dtab: ''\nlisteners:\n- port: 1\n  tls:\n    certPath: '@/gate.pem'\n    keyPath: '@/other.key'\nclients:\n- tls:\n    \
         disableValidation: true\n    clientAuth:\n      certPath: '@/ca.key'\n      keyPath: '@/other.key'\n",
    );
    let lines: Vec<_> = said
        .lines()
        .filter(|line| line.starts_with("error") || line.trim_start().starts_with("--> gate.yaml"))
        .collect();
    assert_eq!(
        lines,
        [
            "error: @/other.key: the key does not belong to the certificate",
            " --> gate.yaml:6:14",
            "error: @/ca.key: cannot be read: No such file or directory (os error 2)",
            "  --> gate.yaml:11:17",
        ]
    );
}

#[test]
fn what_is_agreed_upon_in_clear_cannot_stand_in_for_certificates() {
    let world = World::new();
    let listener = |keys: &str, tls: &str| {
        let files = "certPath: '@/gate.pem', keyPath: '@/gate.key', caCertPath: '@/ca.pem'";
        let lines = format!("{files}, {tls}").replace(", ", "\n    ");
        world.said(&format!("dtab: ''\nlisteners:\n- port: 1\n{keys}  tls:\n    {lines}\n"))
    };
    for (keys, tls, place, said) in [
        (
            "",
            "requireClientAuth: true, opportunistic: desired",
            "desired",
            "callers could do without the certificate that is required",
        ),
        (
            "  protocol: framed\n",
            "opportunistic: required",
            "required",
            "only thriftmux can begin in clear and go on encrypted",
        ),
        (
            "  protocol: header\n  compression: desired\n",
            "requireClientAuth: true",
            "desired",
            "compression is agreed upon in Mux's handshake",
        ),
    ] {
        let report = listener(keys, tls);
        assert_eq!(report.matches("error: ").count(), 1, "{report}");
        assert!(report.starts_with(&format!("error: {said}\n")), "{report}");
        assert!(report.contains(&format!("{}\n", "^".repeat(place.len()))), "{report}");
        assert!(report.contains("help: "), "{report}");
    }
    for (keys, tls) in [
        ("", "requireClientAuth: true, opportunistic: required"),
        ("", "requireClientAuth: true"),
        ("", "opportunistic: desired"),
        ("  protocol: buffered\n  compression: off\n", "opportunistic: off"),
        ("  protocol: thriftmux\n  compression: accepted\n", "opportunistic: desired"),
    ] {
        assert_eq!(listener(keys, tls), "taken", "{keys}{tls}");
    }
}

#[test]
fn our_certificate_stands_before_those_of_its_issuers() {
    let world = World::new();
    let read = |path: &PathBuf| std::fs::read_to_string(path).unwrap();
    let chain = read(&world.bundle) + &read(&world.pair.certificate);
    std::fs::write(world.folder.path().join("chain.pem"), chain).unwrap();
    let said = world.said(
        "dtab: ''\nlisteners:\n- port: 1\n  tls:\n    certPath: '@/chain.pem'\n    keyPath: '@/gate.key'\n",
    );
    assert!(said.contains("ours comes first there, those of its issuers behind it"), "{said}");
}
