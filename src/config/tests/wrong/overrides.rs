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
 --> gate.yaml:5:18
  |
5 |   dtabOverrides: none
  |                  ^^^^
  = help: leave the key out: with `trust: outside` no call's dtab is read

error: unknown key `prefix` in a rule of `dtabOverrides`
 --> gate.yaml:8:21
  |
8 |   - {clientId: web, prefix: /a}
  |                     ^^^^^^
  = help: write `prefixes`, a list

error: `/a//b`: an element must not be empty
 --> gate.yaml:9:16
  |
9 |   - prefixes: [/a//b]
  |                ^^^^^
  = help: for example `prefixes: [/svc/users]`; `[/]` for all but what lies below /$ and /#

3 errors
",
}];
