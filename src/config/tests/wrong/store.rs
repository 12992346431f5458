//! The store that is followed.

use super::Case;

pub(super) const CASES: &[Case] = &[
    Case {
        about: "neither a table nor a store",
        file: "listeners: [{port: 4114}]\n",
        said: "
error: the file has no `dtab`
 --> gate.yaml:1:1
  |
1 | listeners: [{port: 4114}]
  | ^
  = help: without it no name leads anywhere; for example `dtab: /svc => /#/io.l5d.fs`, or follow a `store`
",
    },
    Case {
        about: "a store without addresses",
        file: "store: {namespace: shop, address: 'http://a'}\nlisteners: [{port: 4114}]\n",
        said: "
error: unknown key `address` in `store`
 --> gate.yaml:1:26
  |
1 | store: {namespace: shop, address: 'http://a'}
  |                          ^^^^^^^
  = help: write `addresses`, a list
",
    },
    Case {
        about: "addresses that are none",
        file: "store:\n  addresses: [127.0.0.1:4180, 'http://a/api', ftp://b]\nlisteners: [{port: 4114}]\n",
        said: "
error: `127.0.0.1:4180` is no address of a store
 --> gate.yaml:2:15
  |
2 |   addresses: [127.0.0.1:4180, 'http://a/api', ftp://b]
  |               ^^^^^^^^^^^^^^
  = help: write http://HOST:PORT, or https://HOST:PORT and `tls`

error: `http://a/api` is no address of a store
 --> gate.yaml:2:31
  |
2 |   addresses: [127.0.0.1:4180, 'http://a/api', ftp://b]
  |                               ^^^^^^^^^^^^^^
  = help: write http://HOST:PORT, or https://HOST:PORT and `tls`

error: `ftp://b` is no address of a store
 --> gate.yaml:2:47
  |
2 |   addresses: [127.0.0.1:4180, 'http://a/api', ftp://b]
  |                                               ^^^^^^^
  = help: write http://HOST:PORT, or https://HOST:PORT and `tls`

3 errors
",
    },
    Case {
        about: "https without authorities, and a name that cannot be",
        file: "store:\n  addresses: ['https://a:4180']\n  namespace: a/b\nlisteners: [{port: 4114}]\n",
        said: "
error: `https://a:4180` does not go with `tls`
 --> gate.yaml:2:15
  |
2 |   addresses: ['https://a:4180']
  |               ^^^^^^^^^^^^^^^^
  = help: https needs `tls`: whom do we believe?

error: `a/b` cannot be the name of a table
 --> gate.yaml:3:14
  |
3 |   namespace: a/b
  |              ^^^
  = help: letters, digits, `_`, `-` and `.`, at most 256

2 errors
",
    },
    Case {
        about: "no addresses in the list",
        file: "store: {addresses: []}\nlisteners: [{port: 4114}]\n",
        said: "
error: `addresses` has no address of a store
 --> gate.yaml:1:20
  |
1 | store: {addresses: []}
  |                    ^
  = help: for example `addresses: [http://127.0.0.1:4180]`, at most 16
",
    },
];
