//! Settings of services and clients.

use super::Case;

pub(super) const CASES: &[Case] = &[
    Case {
        about: "times in other units",
        file: "dtab: /svc => /$/inet/127.0.0.1/9000
listeners: [{port: 4114, idleTimeMs: 10m}]
services:
- totalTimeoutMs: 1.5s
  bindingTimeoutMs: 2s
- totalTimeoutMs: 0
- totalTimeoutMs: 100000000
",
        said: "
error: `idleTimeMs` is a whole number of milliseconds, this is the text `10m`
 --> gate.yaml:2:38
  |
2 | listeners: [{port: 4114, idleTimeMs: 10m}]
  |                                      ^^^
  = help: write 600000

error: `totalTimeoutMs` is a whole number of milliseconds, this is the text `1.5s`
 --> gate.yaml:4:19
  |
4 | - totalTimeoutMs: 1.5s
  |                   ^^^^
  = help: write 1500

error: `bindingTimeoutMs` is a whole number of milliseconds, this is the text `2s`
 --> gate.yaml:5:21
  |
5 |   bindingTimeoutMs: 2s
  |                     ^^
  = help: write 2000

error: `totalTimeoutMs` is 0
 --> gate.yaml:6:19
  |
6 | - totalTimeoutMs: 0
  |                   ^
  = help: without any time every call would fail; write `none` for no limit

error: `totalTimeoutMs` cannot be 100000000
 --> gate.yaml:7:19
  |
7 | - totalTimeoutMs: 100000000
  |                   ^^^^^^^^^
  = help: it goes from 1 to 86400000

5 errors
",
    },
    Case {
        about: "a share in percent",
        file: "dtab: /svc => /$/inet/127.0.0.1/9000
listeners: [{port: 4114}]
services:
- retries: {budget: {percentCanRetry: 20, ttlSecs: 0}}
",
        said: "
error: `percentCanRetry` cannot be 20: it goes from 0 to 10
 --> gate.yaml:4:39
  |
4 | - retries: {budget: {percentCanRetry: 20, ttlSecs: 0}}
  |                                       ^^
  = help: it is a share: 0.2 lets one call in five be tried again

error: `ttlSecs` is 0
 --> gate.yaml:4:52
  |
4 | - retries: {budget: {percentCanRetry: 20, ttlSecs: 0}}
  |                                                    ^
  = help: the budget needs a window to count in

2 errors
",
    },
    Case {
        about: "retries that cannot be",
        file: "dtab: /svc => /$/inet/127.0.0.1/9000
listeners: [{port: 4114}]
services:
- responseClassifier: io.l5d.thrift.retryableFailures
- responseClassifier: {kind: io.l5d.http.retryableAll5XX}
- retries: {backoff: {kind: jittered, minMs: 100, maxMs: 20}}
- retries: {backoff: {kind: constant, minMs: 5}}
",
        said: "
error: `responseClassifier` is a map, this is the text `io.l5d.thrift.retryableFailures`
 --> gate.yaml:4:23
  |
4 | - responseClassifier: io.l5d.thrift.retryableFailures
  |                       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  = help: write `responseClassifier: {kind: io.l5d.thrift.retryableFailures}`

error: `kind` cannot be `io.l5d.http.retryableAll5XX`
 --> gate.yaml:5:30
  |
5 | - responseClassifier: {kind: io.l5d.http.retryableAll5XX}
  |                              ^^^^^^^^^^^^^^^^^^^^^^^^^^^
  = help: there are io.l5d.thrift.nonRetryableFailures, io.l5d.thrift.retryableFailures

error: minMs (100) is above maxMs (20)
 --> gate.yaml:6:46
  |
6 | - retries: {backoff: {kind: jittered, minMs: 100, maxMs: 20}}
  |                                              ^^^
  = help: the least pause cannot be the longest

error: `backoff` has no `ms`
 --> gate.yaml:7:22
  |
7 | - retries: {backoff: {kind: constant, minMs: 5}}
  |                      ^
  = help: for example `ms: 50`

error: kind `constant` has no `minMs`
 --> gate.yaml:7:39
  |
7 | - retries: {backoff: {kind: constant, minMs: 5}}
  |                                       ^^^^^
  = help: leave the key out, or change the kind

5 errors
",
    },
    Case {
        about: "a service by a name without its prefix",
        file: r#"dtab: /svc => /$/inet/127.0.0.1/9000
listeners: [{port: 4114}]
services:
- {prefix: /users, totalTimeoutMs: 100}
- {prefix: svc/users, totalTimeoutMs: 100}
- {prefix: "/#/io.l5d.fs/users", totalTimeoutMs: 100}
"#,
        said: r#"
error: no name begins with /users
 --> gate.yaml:4:12
  |
4 | - {prefix: /users, totalTimeoutMs: 100}
  |            ^^^^^^
  = help: names of calls begin with the listener's `dstPrefix`: /svc/users

error: `prefix` is no path: expected a path, which begins with /
 --> gate.yaml:5:12
  |
5 | - {prefix: svc/users, totalTimeoutMs: 100}
  |            ^
  = help: names begin with a slash: /svc/users

error: no name begins with /#/io.l5d.fs/users
 --> gate.yaml:6:12
  |
6 | - {prefix: "/#/io.l5d.fs/users", totalTimeoutMs: 100}
  |            ^^^^^^^^^^^^^^^^^^^^
  = help: settings by bound id belong into `clients`

3 errors
"#,
    },
    Case {
        about: "a client by a name",
        file: "namers: [{kind: io.l5d.fs, rootDir: disco}]
dtab: /svc => /#/io.l5d.fs
listeners: [{port: 4114}]
clients:
- {prefix: /svc/users, protocol: framed}
- {prefix: /#/io.l5d.sf, protocol: framed}
- {prefix: /#/io.l5d.fs/us*, protocol: framed}
",
        said: "
error: no bound id begins with /svc/users
 --> gate.yaml:5:12
  |
5 | - {prefix: /svc/users, protocol: framed}
  |            ^^^^^^^^^^
  = help: bound ids begin with /# or /$, such as /#/io.l5d.fs/users; settings by name belong into `services`

error: no namer gives ids below /#/io.l5d.sf
 --> gate.yaml:6:12
  |
6 | - {prefix: /#/io.l5d.sf, protocol: framed}
  |            ^^^^^^^^^^^^
  = help: the namers are /#/io.l5d.fs

error: `prefix` is no path: a * must be a whole element of a prefix
 --> gate.yaml:7:27
  |
7 | - {prefix: /#/io.l5d.fs/us*, protocol: framed}
  |                           ^
  = help: `/a/*/b` has any one element between a and b

3 errors
",
    },
    Case {
        about: "a protocol that we do not speak",
        file: "dtab: /svc => /$/inet/127.0.0.1/9000
listeners: [{port: 4114}]
clients:
- protocol: thrift-mux
- protocol: http
",
        said: "
error: `protocol` cannot be `thrift-mux`
 --> gate.yaml:4:13
  |
4 | - protocol: thrift-mux
  |             ^^^^^^^^^^
  = help: did you mean `thriftmux`?

error: `protocol` cannot be `http`
 --> gate.yaml:5:13
  |
5 | - protocol: http
  |             ^^^^
  = help: there are thriftmux, framed, ttwitter, buffered, header

2 errors
",
    },
    Case {
        about: "a Thrift protocol that we do not speak, and a name that is stripped of what",
        file: "dtab: /svc => /$/inet/127.0.0.1/9000
listeners: [{port: 4114}]
clients:
- thriftProtocol: json
- stripServiceName: Users
",
        said: "
error: `thriftProtocol` cannot be `json`
 --> gate.yaml:4:19
  |
4 | - thriftProtocol: json
  |                   ^^^^
  = help: there are same, binary, compact

error: `stripServiceName` is true or false, this is the text `Users`
 --> gate.yaml:5:21
  |
5 | - stripServiceName: Users
  |                     ^^^^^

2 errors
",
    },
    Case {
        about: "decay without ewma",
        file: "dtab: /svc => /$/inet/127.0.0.1/9000
listeners: [{port: 4114}]
clients:
- loadBalancer: {kind: p2c, decayTimeMs: 5000}
- loadBalancer: {kind: aperture}
",
        said: "
error: `decayTimeMs` is a setting of ewma
 --> gate.yaml:4:42
  |
4 | - loadBalancer: {kind: p2c, decayTimeMs: 5000}
  |                                          ^^^^
  = help: p2c compares calls in flight, which do not decay: write `kind: ewma` or leave this out

error: `kind` cannot be `aperture`
 --> gate.yaml:5:24
  |
5 | - loadBalancer: {kind: aperture}
  |                        ^^^^^^^^
  = help: there are p2c, ewma

2 errors
",
    },
    Case {
        about: "backoffs upside down",
        file: "dtab: /svc => /$/inet/127.0.0.1/9000
listeners: [{port: 4114}]
clients:
- failureAccrual:
    kind: io.l5d.consecutiveFailures
    failures: 0
    backoff: {kind: jittered, minMs: 5000, maxMs: 1000}
- failureAccrual: {kind: none, failures: 5}
- failureAccrual: {kind: io.l5d.successRate, successRate: 0.9}
- failureAccrual: {kind: io.l5d.consecutiveFailures, backoff: {kind: constant, minMs: 5}}
",
        said: "
error: `failures` is 0
 --> gate.yaml:6:15
  |
6 |     failures: 0
  |               ^
  = help: it takes one failure at least; `kind: none` switches accrual off

error: minMs (5000) is above maxMs (1000)
 --> gate.yaml:7:38
  |
7 |     backoff: {kind: jittered, minMs: 5000, maxMs: 1000}
  |                                      ^^^^
  = help: the first backoff cannot be the longest

error: kind `none` has no `failures`
 --> gate.yaml:8:32
  |
8 | - failureAccrual: {kind: none, failures: 5}
  |                                ^^^^^^^^
  = help: leave the key out, or change the kind

error: `kind` cannot be `io.l5d.successRate`
 --> gate.yaml:9:26
  |
9 | - failureAccrual: {kind: io.l5d.successRate, successRate: 0.9}
  |                          ^^^^^^^^^^^^^^^^^^
  = help: there are io.l5d.consecutiveFailures, none

error: unknown key `successRate` in `failureAccrual`
 --> gate.yaml:9:46
  |
9 | - failureAccrual: {kind: io.l5d.successRate, successRate: 0.9}
  |                                              ^^^^^^^^^^^
  = help: accrual counts failures in a row: `kind: io.l5d.consecutiveFailures` with `failures`

error: `backoff` has no `ms`
  --> gate.yaml:10:63
   |
10 | - failureAccrual: {kind: io.l5d.consecutiveFailures, backoff: {kind: constant, minMs: 5}}
   |                                                               ^
   = help: for example `ms: 5000`

error: kind `constant` has no `minMs`
  --> gate.yaml:10:80
   |
10 | - failureAccrual: {kind: io.l5d.consecutiveFailures, backoff: {kind: constant, minMs: 5}}
   |                                                                                ^^^^^
   = help: leave the key out, or change the kind

7 errors
",
    },
    Case {
        about: "a pool for mux",
        file: "dtab: /svc => /$/inet/127.0.0.1/9000
listeners: [{port: 4114}]
clients:
- protocol: thriftmux
  hostConnectionPool: {maxSize: 0, minSize: 1}
",
        said: "
error: a thriftmux endpoint has one connection and no pool
 --> gate.yaml:5:23
  |
5 |   hostConnectionPool: {maxSize: 0, minSize: 1}
  |                       ^
  = help: leave all but `lifeTimeMs` out, or set `protocol: framed`

error: `maxSize` is 0
 --> gate.yaml:5:33
  |
5 |   hostConnectionPool: {maxSize: 0, minSize: 1}
  |                                 ^
  = help: calls need a connection; leave the key out for the default

error: unknown key `minSize` in `hostConnectionPool`
 --> gate.yaml:5:36
  |
5 |   hostConnectionPool: {maxSize: 0, minSize: 1}
  |                                    ^^^^^^^
  = help: connections are made when they are needed: leave this out

3 errors
",
    },
    Case {
        about: "a number for a protocol, a capture in a name, connections that nobody keeps",
        file: "dtab: /svc => /$/inet/127.0.0.1/9000
listeners: [{port: 4114}]
services:
- {prefix: '/svc/{a}', totalTimeoutMs: 1}
clients:
- protocol: 5
- {protocol: framed, hostConnectionPool: {idleTimeMs: 0, lifeTimeMs: 0}}
",
        said: "
error: a name's `prefix` has no captures
 --> gate.yaml:4:18
  |
4 | - {prefix: '/svc/{a}', totalTimeoutMs: 1}
  |                  ^
  = help: captures are for `clients`; here `*` stands for any one element, as in /svc/*

error: `protocol` is a word, this is the number 5
 --> gate.yaml:6:13
  |
6 | - protocol: 5
  |             ^
  = help: there are thriftmux, framed, ttwitter, buffered, header

error: `idleTimeMs` is 0
 --> gate.yaml:7:55
  |
7 | - {protocol: framed, hostConnectionPool: {idleTimeMs: 0, lifeTimeMs: 0}}
  |                                                       ^
  = help: connections would be closed as soon as they are made; leave the key out for the default

error: `lifeTimeMs` is 0
 --> gate.yaml:7:70
  |
7 | - {protocol: framed, hostConnectionPool: {idleTimeMs: 0, lifeTimeMs: 0}}
  |                                                                      ^
  = help: connections would be closed as soon as they are made; write `none` for no limit

4 errors
",
    },
];
