use super::*;
use crate::names::{Addr, Answer, Bound, EndpointAddr, Lookup};
use muxgate_wire::name::NameTree;

/// Names below `/#/t`: `a` and `b` have addresses, others are what they are called.
struct Told(Path, watch::Sender<Answer>);

impl Namer for Told {
    fn prefix(&self) -> &Path {
        &self.0
    }

    fn lookup(&self, path: &Path) -> Lookup {
        let weighted = |port: u16, weight| EndpointAddr { addr: ([127, 0, 0, 1], port).into(), weight };
        let endpoints = match path.elements().nth(2) {
            Some("a") => vec![weighted(1, 1.0)],
            Some("b") => vec![weighted(2, 1.0), weighted(3, 2.5)],
            Some("bare") => vec![],
            Some("empty") => return Lookup::Fixed(Answer::Ok(NameTree::Empty)),
            Some("failed") => return Lookup::Fixed(Answer::Failed("the source is away".into())),
            Some("pending") => return Lookup::Live(self.1.subscribe()),
            _ => return Lookup::Fixed(Answer::NEG),
        };
        let addr = Addr::bound(endpoints).fixed();
        Lookup::Fixed(Answer::bound(Bound::new(path.take(3), path.skip(3), addr)))
    }
}

async fn shown(dtab: &str, local: &str) -> (String, bool) {
    let prefix = Path::parse("/#/t").unwrap_or_default();
    let mut namers = system(&Env::of(&dns::Params::default()));
    namers.push(Arc::new(Told(prefix, watch::Sender::new(Answer::Pending))));
    let table = |text: &str| Dtab::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let path = Path::parse("/svc/x").unwrap_or_default();
    let explained = explained(namers, table(dtab), &path, &table(local), Duration::ZERO).await;
    told("/svc/x", &explained, false)
}

#[tokio::test(start_paused = true)]
async fn trees_are_shown_with_what_is_used() {
    for (dtab, local, leads, text) in CASES {
        let (said, found) = shown(dtab, local).await;
        assert_eq!(said.trim(), text.trim(), "{dtab}\n{said}");
        assert_eq!(found, *leads, "{dtab}");
    }
}

#[test]
fn json_of_others_does_not_speak_to_the_terminal() {
    let tree = json!({"type": "exception", "path": "/x", "message": "\u{1b}[2J", "used": true});
    assert_eq!(outline::text(&tree).0.lines().next(), Some("/x: failed: \u{fffd}[2J   <- used"));
    assert!(!outline::text(&json!(1)).1);
}

#[test]
fn age_and_outage_are_shown() {
    let addr = json!({"type": "bound", "addrs": [{"ip": "::1", "port": 1}]});
    let source =
        json!({"state": "outage", "ageMs": 61_200, "outageMs": 1000, "error": "refused", "fromDisk": true});
    let bound = json!({"id": "/#/t/a", "path": "/", "addr": addr, "source": source});
    let (said, leads) =
        outline::text(&json!({"type": "leaf", "path": "/#/t/a", "used": true, "bound": bound}));
    let line = "/#/t/a, 1 address, heard 61.2 s ago, kept from an earlier run, its source is away for 1.0 s: refused";
    assert_eq!(said, format!("/#/t/a: {line}   <- used\n  [::1]:1\nleads to {line}\n"));
    assert!(leads);
}

/// Table, entries over it, whether it leads to an address, and what is shown.
const CASES: &[(&str, &str, bool, &str)] = &[
    (
        "/svc => /#/t/a | /b ; /svc/x => /gone",
        "",
        true,
        "
/svc/x: the first of these that is not negative
  1. /gone by /svc/x=>/gone: no such name
  2. /svc/x by /svc=>/#/t/a | /b: the first of these that is not negative
    1. /#/t/a/x: /#/t/a + /x, 1 address   <- used
      127.0.0.1:1
    2. /b/x: no such name
leads to /#/t/a + /x, 1 address
",
    ),
    (
        "/svc/x => /#/t/b",
        "/svc/x => 3 * /#/t/a & 1 * /#/t/b & /gone & 0 * /#/t/a/rest",
        true,
        "
/svc/x: the first of these that is not negative
  1. /svc/x by /svc/x=>3*/#/t/a & /#/t/b & /gone & 0*/#/t/a/rest: shared by
    [weight 3, 75.0 %] /#/t/a: /#/t/a, 1 address   <- used
      127.0.0.1:1
    [weight 1, 25.0 %] /#/t/b: /#/t/b, 2 addresses   <- used
      127.0.0.1:2
      127.0.0.1:3, weight 2.5
    [weight 1] /gone: no such name
    [weight 0, 0.0 %] /#/t/a/rest: /#/t/a + /rest, 1 address   <- used
      127.0.0.1:1
  2. /#/t/b by /svc/x=>/#/t/b: /#/t/b, 2 addresses
    127.0.0.1:2
    127.0.0.1:3, weight 2.5
leads to /#/t/a, 1 address, and /#/t/b, 2 addresses, and /#/t/a + /rest, 1 address
",
    ),
    (
        "/svc => /a ; /a => /svc",
        "",
        false,
        "
/svc/x has no tree that ends: /svc: too deep, more than 100 lookups on one chain
cannot resolve /svc/x: /svc/x: too deep, more than 100 lookups on one chain; tried /svc/x by /svc=>/a, /a/x by /a=>/svc, /svc/x: too deep, more than 100 lookups on one chain, and 98 more like these
",
    ),
    (
        "/svc => /a | /#/t/b ; /svc/x => /#/t/a ; /a => /a/a",
        "",
        true,
        "
/svc/x has no tree that ends: /a: too deep, more than 100 lookups on one chain
/svc/x is /#/t/a; tried /svc/x by /svc/x=>/#/t/a, /#/t/a: found /#/t/a
",
    ),
    (
        "/svc => /$/nobody",
        "",
        false,
        "
/svc/x
  /$/nobody/x by /svc=>/$/nobody: failed: no such system namer   <- used
leads nowhere: failed: no such system namer
",
    ),
    (
        "/svc/* => /#/t/a",
        "",
        true,
        "
/svc/x
  /#/t/a by /svc/*=>/#/t/a: /#/t/a, 1 address   <- used
    127.0.0.1:1
leads to /#/t/a, 1 address
",
    ),
    (
        "/svc => /#/t/bare | /#/t/a",
        "",
        false,
        "
/svc/x: the first of these that is not negative
  1. /#/t/bare/x by /svc=>/#/t/bare | /#/t/a: /#/t/bare + /x, no addresses   <- used
  2. /#/t/a/x: /#/t/a + /x, 1 address
    127.0.0.1:1
leads nowhere: /#/t/bare + /x, no addresses
",
    ),
    (
        "/svc => /#/t/empty | /#/t/a",
        "",
        false,
        "
/svc/x: the first of these that is not negative
  1. /#/t/empty/x by /svc=>/#/t/empty | /#/t/a: $, a name without members   <- used
  2. /#/t/a/x: /#/t/a + /x, 1 address
    127.0.0.1:1
leads nowhere: $, a name without members
",
    ),
    (
        "/svc => /#/t/failed | /#/t/a",
        "",
        false,
        "
/svc/x: the first of these that is not negative
  1. /#/t/failed/x by /svc=>/#/t/failed | /#/t/a: failed: the source is away   <- used
  2. /#/t/a/x: /#/t/a + /x, 1 address
    127.0.0.1:1
leads nowhere: failed: the source is away
",
    ),
    (
        "/svc => /#/t/pending | !",
        "",
        false,
        "
/svc/x: the first of these that is not negative
  1. /#/t/pending/x by /svc=>/#/t/pending | !: not known yet   <- used
  2. /svc/x: closed by !
leads nowhere: not known yet
",
    ),
    (
        "",
        "",
        false,
        "
/svc/x: no such name
leads nowhere: no such name
",
    ),
];
