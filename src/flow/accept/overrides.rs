//! Who may lay entries of its own over the table, and over which names.
//!
//! A call's dtab decides where the call and the whole tree of calls below it go. Where a listener has rules, the first one that
//! is about the caller says which prefixes it may override; whoever no rule is about may override nothing. A call with an entry
//! that is not allowed is refused as a whole: half of an override would be another one (naming spec, section 17.2).

use muxgate_rpc::events::Events;
use muxgate_rpc::{Failure, Flags, Request, Response, Serve, Status, Why};
use muxgate_wire::name::{Dentry, Dtab, Path, Prefix};
use std::fmt::Write;
use std::sync::Arc;

/// Bytes of an entry, and of a caller's name, that a refusal quotes.
const MAX_QUOTED: usize = 120;

/// A text in which `*` stands for any characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob(pub String);

impl Glob {
    /// Whether the whole text matches.
    pub fn matches(&self, text: &str) -> bool {
        let mut parts = self.0.split('*');
        let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else { return false };
        let mut parts = parts.peekable();
        if parts.peek().is_none() {
            return rest.is_empty();
        }
        while let Some(part) = parts.next() {
            if parts.peek().is_none() {
                return rest.ends_with(part);
            }
            let Some(at) = rest.find(part) else { return false };
            rest = rest.get(at + part.len()..).unwrap_or_default();
        }
        true
    }
}

/// What some callers may override.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The subject, or one of the names, of the certificate that the caller shows; none: whoever it is.
    pub identity: Option<Glob>,
    /// The client id of the call; none: whatever it is. It is a claim, that nobody has checked.
    pub client_id: Option<Glob>,
    /// An entry's prefix must be one of these, or lie below it. `*` stands for one element.
    pub prefixes: Vec<Prefix>,
    /// Whether entries may lead to, or change, what lies below `/$` and `/#`: any address that the gateway can reach.
    pub system: bool,
}

impl Rule {
    fn is_about(&self, request: &Request) -> bool {
        let is_who = |glob: &Glob| {
            request.local.identity.as_ref().is_some_and(|identity| {
                glob.matches(&identity.subject) || identity.names.iter().any(|name| glob.matches(name))
            })
        };
        let is_client = |glob: &Glob| {
            let id = request.ctx.client_id.as_deref().and_then(|id| std::str::from_utf8(id).ok());
            id.is_some_and(|id| glob.matches(id))
        };
        self.identity.as_ref().is_none_or(is_who) && self.client_id.as_ref().is_none_or(is_client)
    }

    /// Why it does not allow an entry.
    fn forbids(&self, entry: &Dentry) -> Option<&'static str> {
        if !self.prefixes.iter().any(|allowed| covers(allowed, &entry.prefix)) {
            return Some("that prefix is not among those that it allows");
        }
        if self.system {
            return None;
        }
        // `/` and a `*` in front match system paths, too.
        if is_system(entry.prefix.as_str()) || entry.prefix.as_str().starts_with("/*") {
            return Some("it does not allow to change what lies below /$ and /#");
        }
        // A leaf `/` becomes whatever the name goes on with.
        let leaves = entry.dst.leaves();
        let leads = leaves.into_iter().any(|leaf: &Path| is_system(leaf.as_str()));
        leads.then_some("it does not allow to lead below /$ and /#")
    }
}

/// Whether a path is `/`, or its first element is `$` or `#`.
fn is_system(text: &str) -> bool {
    matches!(text.split('/').nth(1), None | Some("" | "$" | "#"))
}

/// Whether every path that `inner` matches is one that `outer` matches.
fn covers(outer: &Prefix, inner: &Prefix) -> bool {
    let elements = |prefix: &Prefix| {
        let text = prefix.as_str().to_owned();
        text.split('/').skip(1).filter(|element| !element.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    let (outer, inner) = (elements(outer), elements(inner));
    outer.len() <= inner.len() && outer.iter().zip(&inner).all(|(o, i)| o == "*" || o == i)
}

/// The rules of a listener, tried in order.
pub type Overrides = Vec<Rule>;

/// Refuses calls whose dtab is not allowed. It stands behind the span, so that these are counted and seen as calls.
pub struct Lawful<S> {
    inner: S,
    rules: Option<Overrides>,
    events: Arc<dyn Events>,
}

impl<S> Lawful<S> {
    /// Stands before `inner`. Without rules, every dtab is allowed.
    pub fn new(rules: Option<Overrides>, events: Arc<dyn Events>, inner: S) -> Self {
        Self { inner, rules, events }
    }

    fn check(&self, rules: &[Rule], request: &Request) -> Result<(), Failure> {
        let dtab = Dtab::from_pairs(&request.dtab)
            .map_err(|error| Failure::new(Why::BadRequest, format!("dtab of the call: {error}")))?;
        let found = rules.iter().enumerate().find(|(_, rule)| rule.is_about(request));
        let refused = |entry: &Dentry| match found {
            None => Some((entry.clone(), None, "no rule of this listener is about this caller")),
            Some((at, rule)) => rule.forbids(entry).map(|why| (entry.clone(), Some(at + 1), why)),
        };
        let Some((entry, rule, why)) = dtab.entries().iter().find_map(refused) else { return Ok(()) };
        self.events.limited("override");
        let mut text = format!("the call may not bring the entry {}", short(&entry.to_string()));
        if let Some(rule) = rule {
            // Writing to a string cannot fail.
            let _ = write!(text, " by rule {rule} of `dtabOverrides`");
        }
        let _ = write!(text, ": {why} ({})", caller(request));
        Err(Failure::new(Why::BadRequest, text).with(Flags::REJECTED))
    }
}

fn caller(request: &Request) -> String {
    let id = match &request.ctx.client_id {
        Some(id) => format!("client id {}", short(&String::from_utf8_lossy(id))),
        None => "no client id".to_owned(),
    };
    match &request.local.identity {
        Some(identity) => format!("{id}, certificate of {}", short(&identity.to_string())),
        None => format!("{id}, no certificate"),
    }
}

fn short(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_QUOTED)).unwrap_or_default()
}

impl<S: Serve> Serve for Lawful<S> {
    async fn call(&self, request: &mut Request) -> Result<Response, Failure> {
        if let Some(rules) = &self.rules
            && !request.dtab.is_empty()
        {
            self.check(rules, request)?;
        }
        self.inner.call(request).await
    }

    fn status(&self) -> Status {
        self.inner.status()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(prefixes: &[&str]) -> Rule {
        let prefixes = prefixes.iter().map(|text| Prefix::parse(text).unwrap()).collect();
        Rule { identity: None, client_id: None, prefixes, system: false }
    }

    fn allowed(rule: &Rule, dtab: &str) -> bool {
        Dtab::parse(dtab).unwrap().entries().iter().all(|entry| rule.forbids(entry).is_none())
    }

    #[test]
    fn globs_match_whole_texts() {
        for (glob, yes, no) in [
            ("web", "web", "webs"),
            ("web*", "web-1", "a-web"),
            ("*.example.org", "a.b.example.org", "example.org"),
            ("a*b*c", "a-b-b-c", "a-c-b"),
            ("*", "", "\u{0}never"),
        ] {
            assert!(Glob(glob.into()).matches(yes), "{glob} {yes}");
            assert!(glob == "*" || !Glob(glob.into()).matches(no), "{glob} {no}");
        }
        assert!(!Glob("ab*ba".into()).matches("aba"));
    }

    #[test]
    fn an_entry_must_lie_below_a_prefix_of_its_rule() {
        let users = rule(&["/svc/users", "/zone/*/web"]);
        assert!(allowed(&users, "/svc/users => /svc/users-next; /svc/users/x => /y; /zone/eu/web => /y"));
        assert!(allowed(&users, "/zone/*/web => /y"));
        for wrong in ["/svc => /y", "/svc/* => /y", "/svc/orders => /y", "/ => /y", "/*/users => /y"] {
            assert!(!allowed(&users, wrong), "{wrong}");
        }
    }

    #[test]
    fn system_paths_need_a_word_of_their_own() {
        let mut all = rule(&["/"]);
        let wrong = [
            "/svc => /$/inet/10.0.0.1/22",
            "/svc => /a | 2 * /#/io.l5d.fs/secret & /b",
            "/# => /a",
            "/*/io.l5d.fs => /a",
            "/ => /a",
            "/svc => /",
        ];
        for wrong in wrong {
            assert!(!allowed(&all, wrong), "{wrong}");
        }
        assert!(allowed(&all, "/svc => /a; /host/x => ! | $ | ~"));
        all.system = true;
        assert!(wrong.iter().all(|dtab| allowed(&all, dtab)));
    }
}
