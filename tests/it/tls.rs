//! Encrypted connections: callers of every form, services with names of their own, certificates that are refused with a
//! reason, and certificates that change while calls are under way.

use crate::support::{Disco, House, echo, to};
use muxgate_testkit::backend::{Plan, Reply};
use muxgate_testkit::caller::Form;
use muxgate_testkit::certs::{Authority, Files};
use muxgate_testkit::raw::Raw;
use muxgate_testkit::tunnel::{ClientSide, ServerSide};
use muxgate_testkit::{Backend, Caller, Tunnel};
use std::path::PathBuf;
use tempfile::TempDir;
use tokio::io::AsyncReadExt;

/// An authority that everybody here knows, a folder, and the gateway's certificate in it.
struct World {
    folder: TempDir,
    authority: Authority,
    bundle: PathBuf,
    gate: Files,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let authority = Authority::new("Test Authority");
        let bundle = authority.write(folder.path(), "ca");
        let gate = authority.issue("gate", &["gate.example.org"]).write(folder.path(), "gate");
        Self { folder, authority, bundle, gate }
    }

    /// A listener with the gateway's certificate.
    fn listener(&self, more: &str) -> String {
        let (cert, key) = (self.gate.certificate.display(), self.gate.key.display());
        format!(
            "listeners: [{{name: in, port: 0, dst: /s/probe, \
             tls: {{certPath: {cert}, keyPath: {key}{more}}}}}]\n"
        )
    }

    /// `, caCertPath: ...`
    fn clients_of(&self, required: bool) -> String {
        format!(", caCertPath: {}, requireClientAuth: {required}", self.bundle.display())
    }

    /// `tls` of a client for this name.
    fn upstream(&self, name: &str, more: &str) -> String {
        format!("tls: {{commonName: '{name}', trustCertsBundle: {}{more}}}", self.bundle.display())
    }

    fn caller_side(&self) -> ClientSide {
        ClientSide::new(self.authority.pem(), "gate.example.org")
    }

    /// A service that shows a certificate for these names.
    fn service_side(&self, names: &[&str]) -> ServerSide {
        ServerSide::new(&self.authority.issue("service", names))
    }
}

/// A gateway before one plain service.
async fn before(service: &Backend, listener: &str) -> House {
    House::start(&format!("admin: {{port: 0}}\n{listener}dtab: /svc => / ; {}\n", to(service.addr()))).await
}

/// A gateway with a plain port before one service; `client` is the entry of `clients`.
async fn towards(service: &Tunnel, client: &str) -> House {
    House::start(&format!(
        "admin: {{port: 0}}\nlisteners: [{{name: in, port: 0, dst: /s/probe}}]\n\
         clients: [{{{client}}}]\ndtab: /svc => / ; {}\n",
        to(service.addr())
    ))
    .await
}

async fn says(caller: &mut Caller, text: &str) -> String {
    caller.echo("/s/probe", text).await.text()
}

const FAILURES: &str = "muxgate_listener_tls_failures_total";
const UPSTREAM_FAILURES: &str = "muxgate_endpoint_tls_failures_total";

#[tokio::test]
async fn callers_of_every_form_are_served_over_tls_and_services_are_asked_for_by_name() {
    let world = World::new();
    for (protocol, form) in [("thriftmux", Form::FramedBinary), ("framed", Form::ThriftMux)] {
        let backend = Backend::start().await;
        let service = Tunnel::decrypt(backend.addr(), &world.service_side(&["probe.example.org"])).await;
        let disco = Disco::new();
        disco.put("probe", &[service.addr()]);
        let house = House::start(&format!(
            "admin: {{port: 0}}\n{}{}clients: [{{prefix: '/#/fs/{{service}}', protocol: {protocol}, {}}}]\n\
             dtab: /svc/s => /#/fs\n",
            disco.namer(),
            world.listener(""),
            world.upstream("{service}.example.org", "")
        ))
        .await;
        let tunnel = Tunnel::encrypt(house.addr, &world.caller_side()).await;
        for form in Form::ALL.into_iter().chain([form]) {
            let mut caller = Caller::connect(form, tunnel.addr()).await;
            for text in ["one", "two"] {
                assert_eq!(says(&mut caller, text).await, text, "{form:?} to {protocol}");
            }
        }
        let names = service.names();
        assert!(!names.is_empty() && names.iter().all(|name| name == "probe.example.org"), "{names:?}");
        assert_eq!(house.pages.sum(FAILURES, &[]).await, 0.0);
    }
}

/// What does not fit into the buffers of TLS either.
#[tokio::test]
async fn long_messages_go_through_both_ways() {
    let world = World::new();
    let backend = Backend::start().await;
    let service = Tunnel::decrypt(backend.addr(), &world.service_side(&["127.0.0.1"])).await;
    for protocol in ["thriftmux", "framed"] {
        let house = House::start(&format!(
            "admin: {{port: 0}}\n{}clients: [{{protocol: {protocol}, {}}}]\ndtab: /svc => / ; {}\n",
            world.listener(""),
            world.upstream("127.0.0.1", ""),
            to(service.addr())
        ))
        .await;
        let tunnel = Tunnel::encrypt(house.addr, &world.caller_side()).await;
        let text = "0123456789abcdef".repeat(200_000);
        for form in [Form::FramedBinary, Form::ThriftMux] {
            let mut caller = Caller::connect(form, tunnel.addr()).await;
            assert!(says(&mut caller, &text).await == text, "{form:?} to {protocol}");
        }
    }
}

#[tokio::test]
async fn callers_must_show_a_certificate_where_that_is_required() {
    let world = World::new();
    let backend = Backend::start().await;
    let house = before(&backend, &world.listener(&world.clients_of(true))).await;
    let stranger = Authority::new("Somebody Else");
    for (shown, cause) in [(None, "no_certificate"), (Some(&stranger), "unknown_issuer")] {
        let mut side = world.caller_side();
        if let Some(authority) = shown {
            side = side.showing(&authority.issue("stranger", &[]));
        }
        let tunnel = Tunnel::encrypt(house.addr, &side).await;
        Raw::connect(tunnel.addr()).await.expect_close().await;
        house.pages.until(FAILURES, &[("cause", cause)], 1.0).await;
    }
    let side = world.caller_side().showing(&world.authority.issue("friend", &[]));
    let tunnel = Tunnel::encrypt(house.addr, &side).await;
    let mut caller = Caller::connect(Form::FramedBinary, tunnel.addr()).await;
    assert_eq!(says(&mut caller, "in").await, "in");
}

#[tokio::test]
async fn services_see_our_certificate_where_they_require_one() {
    let world = World::new();
    let backend = Backend::start().await;
    let side = world.service_side(&["probe.example.org"]).for_clients_of(world.authority.pem());
    let service = Tunnel::decrypt(backend.addr(), &side).await;
    let (cert, key) = (world.gate.certificate.display(), world.gate.key.display());
    let auth = format!(", clientAuth: {{certPath: {cert}, keyPath: {key}}}");
    let house =
        towards(&service, &format!("protocol: framed, {}", world.upstream("probe.example.org", &auth))).await;
    assert_eq!(says(&mut house.plain().await, "in").await, "in");
    assert_eq!(service.shown().len(), 1);

    let house =
        towards(&service, &format!("protocol: framed, {}", world.upstream("probe.example.org", ""))).await;
    let said = says(&mut house.plain().await, "out").await;
    assert!(said.contains("it wants a certificate from us (CertificateRequired)"), "{said}");
}

#[tokio::test]
async fn services_that_cannot_be_believed_are_not_called() {
    let world = World::new();
    let backend = Backend::start().await;
    let other = Authority::new("Other Authority");
    let names = ["probe.example.org"];
    let cases = [
        (
            world.authority.issue("web", &["web.example.org"]),
            "name_mismatch",
            "it is not for probe.example.org, it has web.example.org",
        ),
        (
            world.authority.issue_expired("old", &names),
            "expired",
            "the certificate of CN=old is refused: it has expired (it holds from Jan  1",
        ),
        (
            other.issue("far", &names),
            "unknown_issuer",
            "unknown issuer: it was issued by CN=Other Authority, which is not among the authorities in ",
        ),
    ];
    for (issued, cause, words) in cases {
        let service = Tunnel::decrypt(backend.addr(), &ServerSide::new(&issued)).await;
        for protocol in ["thriftmux", "framed"] {
            let client = format!("protocol: {protocol}, {}", world.upstream("probe.example.org", ""));
            let house = towards(&service, &client).await;
            let said = says(&mut house.plain().await, "x").await;
            assert!(said.contains(words), "{said}");
            assert!(house.pages.sum(UPSTREAM_FAILURES, &[("cause", cause)]).await >= 1.0);
        }
        let blind = towards(&service, "protocol: framed, tls: {disableValidation: true}").await;
        assert_eq!(says(&mut blind.plain().await, "x").await, "x");
    }
    let plain = format!("clients: [{{protocol: framed, {}}}]\n", world.upstream("probe.example.org", ""));
    let house =
        before(&backend, &format!("listeners: [{{name: in, port: 0, dst: /s/probe}}]\n{plain}")).await;
    let said = says(&mut house.plain().await, "x").await;
    assert!(said.contains("cannot connect by TLS: "), "{said}");
}

#[tokio::test]
async fn what_is_not_tls_is_turned_away_from_a_port_with_tls() {
    let world = World::new();
    let backend = Backend::start().await;
    let listener = world.listener("").replace("port: 0,", "port: 0, stallTimeoutMs: 300,");
    let house = before(&backend, &listener).await;
    let plain = [
        "0000001e800100010000000361646400000008080001000000010800020000000200",
        "0000000f7f00000174696e697420636865636b",
        "474554202f20485454502f312e310d0a0d0a",
        "ffffffffffffffff",
    ];
    for (at, bytes) in plain.into_iter().enumerate() {
        let mut raw = Raw::connect(house.addr).await;
        raw.send(bytes).await;
        raw.expect_close().await;
        house.pages.until(FAILURES, &[("cause", "plain_on_tls")], (at + 1) as f64).await;
    }
    // It begins like TLS, and is none.
    let mut raw = Raw::connect(house.addr).await;
    raw.send("1603010005aabbccddee").await;
    // An alert, and the end.
    let _ = raw.stream().read_to_end(&mut Vec::new()).await;
    house.pages.until(FAILURES, &[("cause", "protocol")], 1.0).await;
    // It begins, and goes on too slowly.
    let mut raw = Raw::connect(house.addr).await;
    raw.send("16030100c801").await;
    raw.expect_close().await;
    house.pages.until(FAILURES, &[("cause", "slow_handshake")], 1.0).await;
    // Nothing of that harms those who do it right.
    let tunnel = Tunnel::encrypt(house.addr, &world.caller_side()).await;
    assert_eq!(says(&mut Caller::connect(Form::ThriftMux, tunnel.addr()).await, "in").await, "in");
}

#[tokio::test]
async fn inside_of_tls_the_first_bytes_tell_the_protocol_as_outside() {
    let world = World::new();
    let backend = Backend::start().await;
    let house = before(&backend, &world.listener("")).await;
    let tunnel = Tunnel::encrypt(house.addr, &world.caller_side()).await;
    for (bytes, cause) in [("474554202f20485454502f312e310d0a0d0a", "http"), ("1603010005aabbccddee", "tls")]
    {
        let mut raw = Raw::connect(tunnel.addr()).await;
        raw.send(bytes).await;
        raw.expect_close().await;
        house.pages.until("muxgate_listener_decode_errors_total", &[("cause", cause)], 1.0).await;
    }
}

#[tokio::test]
async fn connections_may_begin_in_clear_where_encryption_is_opportunistic() {
    let world = World::new();
    let backend = Backend::start().await;
    for (level, plain_is_served) in [("desired", true), ("required", false)] {
        let inner = before(&backend, &world.listener(&format!(", opportunistic: {level}"))).await;
        // From the first byte.
        let tunnel = Tunnel::encrypt(inner.addr, &world.caller_side()).await;
        for form in Form::ALL {
            assert_eq!(says(&mut Caller::connect(form, tunnel.addr()).await, "in").await, "in");
        }
        // By agreement.
        for theirs in ["desired", "required"] {
            let client = world.upstream("gate.example.org", &format!(", opportunistic: {theirs}"));
            let outer = House::start(&format!(
                "admin: {{port: 0}}\nlisteners: [{{name: in, port: 0, dst: /s/probe}}]\n\
                 clients: [{{{client}}}]\ndtab: /svc => / ; {}\n",
                to(inner.addr)
            ))
            .await;
            assert_eq!(says(&mut outer.plain().await, "agreed").await, "agreed", "{theirs} to {level}");
        }
        // In clear.
        let mut raw = Raw::connect(inner.addr).await;
        raw.send(crate::support::ADD).await;
        if plain_is_served {
            raw.expect(crate::support::ADD_REPLY).await;
        } else {
            raw.expect_close().await;
        }
        let refused = if plain_is_served { 0.0 } else { 1.0 };
        inner.pages.until(FAILURES, &[("cause", "plain_on_tls")], refused).await;
    }
}

#[tokio::test]
async fn sides_that_do_not_agree_on_tls_both_count_it() {
    let world = World::new();
    let backend = Backend::start().await;
    let gate = world.listener(", opportunistic: required");
    let plain = "listeners: [{name: in, port: 0, dst: /s/probe}]\n".to_string();
    let required = world.upstream("gate.example.org", ", opportunistic: required");
    for (listener, client) in [(gate, "tls: none"), (plain, &*required)] {
        let inner = before(&backend, &listener).await;
        let outer = House::start(&format!(
            "admin: {{port: 0}}\nlisteners: [{{name: in, port: 0, dst: /s/probe}}]\n\
             clients: [{{{client}}}]\ndtab: /svc => / ; {}\n",
            to(inner.addr)
        ))
        .await;
        let said = says(&mut outer.plain().await, "x").await;
        assert!(said.contains("cannot agree whether to use TLS"), "{said}");
        let cause = [("cause", "not_agreed")];
        assert!(outer.pages.sum(UPSTREAM_FAILURES, &cause).await >= 1.0);
        assert!(inner.pages.sum(FAILURES, &cause).await >= 1.0);
        assert_eq!(inner.pages.sum("muxgate_listener_decode_errors_total", &[]).await, 0.0);
    }
}

#[tokio::test]
async fn certificates_change_under_way_and_no_connection_is_lost() {
    let world = World::new();
    let backend = Backend::start().await;
    let house = before(&backend, &world.listener("")).await;
    let tunnel = Tunnel::encrypt(house.addr, &world.caller_side()).await;
    let mut old = Caller::connect(Form::ThriftMux, tunnel.addr()).await;
    assert_eq!(says(&mut old, "before").await, "before");
    backend.script([Plan::now(Reply::Hold)]);
    old.send(5, &echo("/s/probe", "held")).await;
    backend.wait_calls(2).await;

    // A pair that is none is not taken.
    std::fs::write(&world.gate.certificate, "nothing").expect("written");
    house.pages.until("muxgate_certificates_refused_total", &[], 1.0).await;
    let mut new = Caller::connect(Form::ThriftMux, tunnel.addr()).await;
    assert_eq!(says(&mut new, "still").await, "still");
    world.authority.issue("gate two", &["gate.example.org"]).write(world.folder.path(), "gate");
    house.pages.until("muxgate_certificates_reloaded_total", &[], 1.0).await;

    let shown = tunnel.shown().len();
    let mut new = Caller::connect(Form::FramedBinary, tunnel.addr()).await;
    assert_eq!(says(&mut new, "after").await, "after");
    let certificates = tunnel.shown();
    assert_eq!(certificates.len(), shown + 1);
    assert_ne!(certificates[shown], certificates[0]);
    backend.release();
    let (tag, answer) = old.answer().await.expect("the held answer");
    assert_eq!((tag, answer.text()), (5, "held".to_string()));
    assert_eq!(says(&mut old, "on the old one").await, "on the old one");
    assert_eq!(house.pages.sum("muxgate_listener_connections_total", &[]).await, 3.0);
}
