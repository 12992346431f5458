//! `transformers` of namers.

use crate::config::{Report, parse};

fn file(transformers: &str) -> String {
    format!(
        "namers: [{{kind: io.l5d.fs, rootDir: disco, transformers: {transformers}}}]\ndtab: /svc => /#/io.l5d.fs\n\
         listeners: [{{port: 0}}]\nclients: [{{prefix: /%/io.l5d.port, protocol: framed}}]\n"
    )
}

#[test]
fn transformers_stand_in_order() -> Result<(), Report> {
    let all = "[{kind: io.l5d.localhost}, {kind: io.l5d.specificHost, host: \"::1\"}, {kind: io.l5d.port, port: 1}, \
               {kind: io.l5d.k8s.localnode, ip: 10.1.2.3, netmaskBits: 16}, \
               {kind: io.l5d.k8s.daemonset, namespace: l5d, port: incoming, service: gate}, \
               {kind: io.l5d.replace, path: /$/inet/h/1}, {kind: io.l5d.const, path: /a}]";
    let plan = parse("gate.yaml", &file(all))?;
    let said = plan.namers()[0].to_string();
    let wanted = "those on this host, those on ::1, with port 1, those in 10.1.2.3/16, by /l5d/incoming/gate in the same /24, \
                  replaced by /$/inet/h/1, always /a";
    assert!(said.ends_with(wanted), "{said}");
    Ok(())
}

#[test]
fn mistakes_are_explained() {
    for (wrong, said) in [
        ("[{kind: io.l5d.port}]", "a transformer has no `port`"),
        ("[{kind: io.l5d.specificHost, host: web}]", "`web` is no IP address"),
        ("[{kind: io.l5d.prt, port: 1}]", "did you mean `io.l5d.port`?"),
        ("[{kind: io.l5d.k8s.daemonset, namespace: a, port: b}]", "a transformer has no `service`"),
        ("[{kind: io.l5d.localhost, hostNetwork: true}]", "write `kind: io.l5d.localhost`"),
        ("port", "`transformers` is a list"),
    ] {
        let report = parse("gate.yaml", &file(wrong)).expect_err(wrong).to_string();
        assert!(report.contains(said), "{wrong}: {report}");
    }
}
