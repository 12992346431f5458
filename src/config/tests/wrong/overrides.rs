//! Rules about the dtabs of calls.

use super::Case;

pub(super) const CASES: &[Case] = &[Case {
    about: "rules about the dtabs of calls",
    file: "dtab: ''
listeners:
- port: 1
  trust: outside
  dtabOverrides: none
- port: 2
  dtabOverrides:
  - {clientId: web, prefix: /a}
  - prefixes: [/a//b]
",
    said: "
error: no dtab comes in here
 --> gate.yaml:5:3
  |
5 |   dtabOverrides: none
  |   ^^^^^^^^^^^^^
  = help: leave the key out: with `trust: outside` no call's dtab is read
",
}];
