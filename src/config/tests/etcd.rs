//! `io.l5d.etcd`, right and wrong.

use crate::config::parse;
use crate::names::namers::configured::Discovery;

const REST: &str = "dtab: /svc => /#/io.l5d.etcd\nlisteners: [{port: 4114}]\n";

/// What the namer of this file says of itself, and whether it is encrypted; or the first line of each complaint.
fn said(namer: &str) -> Result<String, Vec<String>> {
    let plan = parse("gate.yaml", &format!("namers: [{{kind: io.l5d.etcd{namer}}}]\n{REST}"));
    let plan = plan.map_err(|report| {
        let errors = report.to_string();
        errors.lines().filter_map(|line| line.strip_prefix("error: ").map(str::to_owned)).collect::<Vec<_>>()
    })?;
    match &plan.namers() {
        [namer] => match &namer.discovery {
            Discovery::Etcd(params) => Ok(params.to_string()),
            other => Ok(format!("{other:?}")),
        },
        other => Ok(format!("{other:?}")),
    }
}

#[test]
fn etcd_is_asked_where_the_file_says() {
    for (namer, want) in [
        ("", "services below /services in etcd at http://localhost:2379"),
        (", host: '::1', port: 1", "services below /services in etcd at http://[::1]:1"),
        (
            ", addresses: ['a.test:2379', '[::1]:2380'], pathPrefix: /our/services",
            "services below /our/services in etcd at http://a.test:2379, http://[::1]:2380",
        ),
        (
            ", addresses: ['a.test:1', 'b.test:2'], tls: {disableValidation: true}",
            "services below /services in etcd at https://a.test:1, https://b.test:2",
        ),
    ] {
        assert_eq!(said(namer).as_deref(), Ok(want), "{namer}");
    }
}

#[test]
fn mistakes_about_etcd_are_explained() {
    for (namer, want) in [
        (", addresses: []", &["`addresses` has 0 of them"][..]),
        (", addresses: ['a.test:1'], port: 2", &["`addresses` stands in place of `port`"]),
        (
            ", addresses: ['http://a.test:1', 'a.test', ':1', 'a.test:0', 'u@a.test:1']",
            &[
                "`http://a.test:1` is no host and port",
                "`a.test` is no host and port",
                "`:1` is no host and port",
                "`a.test:0` is no host and port",
                "`u@a.test:1` is no host and port",
            ],
        ),
        (", pathPrefix: services", &["`pathPrefix` is no path: expected a path, which begins with /"]),
        (", pathPrefix: /", &["`pathPrefix` needs at least one element"]),
        (", endpoints: ['a.test:1']", &["unknown key `endpoints` in a namer"]),
        (", port: 0", &["`port` is 0"]),
    ] {
        let said = said(namer).expect_err(namer);
        assert_eq!(said, want, "{namer}");
    }
}
