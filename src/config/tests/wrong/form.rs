//! The form of the file: YAML, keys, types.

use super::Case;

pub(super) const CASES: &[Case] = &[
    Case {
        about: "an empty file",
        file: "",
        said: "
error: the file has no `dtab`
 --> gate.yaml:1:1
  |
1 |
  | ^
  = help: without it no name leads anywhere; for example `dtab: /svc => /#/io.l5d.fs`, or follow a `store`

error: the file has no `listeners`
 --> gate.yaml:1:1
  |
1 |
  | ^
  = help: for example `listeners: [{port: 4114}]`

2 errors
",
    },
    Case {
        about: "a slip in a key",
        file: "dtab: /svc => /$/inet/127.0.0.1/9000
listeners:
- prot: 4114
",
        said: "
error: unknown key `prot` in a listener
 --> gate.yaml:3:3
  |
3 | - prot: 4114
  |   ^^^^
  = help: did you mean `port`?
",
    },
    Case {
        about: "linkerd words",
        file: "routers:
- protocol: thrift
servers:
- port: 4114
usage: {enabled: false}
",
        said: "
error: unknown key `routers` in the file
 --> gate.yaml:1:1
  |
1 | routers:
  | ^^^^^^^
  = help: there is one router: `dtab`, `listeners`, `services` and `clients` stand at the top of the file

error: unknown key `servers` in the file
 --> gate.yaml:3:1
  |
3 | servers:
  | ^^^^^^^
  = help: servers are called `listeners` here

error: unknown key `usage` in the file
 --> gate.yaml:5:1
  |
5 | usage: {enabled: false}
  | ^^^^^
  = help: nothing is reported to anybody: leave this out

3 errors
",
    },
    Case {
        about: "words from elsewhere in their place",
        file: "dtab: /svc => /$/inet/127.0.0.1/9000
listeners:
- port: 4114
  label: in
  thriftFramed: false
clients:
- kind: io.l5d.static
  thriftFramed: true
",
        said: "
error: unknown key `label` in a listener
 --> gate.yaml:4:3
  |
4 |   label: in
  |   ^^^^^
  = help: did you mean `name`?

error: unknown key `thriftFramed` in a listener
 --> gate.yaml:5:3
  |
5 |   thriftFramed: false
  |   ^^^^^^^^^^^^
  = help: write `protocol: framed` or `protocol: buffered`, or leave it out: first bytes tell

error: unknown key `kind` in an entry of `clients`
 --> gate.yaml:7:3
  |
7 | - kind: io.l5d.static
  |   ^^^^
  = help: entries are matched by `prefix`: leave the kind out

error: unknown key `thriftFramed` in an entry of `clients`
 --> gate.yaml:8:3
  |
8 |   thriftFramed: true
  |   ^^^^^^^^^^^^
  = help: write `protocol: framed` or `protocol: buffered`

4 errors
",
    },
    Case {
        about: "no yaml",
        file: "dtab: /svc => /$/inet/127.0.0.1/9000
listeners: [{port: 4114}
clients: []
",
        said: "
error: not readable as YAML: illegal placement of ':' indicator
 --> gate.yaml:3:8
  |
3 | clients: []
  |        ^
  = help: is a `]`, a `}` or a quote missing before this?
",
    },
    Case {
        about: "two documents",
        file: "dtab: /svc => /$/inet/127.0.0.1/9000
listeners: [{port: 4114}]
---
threads: 1
",
        said: "
error: the file holds more than one YAML document
 --> gate.yaml:3:1
  |
3 | ---
  | ^
  = help: one file is one configuration: take the `---` line and what is behind it out
",
    },
    Case {
        about: "too deep",
        file: "dtab: [[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]
",
        said: "
error: values are nested more than 16 levels deep
 --> gate.yaml:1:22
  |
1 | dtab: [[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]
  |                      ^
  = help: our own keys need seven
",
    },
    Case {
        about: "only the kind",
        file: "dtab: /svc => /$/inet/127.0.0.1/9000
listeners: [{port: 4114}]
clients: [{failureAccrual: none, loadBalancer: ewma}]
",
        said: "
error: `failureAccrual` is a map, this is the text `none`
 --> gate.yaml:3:28
  |
3 | clients: [{failureAccrual: none, loadBalancer: ewma}]
  |                            ^^^^
  = help: write `failureAccrual: {kind: none}`

error: `loadBalancer` is a map, this is the text `ewma`
 --> gate.yaml:3:48
  |
3 | clients: [{failureAccrual: none, loadBalancer: ewma}]
  |                                                ^^^^
  = help: write `loadBalancer: {kind: ewma}`

2 errors
",
    },
    Case {
        about: "a tab",
        file: "dtab: /svc => /$/inet/127.0.0.1/9000
listeners:
	- port: 4114
",
        said: "
error: not readable as YAML: tabs disallowed within this context (block indentation)
 --> gate.yaml:3:2
  |
3 |  - port: 4114
  |  ^
  = help: indent with blanks
",
    },
    Case {
        about: "a key twice",
        file: "dtab: /svc => /$/inet/127.0.0.1/9000
listeners: [{port: 4114}]
dtab: /svc => /$/inet/127.0.0.1/9001
",
        said: "
error: `dtab` is given twice in the file
 --> gate.yaml:3:1
  |
3 | dtab: /svc => /$/inet/127.0.0.1/9001
  | ^^^^
  = help: keep one of the two
",
    },
    Case {
        about: "wrong types",
        file: "threads: many
dtab: [/svc]
listeners:
  port: 4114
",
        said: "
error: `threads` is a whole number, this is the text `many`
 --> gate.yaml:1:10
  |
1 | threads: many
  |          ^^^^

error: `dtab` is text, this is a list
 --> gate.yaml:2:7
  |
2 | dtab: [/svc]
  |       ^

error: `listeners` is a list, this is a map
 --> gate.yaml:4:3
  |
4 |   port: 4114
  |   ^
  = help: begin each item with a dash: `- ...`

3 errors
",
    },
];
