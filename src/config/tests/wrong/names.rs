//! Namers and dtabs.

use super::Case;

pub(super) const CASES: &[Case] = &[
    Case {
        about: "an unknown namer",
        file: "namers:
- kind: io.l5d.ffs
  rootDir: disco
dtab: /svc => /#/io.l5d.fs
listeners: [{port: 4114}]
",
        said: "
error: `kind` cannot be `io.l5d.ffs`
 --> gate.yaml:2:9
  |
2 | - kind: io.l5d.ffs
  |         ^^^^^^^^^^
  = help: did you mean `io.l5d.fs`?
",
    },
    Case {
        about: "a namer prefix twice",
        file: "namers:
- {kind: io.l5d.fs, rootDir: a}
- {kind: io.l5d.fs, rootDir: b}
- {kind: io.l5d.fs, rootDir: c, prefix: /#/c}
dtab: /svc => /#/io.l5d.fs
listeners: [{port: 4114}]
",
        said: "
error: two namers have the prefix /io.l5d.fs
 --> gate.yaml:3:10
  |
3 | - {kind: io.l5d.fs, rootDir: b}
  |          ^^^^^^^^^
  = help: give each namer a `prefix` of its own, for example `prefix: /other`, and use it as /#/other

error: the prefix of a namer stands behind `/#`
 --> gate.yaml:4:41
  |
4 | - {kind: io.l5d.fs, rootDir: c, prefix: /#/c}
  |                                         ^^^^
  = help: leave `/#` out here: `prefix: /c`

2 errors
",
    },
    Case {
        about: "a dtab block with a comma",
        file: "namers: [{kind: io.l5d.fs, rootDir: disco}]
dtab: |
  # where services are
  /host => /#/io.l5d.fs ;

  /svc  => /host, /svc/users => /host/people ;
listeners: [{port: 4114}]
",
        said: "
error: dtab: expected ; or & or | or the end
 --> gate.yaml:6:17
  |
6 |   /svc  => /host, /svc/users => /host/people ;
  |                 ^
  = help: entries are separated by `;`
",
    },
    Case {
        about: "a dtab without a semicolon",
        file: "dtab: |
  /svc/a => /$/inet/127.0.0.1/9001
  /svc/b => /$/inet/127.0.0.1/9002 ;
listeners: [{port: 4114}]
",
        said: "
error: dtab: expected ; or & or | or the end
 --> gate.yaml:3:3
  |
3 |   /svc/b => /$/inet/127.0.0.1/9002 ;
  |   ^
  = help: an entry ends with `;`: is one missing before this?
",
    },
    Case {
        about: "a dtab that ends too early",
        file: "dtab: >-
    /svc =>
listeners: [{port: 4114}]
",
        said: "
error: dtab: expected a path, ~, !, $ or (
 --> gate.yaml:2:12
  |
2 |     /svc =>
  |            ^
  = help: an entry is `/prefix => /destination ;`, with `|` for fallback and `&` for weighted shares
",
    },
    Case {
        about: "a dtab name without namer",
        file: "namers: [{kind: io.l5d.fs, rootDir: disco}]
dtab: |
  /svc       => /#/io.l5d.fs ;
  /svc/users => /#/io.l5d.rancher/dc1/users | /#/io.l5d.fs/users ;
listeners: [{port: 4114}]
",
        said: "
error: dtab: no namer has /#/io.l5d.rancher/dc1/users
 --> gate.yaml:4:17
  |
4 |   /svc/users => /#/io.l5d.rancher/dc1/users | /#/io.l5d.fs/users ;
  |                 ^
  = help: the namers of this file are /#/io.l5d.fs
",
    },
    Case {
        about: "a dtab name without any namer",
        file: "dtab: /svc => /#/io.l5d.fs
listeners: [{port: 4114}]
",
        said: "
error: dtab: no namer has /#/io.l5d.fs
 --> gate.yaml:1:15
  |
1 | dtab: /svc => /#/io.l5d.fs
  |               ^
  = help: there are no namers; add one: `namers: [{kind: io.l5d.fs, rootDir: disco}]`
",
    },
];
