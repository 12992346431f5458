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
        said: r#"
error: `ns.example` is no address of a DNS server
 --> gate.yaml:1:17
  |
1 | dns: {servers: [ns.example, '10.0.0.2:0'], ttl: 5}
  |                 ^^^^^^^^^^
  = help: write numeric addresses, for example `["10.0.0.2", "127.0.0.1:5353"]`

error: `10.0.0.2:0` is no address of a DNS server
 --> gate.yaml:1:29
  |
1 | dns: {servers: [ns.example, '10.0.0.2:0'], ttl: 5}
  |                             ^^^^^^^^^^^^
  = help: write numeric addresses, for example `["10.0.0.2", "127.0.0.1:5353"]`

error: unknown key `ttl` in `dns`
 --> gate.yaml:1:44
  |
1 | dns: {servers: [ns.example, '10.0.0.2:0'], ttl: 5}
  |                                            ^^^
  = help: records say themselves how long they hold; hosts are asked for again after 5 s at the latest

error: `dnsHosts` is a list of texts, this is the text `10.0.0.2`
 --> gate.yaml:3:35
  |
3 | - {kind: io.l5d.dnssrv, dnsHosts: 10.0.0.2, refreshIntervalSeconds: 0}
  |                                   ^^^^^^^^
  = help: write numeric addresses, for example `["10.0.0.2", "127.0.0.1:5353"]`

error: `refreshIntervalSeconds` is 0
 --> gate.yaml:3:69
  |
3 | - {kind: io.l5d.dnssrv, dnsHosts: 10.0.0.2, refreshIntervalSeconds: 0}
  |                                                                     ^
  = help: names are asked for once a second at the most

5 errors
"#,
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
        said: r#"
error: bad element "{svc" in /{svc
 --> gate.yaml:2:47
  |
2 | - {kind: io.l5d.rewrite, prefix: /a, pattern: '/{svc', name: /x}
  |                                               ^^^^^^^
  = help: elements are text, `*` or `{x}`: `/{svc}/*/api`

error: the pattern does not capture {other}
 --> gate.yaml:3:63
  |
3 | - {kind: io.l5d.rewrite, prefix: /b, pattern: '/{svc}', name: '/x/{other}'}
  |                                                               ^^^^^^^^^^^^
  = help: what `pattern` keeps, it keeps as `{x}`

error: a namer has no `name`
 --> gate.yaml:4:3
  |
4 | - {kind: io.l5d.rewrite, prefix: /c, pattern: '/{svc}'}
  |   ^
  = help: the name that it answers: `name: "/host/{svc}"`

3 errors
"#,
    },
];
