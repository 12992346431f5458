//! Files of the store.

use crate::config::plan::{Proof, STORE_ADDRESS, StorageChoice, StorePlan};
use crate::config::{Report, parse_store};
use muxgate_testkit::certs::Authority;

#[test]
fn an_empty_map_is_the_default() -> Result<(), Report> {
    let plan = parse_store("-", "{}")?;
    assert_eq!(plan, StorePlan::default());
    assert_eq!(plan.address, STORE_ADDRESS);
    assert_eq!(plan.storage, StorageChoice::Embedded("muxgate-store".into()));
    Ok(())
}

#[test]
fn the_example_is_read() -> Result<(), Report> {
    let plan = parse_store("store.yaml", include_str!("../../../examples/store.yaml"))?;
    assert_eq!((plan.namers.len(), plan.rights.len()), (1, 3));
    let names: Vec<_> = plan.rights.iter().map(|right| (right.name.as_str(), right.write)).collect();
    assert_eq!(names, [("operators", true), ("team-a", true), ("gateways", false)]);
    assert!(matches!(plan.rights[1].proof, Proof::TokenSha256(hash) if hash[..2] == [0x2c, 0x26]));
    assert_eq!(plan.rights[1].prefixes.len(), 2);
    Ok(())
}

#[test]
fn storage_is_chosen_by_kind() -> Result<(), Report> {
    let storage = |text: &str| Ok(parse_store("-", &format!("storage: {text}"))?.storage);
    assert_eq!(storage("{kind: embedded, dir: d}")?, StorageChoice::Embedded("d".into()));
    assert_eq!(parse_store("-", "data: e")?.storage, StorageChoice::Embedded("e".into()));
    let StorageChoice::ZooKeeper(zk, prefix) =
        storage("{kind: io.l5d.zk, zkAddrs: [{host: a}, {host: b, port: 9}]}")?
    else {
        panic!("another storage")
    };
    assert_eq!((prefix.as_str(), zk.hosts.len()), ("/dtabs", 2));
    let etcd = storage("{kind: io.l5d.etcd, addresses: ['a:1', 'b:2'], pathPrefix: /x/y}")?;
    let StorageChoice::Etcd(nodes, prefix) = etcd else { panic!("another storage") };
    assert_eq!((prefix.as_str(), nodes[1].base.as_str()), ("/x/y", "http://b:2"));
    let StorageChoice::Etcd(nodes, prefix) = storage("{kind: io.l5d.etcd}")? else {
        panic!("another storage")
    };
    assert_eq!((prefix.as_str(), nodes[0].base.as_str()), ("/namerd/dtabs", "http://localhost:2379"));
    Ok(())
}

#[test]
fn certificates_may_prove_a_right() -> Result<(), Report> {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new("ours");
    let files = authority.issue("store", &["127.0.0.1"]).write(folder.path(), "store");
    let bundle = authority.write(folder.path(), "ca");
    let text = format!(
        "tls: {{certPath: {}, keyPath: {}, caCertPath: {}}}\n\
         rights: [{{name: a, certificate: team.example.org, namespaces: [x], access: write}}]\n",
        files.certificate.display(),
        files.key.display(),
        bundle.display()
    );
    let plan = parse_store("-", &text)?;
    assert_eq!(plan.rights[0].proof, Proof::Certificate("team.example.org".into()));
    assert!(plan.tls.is_some());
    Ok(())
}

#[test]
fn mistakes_are_shown() {
    for (text, says) in [
        ("listen: 4180", "`listen` is text, this is"),
        ("listen: localhost", "`localhost` is no IP:PORT"),
        ("port: 4180", "write `listen: IP:PORT`"),
        ("storage: embedded", "storage: {kind: embedded}"),
        ("storage: {kind: io.l5d.inMemory}", "there are embedded, io.l5d.zk, io.l5d.etcd"),
        ("storage: {kind: embedded}", "storage `embedded` has no `dir`"),
        ("storage: {kind: embedded, dir: a, zkAddrs: []}", "unknown key `zkAddrs` in storage `embedded`"),
        ("{data: a, storage: {kind: embedded, dir: b}}", "there is `storage` as well"),
        ("rights: []", "nobody could do anything"),
        ("rights: [{name: a, namespaces: [x], access: write}]", "whom is this right for?"),
        (
            "rights: [{name: a, tokenFile: f, certificate: c, namespaces: [x], access: write}]",
            "whom is this right for?",
        ),
        (
            "rights: [{name: a, certificate: c, namespaces: [x], access: write}]",
            "nobody is asked for a certificate",
        ),
        ("rights: [{name: a, tokenSha256: abc, namespaces: [x], access: write}]", "this is no SHA-256"),
        ("rights: [{name: a, token: abc, namespaces: [x], access: write}]", "secrets stay out of this file"),
        ("rights: [{name: a, tokenFile: f, access: write}]", "a right has no `namespaces`"),
        ("rights: [{name: a, tokenFile: f, namespaces: [x]}]", "a right has no `access`"),
        (
            "rights: [{name: a, tokenFile: f, namespaces: [x], access: read, prefixes: [/a]}]",
            "changes nothing",
        ),
        (
            "rights: [{name: a, tokenFile: f, namespaces: [x], access: write, prefixes: [a]}]",
            "`a` is no prefix",
        ),
        (
            "rights: [{name: a, tokenFile: f, namespaces: [x], access: read}, {name: a, tokenFile: f, namespaces: [x], access: read}]",
            "`a` is taken",
        ),
    ] {
        let report = parse_store("-", text).map(|plan| panic!("{text}: {plan:?}")).unwrap_err().to_string();
        assert!(report.contains(says), "{text}\n{report}");
    }
}
