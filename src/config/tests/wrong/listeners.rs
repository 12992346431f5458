//! Listeners that cannot be.

use super::Case;

pub(super) const CASES: &[Case] = &[
    Case {
        about: "a port that is none",
        file: r#"dtab: /svc => /$/inet/127.0.0.1/9000
listeners:
- port: 70000
- port: "4114"
- ip: localhost
  port: 4115
"#,
        said: r#"
error: `port` cannot be 70000
 --> gate.yaml:3:9
  |
3 | - port: 70000
  |         ^^^^^
  = help: it goes from 0 to 65535

error: `port` is a whole number, this is the text `4114`
 --> gate.yaml:4:9
  |
4 | - port: "4114"
  |         ^^^^^^
  = help: write it without quotes

error: `localhost` is no IP address
 --> gate.yaml:5:7
  |
5 | - ip: localhost
  |       ^^^^^^^^^
  = help: write a numeric address: 127.0.0.1 for this host only, 0.0.0.0 for every interface

3 errors
"#,
    },
    Case {
        about: "two listeners on one address",
        file: "admin: {port: 4200}
dtab: /svc => /$/inet/127.0.0.1/9000
listeners:
- port: 4114
- {ip: 0.0.0.0, port: 4114}
- port: 4200
",
        said: "
error: 0.0.0.0:4114 is taken by the listener `thrift-4114`
 --> gate.yaml:5:23
  |
5 | - {ip: 0.0.0.0, port: 4114}
  |                       ^^^^
  = help: give each listener a port of its own

error: 127.0.0.1:4200 is taken by the admin server
 --> gate.yaml:6:9
  |
6 | - port: 4200
  |         ^^^^
  = help: choose another port here, or `admin: {port: ...}`

2 errors
",
    },
    Case {
        about: "two listeners of one name",
        file: "dtab: /svc => /$/inet/127.0.0.1/9000
listeners:
- {name: edge, port: 4114}
- {name: edge, port: 4115}
- {name: a b, port: 4116}
",
        said: "
error: two listeners have the name `edge`
 --> gate.yaml:4:10
  |
4 | - {name: edge, port: 4115}
  |          ^^^^
  = help: names tell listeners apart in logs and metrics

error: `a b` cannot be the name of a listener
 --> gate.yaml:5:11
  |
5 | - {name: a b, port: 4116}
  |           ^
  = help: a name holds letters, digits, `-`, `_` and `.`

2 errors
",
    },
    Case {
        about: "limits that leave nothing, or promise more than can be kept",
        file: "dtab: /svc => /$/inet/127.0.0.1/9000
listeners:
- port: 4114
  trust: strangers
  maxContexts: 0
  maxMethodNameBytes: 4096
  lifeTimeMs: 0
  maxConnectionsPerPeer: 0
- port: 4115
  clearContext: true
",
        said: "
error: `trust` cannot be `strangers`
 --> gate.yaml:4:10
  |
4 |   trust: strangers
  |          ^^^^^^^^^
  = help: there are inside, outside

error: `maxContexts` is 0
 --> gate.yaml:5:16
  |
5 |   maxContexts: 0
  |                ^
  = help: Finagle callers send some with every call; leave the key out for the default

error: `maxMethodNameBytes` cannot be 4096
 --> gate.yaml:6:23
  |
6 |   maxMethodNameBytes: 4096
  |                       ^^^^
  = help: it goes from 1 to 1024

error: `lifeTimeMs` is 0
 --> gate.yaml:7:15
  |
7 |   lifeTimeMs: 0
  |               ^
  = help: connections would be closed as soon as they are made; write `none` for no limit

error: `maxConnectionsPerPeer` is 0
 --> gate.yaml:8:26
  |
8 |   maxConnectionsPerPeer: 0
  |                          ^
  = help: nothing could come in; leave the key out for the default

error: unknown key `clearContext` in a listener
  --> gate.yaml:10:3
   |
10 |   clearContext: true
   |   ^^^^^^^^^^^^
   = help: write `trust: outside`: then callers' contexts and dtabs are dropped

6 errors
",
    },
    Case {
        about: "protocols that are none",
        file: "dtab: /svc => /$/inet/127.0.0.1/9000
listeners:
- {port: 4114, protocol: bufered}
- {port: 4115, protocol: http}
- {port: 4116, thriftProtocol: json}
- {port: 4117, onewayMethods: note}
- {port: 4118, onewayMethods: [7, '']}
",
        said: "
error: `protocol` cannot be `bufered`
 --> gate.yaml:3:26
  |
3 | - {port: 4114, protocol: bufered}
  |                          ^^^^^^^
  = help: did you mean `buffered`?

error: `protocol` cannot be `http`
 --> gate.yaml:4:26
  |
4 | - {port: 4115, protocol: http}
  |                          ^^^^
  = help: there are detect, thriftmux, framed, buffered, header

error: `thriftProtocol` cannot be `json`
 --> gate.yaml:5:32
  |
5 | - {port: 4116, thriftProtocol: json}
  |                                ^^^^
  = help: there are detect, binary, compact

error: `onewayMethods` is a list of texts, this is the text `note`
 --> gate.yaml:6:31
  |
6 | - {port: 4117, onewayMethods: note}
  |                               ^^^^
  = help: for example `onewayMethods: [note, Audit:record]`

error: `onewayMethods` is a list of texts, this is the number 7
 --> gate.yaml:7:32
  |
7 | - {port: 4118, onewayMethods: [7, '']}
  |                                ^
  = help: for example `onewayMethods: [note, Audit:record]`

error: a text of `onewayMethods` is empty
 --> gate.yaml:7:35
  |
7 | - {port: 4118, onewayMethods: [7, '']}
  |                                   ^^
  = help: for example `onewayMethods: [note, Audit:record]`

6 errors
",
    },
    Case {
        about: "no listener",
        file: "dtab: /svc => /$/inet/127.0.0.1/9000
listeners: []
",
        said: "
error: there is no listener
 --> gate.yaml:2:12
  |
2 | listeners: []
  |            ^
  = help: for example `- port: 4114`
",
    },
];
