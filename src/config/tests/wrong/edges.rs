//! Limits, telemetry, the admin server, and words where others belong.

use super::Case;

pub(super) const CASES: &[Case] = &[
    Case {
        about: "limits that let nothing in",
        file: "dtab: /svc => /$/inet/127.0.0.1/9000
listeners:
- port: 4114
  maxConcurrentRequests: 0
  maxConnections: 0
  maxFrameBytes: 10
  maxInFlight: -1
",
        said: "
error: `maxConcurrentRequests` is 0
 --> gate.yaml:4:26
  |
4 |   maxConcurrentRequests: 0
  |                          ^
  = help: every call would be refused; leave the key out for no limit

error: `maxConnections` is 0
 --> gate.yaml:5:19
  |
5 |   maxConnections: 0
  |                   ^
  = help: nothing could come in; leave the key out for the default

error: `maxFrameBytes` cannot be 10
 --> gate.yaml:6:18
  |
6 |   maxFrameBytes: 10
  |                  ^^
  = help: it goes from 1024 to 1073741824

error: `maxInFlight` cannot be -1
 --> gate.yaml:7:16
  |
7 |   maxInFlight: -1
  |                ^^
  = help: it goes from 1 to 8388607

4 errors
",
    },
    Case {
        about: "telemetry that goes nowhere",
        file: "telemetry:
- kind: io.l5d.zipkin
  host: localhost
  sampleRate: 100
- {kind: io.l5d.recentRequests, url: x}
- {kind: io.l5d.recentRequests}
- {kind: io.l5d.statsd}
dtab: /svc => /$/inet/127.0.0.1/9000
listeners: [{port: 4114}]
",
        said: "
error: an item of `telemetry` has no `url`
 --> gate.yaml:2:3
  |
2 | - kind: io.l5d.zipkin
  |   ^
  = help: where Zipkin is: `url: http://127.0.0.1:9411`

error: unknown key `host` in an item of `telemetry`
 --> gate.yaml:3:3
  |
3 |   host: localhost
  |   ^^^^
  = help: spans are sent over HTTP: write `url: http://HOST:9411`

error: `sampleRate` cannot be 100: it goes from 0 to 1
 --> gate.yaml:4:15
  |
4 |   sampleRate: 100
  |               ^^^
  = help: 1.0 traces every call, 0.01 one of a hundred

error: kind `io.l5d.recentRequests` has no `url`
 --> gate.yaml:5:33
  |
5 | - {kind: io.l5d.recentRequests, url: x}
  |                                 ^^^
  = help: leave the key out, or change the kind

error: this kind is there twice
 --> gate.yaml:6:10
  |
6 | - {kind: io.l5d.recentRequests}
  |          ^^^^^^^^^^^^^^^^^^^^^
  = help: keep one of the two

error: `kind` cannot be `io.l5d.statsd`
 --> gate.yaml:7:10
  |
7 | - {kind: io.l5d.statsd}
  |          ^^^^^^^^^^^^^
  = help: there are io.l5d.zipkin, io.l5d.recentRequests

6 errors
",
    },
    Case {
        about: "zipkin by other means",
        file: "telemetry: [{kind: io.l5d.zipkin, url: zipkin:9411}]
admin: {tls: {}, prot: 1}
dtab: /svc => /$/inet/127.0.0.1/9000
listeners: [{port: 4114}]
",
        said: "
error: `zipkin:9411` does not begin with http://
 --> gate.yaml:1:40
  |
1 | telemetry: [{kind: io.l5d.zipkin, url: zipkin:9411}]
  |                                        ^^^^^^^^^^^
  = help: write http://zipkin:9411

error: unknown key `tls` in `admin`
 --> gate.yaml:2:9
  |
2 | admin: {tls: {}, prot: 1}
  |         ^^^
  = help: the admin server speaks plain HTTP: keep it on 127.0.0.1

error: unknown key `prot` in `admin`
 --> gate.yaml:2:18
  |
2 | admin: {tls: {}, prot: 1}
  |                  ^^^^
  = help: did you mean `port`?

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
