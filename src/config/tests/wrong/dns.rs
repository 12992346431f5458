//! `dns`, and namers that ask DNS or follow a pattern.

use super::Case;

pub(super) const CASES: &[Case] = &[
    Case {
        about: "servers that are none",
        file: "dns: {servers: [ns.example, '10.0.0.2:0'], ttl: 5}
namers:
- {kind: io.l5d.dnssrv, dnsHosts: 10.0.0.2, refreshIntervalSeconds: 0}
dtab: /svc => /#/io.l5d.dnssrv
listeners: [{port: 4114}]
",
        said: "",
    },
    Case {
        about: "patterns that fit nothing",
        file: "namers:
- {kind: io.l5d.rewrite, prefix: /a, pattern: '/{svc', name: /x}
- {kind: io.l5d.rewrite, prefix: /b, pattern: '/{svc}', name: '/x/{other}'}
- {kind: io.l5d.rewrite, prefix: /c, pattern: '/{svc}'}
dtab: /svc => /#/a
listeners: [{port: 4114}]
",
        said: "",
    },
];
