//! Server sets, found and announced.

use super::Case;

pub(super) const CASES: &[Case] = &[
    Case {
        about: "an ensemble that is none",
        file: r#"namers:
- {kind: io.l5d.serversets}
- {kind: io.l5d.serversets, prefix: /a, zkAddrs: []}
- {kind: io.l5d.serversets, prefix: /b, zkAddrs: [{host: "zk1:2181,zk2:2181"}]}
- {kind: io.l5d.serversets, prefix: /c, zkAddrs: [{host: zk1, port: 0}], sessionTimeoutMs: 10}
- {kind: io.l5d.serversets, prefix: /d, zkAddrs: [{host: zk1}], authInfo: "user:password"}
- {kind: io.l5d.serversets, prefix: /e, zkAddrs: [{host: zk1}], pathPrefix: /discovery}
dtab: /svc => /#/a
listeners: [{port: 4114}]
"#,
        said: r#"
error: a namer has no `zkAddrs`
 --> gate.yaml:2:3
  |
2 | - {kind: io.l5d.serversets}
  |   ^
  = help: for example `zkAddrs: [{host: zk1.example.org, port: 2181}]`

error: `zkAddrs` has 0 servers
 --> gate.yaml:3:50
  |
3 | - {kind: io.l5d.serversets, prefix: /a, zkAddrs: []}
  |                                                  ^
  = help: from one to 16; for example `zkAddrs: [{host: zk1.example.org, port: 2181}]`

error: `zk1:2181,zk2:2181` is no host
 --> gate.yaml:4:62
  |
4 | - {kind: io.l5d.serversets, prefix: /b, zkAddrs: [{host: "zk1:2181,zk2:2181"}]}
  |                                                              ^
  = help: the port is a key of its own, and so is every further server

error: `port` is 0
 --> gate.yaml:5:69
  |
5 | - {kind: io.l5d.serversets, prefix: /c, zkAddrs: [{host: zk1, port: 0}], sessionTimeoutMs: 10}
  |                                                                     ^
  = help: ports begin at 1

error: `sessionTimeoutMs` cannot be 10
 --> gate.yaml:5:92
  |
5 | - {kind: io.l5d.serversets, prefix: /c, zkAddrs: [{host: zk1, port: 0}], sessionTimeoutMs: 10}
  |                                                                                            ^^
  = help: it goes from 1000 to 600000

error: `authInfo` is a map, this is the text `user:password`
 --> gate.yaml:6:75
  |
6 | - {kind: io.l5d.serversets, prefix: /d, zkAddrs: [{host: zk1}], authInfo: "user:password"}
  |                                                                           ^^^^^^^^^^^^^^^
  = help: for example `authInfo: {scheme: digest, auth: "user:password"}`

error: unknown key `pathPrefix` in a namer
 --> gate.yaml:7:65
  |
7 | - {kind: io.l5d.serversets, prefix: /e, zkAddrs: [{host: zk1}], pathPrefix: /discovery}
  |                                                                 ^^^^^^^^^^
  = help: put it into the dtab: `/svc => /#/io.l5d.serversets/discovery`

7 errors
"#,
    },
    Case {
        about: "announcements to nobody",
        file: r#"announcers:
- {kind: io.l5d.serversets, zkAddrs: [{host: zk1}]}
- {kind: io.l5d.serversets, zkAddrs: [{host: zk2}]}
- {kind: io.l5d.consul, zkAddrs: [{host: zk2}], prefix: /x}
dtab: /svc => /$/inet/127.0.0.1/9000
listeners: [{port: 4114, announce: [/#/io.l5d.serversets/web]}]
"#,
        said: r#"
error: two announcers have the prefix /io.l5d.serversets
 --> gate.yaml:3:10
  |
3 | - {kind: io.l5d.serversets, zkAddrs: [{host: zk2}]}
  |          ^^^^^^^^^^^^^^^^^
  = help: give each a `prefix` of its own, for example `prefix: /other`

error: `kind` cannot be `io.l5d.consul`
 --> gate.yaml:4:10
  |
4 | - {kind: io.l5d.consul, zkAddrs: [{host: zk2}], prefix: /x}
  |          ^^^^^^^^^^^^^
  = help: there is only io.l5d.serversets

2 errors
"#,
    },
    Case {
        about: "announcements that are no names of server sets",
        file: r#"announcers: [{kind: io.l5d.serversets, zkAddrs: [{host: zk1}]}]
dtab: /svc => /$/inet/127.0.0.1/9000
listeners:
- {port: 4114, announce: [/#/io.l5d.serversets, /#/io.l5d.consul/web, web]}
- {port: 4115, announce: /#/io.l5d.serversets/web}
"#,
        said: r#"
error: /#/io.l5d.serversets is no node of ZooKeeper
 --> gate.yaml:4:27
  |
4 | - {port: 4114, announce: [/#/io.l5d.serversets, /#/io.l5d.consul/web, web]}
  |                           ^^^^^^^^^^^^^^^^^^^^
  = help: for example /#/io.l5d.serversets/web

error: no announcer has /#/io.l5d.consul/web
 --> gate.yaml:4:49
  |
4 | - {port: 4114, announce: [/#/io.l5d.serversets, /#/io.l5d.consul/web, web]}
  |                                                 ^^^^^^^^^^^^^^^^^^^^
  = help: the announcers of this file are /#/io.l5d.serversets

error: web is no path: expected a path, which begins with /
 --> gate.yaml:4:71
  |
4 | - {port: 4114, announce: [/#/io.l5d.serversets, /#/io.l5d.consul/web, web]}
  |                                                                       ^^^
  = help: for example /#/io.l5d.serversets/web

error: `announce` is a list of texts, this is the text `/#/io.l5d.serversets/web`
 --> gate.yaml:5:26
  |
5 | - {port: 4115, announce: /#/io.l5d.serversets/web}
  |                          ^^^^^^^^^^^^^^^^^^^^^^^^
  = help: for example `announce: [/#/io.l5d.serversets/web]`

4 errors
"#,
    },
    Case {
        about: "announcements without announcers",
        file: r#"dtab: /svc => /$/inet/127.0.0.1/9000
listeners: [{port: 4114, announce: [/#/io.l5d.serversets/web]}]
"#,
        said: r#"
error: no announcer has /#/io.l5d.serversets/web
 --> gate.yaml:2:37
  |
2 | listeners: [{port: 4114, announce: [/#/io.l5d.serversets/web]}]
  |                                     ^^^^^^^^^^^^^^^^^^^^^^^^
  = help: there are no announcers; add one: `announcers: [{kind: io.l5d.serversets, zkAddrs: ...}]`
"#,
    },
];
