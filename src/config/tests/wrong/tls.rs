//! Certificates. Files that are there are tested beside: see `good`.

use super::Case;

pub(super) const CASES: &[Case] = &[
    Case {
        about: "a listener without certificates",
        file: "dtab: ''\nlisteners:\n- port: 1\n  tls: {ciphers: [x]}\n",
        said: r#"
error: `tls` of a listener has no `certPath`
 --> gate.yaml:4:8
  |
4 |   tls: {ciphers: [x]}
  |        ^
  = help: for example `certPath: server.pem`

error: `tls` of a listener has no `keyPath`
 --> gate.yaml:4:8
  |
4 |   tls: {ciphers: [x]}
  |        ^
  = help: for example `keyPath: server.key`

error: unknown key `ciphers` in `tls` of a listener
 --> gate.yaml:4:9
  |
4 |   tls: {ciphers: [x]}
  |         ^^^^^^^
  = help: the ciphers that are safe are used: leave this out

3 errors
"#,
    },
    Case {
        about: "a file that is not there, authorities that nobody named, a version that nobody should speak",
        file: "dtab: ''\nlisteners:\n- port: 1\n  tls:\n    certPath: nowhere.pem\n    keyPath: nowhere.key\n    requireClientAuth: true\n    protocols: [SSLv3]\n",
        said: r#"
error: nowhere.pem: cannot be read: No such file or directory (os error 2)
 --> gate.yaml:5:15
  |
5 |     certPath: nowhere.pem
  |               ^^^^^^^^^^^
  = help: a PEM file with our certificate, and perhaps those of its issuers behind it

error: client certificates of which authorities?
 --> gate.yaml:7:24
  |
7 |     requireClientAuth: true
  |                        ^^^^
  = help: `caCertPath` names the authorities whose certificates callers must show

error: `SSLv3` is not spoken
 --> gate.yaml:8:17
  |
8 |     protocols: [SSLv3]
  |                 ^^^^^
  = help: there are TLSv1.2 and TLSv1.3; older ones are not safe

3 errors
"#,
    },
    Case {
        about: "nobody to believe and no name to ask for",
        file: "dtab: ''\nlisteners: [{port: 1}]\nclients:\n- tls: {}\n",
        said: r#"
error: `tls` of an entry of `clients` has no `commonName`
 --> gate.yaml:4:8
  |
4 | - tls: {}
  |        ^
  = help: services must show a certificate for it, such as `commonName: users.example.org`

error: `tls` of an entry of `clients` has no `trustCertsBundle`
 --> gate.yaml:4:8
  |
4 | - tls: {}
  |        ^
  = help: `trustCertsBundle` names the authorities that are believed (those of the system are not); `disableValidation: true` believes anybody

2 errors
"#,
    },
    Case {
        about: "a name with a part that the prefix does not have, and an upgrade that only Mux has",
        file: "dtab: ''\nlisteners: [{port: 1}]\nclients:\n- prefix: /$/inet/{host}\n  protocol: framed\n  tls: {commonName: '{service}.example.org', disableValidation: true, opportunistic: desired}\n",
        said: r#"
error: `prefix` has no {service}
 --> gate.yaml:6:21
  |
6 |   tls: {commonName: '{service}.example.org', disableValidation: true, opportunistic: desired}
  |                     ^^^^^^^^^^^^^^^^^^^^^^^
  = help: a host's name or an address; `{x}` stands for what `{x}` in `prefix` matched, as in `prefix: /#/io.l5d.fs/{x}`

error: only thriftmux can begin in clear and go on encrypted
 --> gate.yaml:6:86
  |
6 |   tls: {commonName: '{service}.example.org', disableValidation: true, opportunistic: desired}
  |                                                                                      ^^^^^^^
  = help: leave `opportunistic` out: connections are encrypted from their first byte

2 errors
"#,
    },
    Case {
        about: "a prefix with an open brace",
        file: "dtab: ''\nlisteners: [{port: 1}]\nclients:\n- prefix: /$/inet/{host\n",
        said: r#"
error: `prefix` is no pattern: bad element "{host" in /$/inet/{host
 --> gate.yaml:4:11
  |
4 | - prefix: /$/inet/{host
  |           ^^^^^^^^^^^^^
  = help: for example /#/io.l5d.fs/{service}, to use `{service}` in `commonName` of `tls`
"#,
    },
    Case {
        about: "a prefix that keeps two parts under one name",
        file: "dtab: ''\nlisteners: [{port: 1}]\nclients:\n- prefix: '/$/inet/{a}/{a}'\n",
        said: r#"
error: `prefix` is no pattern: {a} stands in it twice
 --> gate.yaml:4:11
  |
4 | - prefix: '/$/inet/{a}/{a}'
  |           ^^^^^^^^^^^^^^^^^
  = help: give each part a name of its own; `*` matches an element without keeping it
"#,
    },
    Case {
        about: "words and numbers where they are none",
        file: "dtab: ''\nlisteners: [{port: 1, tls: off}, {port: 2, tls: false}]\nclients:\n- tls: {disableValidation: 1, opportunistic: true}\n- tls: {disableValidation: true, protocols: [TLSv1.3, TLSv1.1]}\n",
        said: r#"
error: `tls` is a map, this is the text `off`
 --> gate.yaml:2:28
  |
2 | listeners: [{port: 1, tls: off}, {port: 2, tls: false}]
  |                            ^^^
  = help: write `tls: none` for plain connections, or lines with the keys certPath, keyPath, intermediateCertsPath, caCertPath, requireClientAuth, protocols, opportunistic

error: `tls` is a map, this is false
 --> gate.yaml:2:49
  |
2 | listeners: [{port: 1, tls: off}, {port: 2, tls: false}]
  |                                                 ^^^^^
  = help: write `tls: none` for plain connections, or lines with the keys certPath, keyPath, intermediateCertsPath, caCertPath, requireClientAuth, protocols, opportunistic

error: `disableValidation` is true or false, this is the number 1
 --> gate.yaml:4:28
  |
4 | - tls: {disableValidation: 1, opportunistic: true}
  |                            ^

error: `opportunistic` is a word, this is true
 --> gate.yaml:4:46
  |
4 | - tls: {disableValidation: 1, opportunistic: true}
  |                                              ^^^^
  = help: there are off, desired, required

error: `TLSv1.1` is not spoken
 --> gate.yaml:5:55
  |
5 | - tls: {disableValidation: true, protocols: [TLSv1.3, TLSv1.1]}
  |                                                       ^^^^^^^
  = help: there are TLSv1.2 and TLSv1.3; older ones are not safe

5 errors
"#,
    },
];
