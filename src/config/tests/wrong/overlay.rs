//! Entries of `clients` that cannot be laid over each other, and some that can.

use super::Case;
use crate::config::parse;

pub(super) const CASES: &[Case] = &[
    Case {
        about: "TLS by agreement over another protocol, and below it",
        file: "dtab: ''
listeners: [{port: 1}]
clients:
- {prefix: /, protocol: framed}
- {prefix: /$/inet/127.0.0.1, tls: {disableValidation: true, opportunistic: required}}
- {prefix: /$/inet/*/80, protocol: thriftmux, tls: {disableValidation: true, opportunistic: desired}}
- {prefix: '/$/inet/a/{port}', protocol: buffered}
",
        said: "
error: `opportunistic` cannot be laid over `protocol: framed` of the entry of line 4, `prefix: /`
 --> gate.yaml:5:77
  |
5 | - {prefix: /$/inet/127.0.0.1, tls: {disableValidation: true, opportunistic: required}}
  |                                                                             ^^^^^^^^
  = help: only thriftmux can begin in clear and go on encrypted: add `protocol: thriftmux` here, or leave `opportunistic` out

error: `protocol: buffered` cannot be laid over `opportunistic` of the entry of line 6, `prefix: /$/inet/*/80`
 --> gate.yaml:7:42
  |
7 | - {prefix: '/$/inet/a/{port}', protocol: buffered}
  |                                          ^^^^^^^^
  = help: only thriftmux can begin in clear and go on encrypted: give this entry a `tls` without `opportunistic` (which encrypts from the first byte), or `tls: none`

2 errors
",
    },
    Case {
        about: "compression below another protocol",
        file: "dtab: ''
listeners: [{port: 1}]
clients:
- compression: accepted
- {prefix: /$/inet, protocol: ttwitter}
",
        said: "
error: `protocol: ttwitter` cannot be laid over `compression` of the entry of line 4, `prefix: /`
 --> gate.yaml:5:31
  |
5 | - {prefix: /$/inet, protocol: ttwitter}
  |                               ^^^^^^^^
  = help: compression is agreed upon in Mux's handshake: write `compression: off` here
",
    },
];

/// Whether entries can be laid over each other.
fn fit(entries: &str) -> bool {
    parse("-", &format!("dtab: ''\nlisteners: [{{port: 1}}]\nclients:\n{entries}")).is_ok()
}

const TLS: &str = "tls: {disableValidation: true, opportunistic: desired}";

#[test]
fn either_order_is_refused() {
    for (a, b) in [
        ("/", "/$/inet/127.0.0.1"),
        ("/$/inet/127.0.0.1", "/"),
        ("/$/inet/*/80", "/$/inet/127.0.0.1"),
        ("/$/inet/{host}", "/$/inet/*/80"),
        ("/$/inet/a{x}", "/$/inet/{x}b"),
        ("/$/inet/a{x}-{y}", "/$/inet/{x}.{y}b"),
        ("/$/inet/a{x}", "/$/inet/ab"),
        ("/", "/"),
    ] {
        for (a, b) in [(a, b), (b, a)] {
            assert!(!fit(&format!("- {{prefix: '{a}', {TLS}}}\n- {{prefix: '{b}', protocol: header}}\n")));
            assert!(!fit(&format!("- {{prefix: '{b}', protocol: header}}\n- {{prefix: '{a}', {TLS}}}\n")));
        }
    }
}

#[test]
fn what_never_meets_or_is_settled_by_a_later_entry_is_taken() {
    for (a, b) in [
        ("/$/inet/127.0.0.1", "/$/inet/127.0.0.2"),
        ("/$/inet/a{x}", "/$/inet/b{x}"),
        ("/$/inet/{x}a", "/$/inet/{x}b"),
        ("/$/inet/*/80", "/$/inet/a/81"),
    ] {
        assert!(fit(&format!("- {{prefix: '{a}', {TLS}}}\n- {{prefix: '{b}', protocol: header}}\n")));
    }
    assert!(fit(&format!("- {TLS}\n- {{prefix: /$/inet, protocol: framed, tls: none}}\n")));
    assert!(fit(&format!(
        "- {TLS}\n- {{prefix: /$/inet, protocol: framed, tls: {{disableValidation: true}}}}\n"
    )));
    assert!(fit(&format!("- protocol: framed\n- {{prefix: /$/inet, protocol: thriftmux, {TLS}}}\n")));
    assert!(fit(&format!(
        "- protocol: framed\n- {{prefix: /$/inet, {TLS}}}\n- {{prefix: '/$/inet/{{x}}', protocol: thriftmux}}\n"
    )));
    assert!(!fit(&format!(
        "- protocol: framed\n- {{prefix: /$/inet, {TLS}}}\n- {{prefix: /$/inet/a, protocol: thriftmux}}\n"
    )));
    assert!(fit("- compression: desired\n- {prefix: /$/inet, protocol: framed, compression: off}\n"));
}
