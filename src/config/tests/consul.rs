//! `io.l5d.consul`.

use crate::config::{Report, parse};

fn file(keys: &str) -> String {
    format!(
        "namers: [{{kind: io.l5d.consul{keys}}}]\ndtab: /svc => /#/io.l5d.consul/dc1\nlisteners: [{{port: 0}}]\n"
    )
}

#[test]
fn an_agent_is_on_this_host_unless_the_file_says_where() -> Result<(), Report> {
    for (keys, said) in [
        ("", "services of Consul at http://localhost:8500"),
        (
            ", host: consul.example.org, port: 1, token: t",
            "services of Consul at http://consul.example.org:1",
        ),
    ] {
        assert_eq!(parse("gate.yaml", &file(keys))?.namers()[0].to_string(), said);
    }
    Ok(())
}

#[test]
fn mistakes_about_consul_are_explained() {
    for (keys, said) in [
        (", setHost: true", "leave it out"),
        (", healthStatuses: [passing]", "add `useHealthCheck: true`"),
        (", useHealthCheck: true, healthStatuses: [fine]", "`fine` is no status"),
        (", consistencyMode: strong", "`consistencyMode` cannot be `strong`"),
        (", weights: [{tag: a}]", "a weight by tag has no `weight`"),
        (", port: 0", "ports begin at 1"),
    ] {
        let report = parse("gate.yaml", &file(keys)).expect_err(keys).to_string();
        assert!(report.contains(said), "{keys}: {report}");
    }
}
