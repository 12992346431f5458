//! `/$/inet/<host>/<port>`, `/$/inet/<port>` for this host, and their kin `fixedinet` (asked once) and
//! `io.buoyant.rinet` (port first). Bound before DNS has answered, so an unknown host never leads to a fallback.

use super::dns::Hosts;
use super::system_prefix;
use crate::names::addr::Bound;
use crate::names::namer::{Answer, Lookup, Namer};
use muxgate_wire::name::Path;
use std::sync::Arc;

/// What stands for this host when a name gives only a port.
const THIS_HOST: &str = "127.0.0.1";

#[derive(Clone, Copy, PartialEq)]
enum Form {
    Inet,
    Fixed,
    PortFirst,
}

/// One of the address namers.
pub struct Inet {
    prefix: Path,
    form: Form,
    hosts: Arc<Hosts>,
}

/// All of them.
pub fn all(hosts: &Arc<Hosts>) -> impl Iterator<Item = Inet> {
    let forms = [("inet", Form::Inet), ("fixedinet", Form::Fixed), ("io.buoyant.rinet", Form::PortFirst)];
    forms.map(|(name, form)| Inet { prefix: system_prefix(name), form, hosts: hosts.clone() }).into_iter()
}

impl Namer for Inet {
    fn prefix(&self) -> &Path {
        &self.prefix
    }

    fn lookup(&self, path: &Path) -> Lookup {
        Lookup::Fixed(self.answer(path))
    }
}

impl Inet {
    /// The name is answered for good; it is the addresses that change.
    fn answer(&self, path: &Path) -> Answer {
        let rest = path.skip(self.prefix.len());
        let mut elements = rest.raw_elements();
        let (first, second) = (elements.next(), elements.next());
        let (first, second) = (text(first.as_deref()), text(second.as_deref()));
        let (host, port, used) = match (self.form, first, second) {
            (Form::PortFirst, Some(port), Some(host)) => match self::port(port) {
                Some(port) => (host, port, 2),
                None => return Answer::NEG,
            },
            (Form::PortFirst, _, _) => return Answer::NEG,
            // Two numbers are host and port, not port and rest.
            (_, Some(first), second) => match (second.and_then(self::port), self::port(first)) {
                (Some(port), _) => (first, port, 2),
                (None, Some(port)) => (THIS_HOST, port, 1),
                (None, None) => return self.no_address(path),
            },
            _ => return self.no_address(path),
        };
        Answer::bound(Bound::new(
            path.take(self.prefix.len() + used),
            rest.skip(used),
            self.hosts.follow(host, port, self.form == Form::Fixed),
        ))
    }

    fn no_address(&self, path: &Path) -> Answer {
        Answer::Failed(format!("{path} is no address: want {0}/<host>/<port> or {0}/<port>", self.prefix))
    }
}

fn text(element: Option<&[u8]>) -> Option<&str> {
    std::str::from_utf8(element?).ok()
}

fn port(text: &str) -> Option<u16> {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|port| digits && *port > 0)
}
