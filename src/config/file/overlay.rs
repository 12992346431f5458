//! Entries of `clients` laid over each other: what each says alone may make no sense together.
//!
//! Two settings can only meet if some bound id is matched by both entries. Such an id is made up, with text that no entry
//! has wherever any text would do: no id that both match is matched by fewer other entries. What holds for it is therefore
//! what holds wherever no further entry was written for it.

use super::Fields;
use super::clients::TRANSPORTS;
use crate::config::plan::{ClientPart, Rule};
use crate::flow::dispatch::Upstream;
use muxgate_wire::mux::handshake::{CompressionLevel, TlsLevel};
use muxgate_wire::name::Path;

/// Elements that every bound id has: `#`, the namer, and a name.
const SHORTEST: usize = 3;

/// A setting that thriftmux alone has.
struct Setting {
    /// Whether an entry says something about it, and if so, whether it is switched on.
    says: fn(&ClientPart) -> Option<bool>,
    /// What messages call it.
    name: &'static str,
    /// Its key, and the key below that.
    place: (&'static str, &'static str),
    /// Why only thriftmux has it.
    why: &'static str,
    /// How an entry does without it.
    off: &'static str,
}

const SETTINGS: [Setting; 2] = [
    Setting {
        says: |part| {
            let tls = part.tls.as_ref()?.as_ref();
            Some(tls.is_some_and(|tls| tls.opportunistic != TlsLevel::Off))
        },
        name: "opportunistic",
        place: ("tls", "opportunistic"),
        why: "only thriftmux can begin in clear and go on encrypted",
        off: "give this entry a `tls` without `opportunistic` (which encrypts from the first byte), or `tls: none`",
    },
    Setting {
        says: |part| Some(part.compression? != CompressionLevel::Off),
        name: "compression",
        place: ("compression", ""),
        why: "compression is agreed upon in Mux's handshake",
        off: "write `compression: off` here",
    },
];

/// Notes entries that cannot be laid over each other. `places` are those of `rules`, in the order of the file.
pub(super) fn check(places: &[&Fields<'_>], rules: &[Rule<ClientPart>]) {
    let texts: Vec<_> = places.iter().map(|fields| text(fields)).collect();
    let fresh = fresh(&texts);
    for setting in &SETTINGS {
        let on = |rule: &Rule<ClientPart>| (setting.says)(&rule.part) == Some(true);
        let other = |rule: &Rule<ClientPart>| rule.part.upstream.is_some_and(|it| it != Upstream::ThriftMux);
        for (first, _) in rules.iter().enumerate().filter(|(_, rule)| on(rule)) {
            // One mistake for each entry: mending it often mends the others.
            let clash = rules.iter().enumerate().find(|(second, rule)| {
                other(rule)
                    && *second != first
                    && common(texts.get(first), texts.get(*second), &fresh)
                        .is_some_and(|id| winners(rules, &id, setting) == (Some(first), Some(*second)))
            });
            if let (Some((second, rule)), Some(with)) = (clash, places.get(first))
                && let Some(without) = places.get(second)
            {
                note(setting, with, without, rule.part.upstream, first < second);
            }
        }
    }
}

/// The entries by which an id has the setting, and its protocol.
fn winners(rules: &[Rule<ClientPart>], id: &Path, setting: &Setting) -> (Option<usize>, Option<usize>) {
    let last = |says: &dyn Fn(&ClientPart) -> bool| {
        rules.iter().rposition(|rule| says(&rule.part) && rule.matches(id))
    };
    (last(&|part| (setting.says)(part).is_some()), last(&|part| part.upstream.is_some()))
}

/// Notes the clash at the later entry, which is where the earlier one was not thought of.
fn note(setting: &Setting, with: &Fields<'_>, without: &Fields<'_>, upstream: Option<Upstream>, later: bool) {
    let word = TRANSPORTS.iter().find(|(_, known)| Some(*known) == upstream).map_or("", |(word, _)| word);
    let Setting { name, place: (key, inner), why, off, .. } = setting;
    let entry =
        |fields: &Fields<'_>| format!("the entry of line {}, `prefix: {}`", fields.line(), text(fields));
    if later {
        let message = format!("`protocol: {word}` cannot be laid over `{name}` of {}", entry(with));
        without.wrong("protocol", message, format!("{why}: {off}"));
    } else {
        let message = format!("`{name}` cannot be laid over `protocol: {word}` of {}", entry(without));
        let help = format!("{why}: add `protocol: thriftmux` here, or leave `{name}` out");
        with.wrong_in(key, inner, message, help);
    }
}

fn text<'a>(fields: &Fields<'a>) -> &'a str {
    fields.get("prefix").and_then(|_| fields.text("prefix")).unwrap_or("/")
}

/// A text that stands in no prefix.
fn fresh(texts: &[&str]) -> String {
    let mut fresh = String::from("x");
    while texts.iter().any(|text| text.contains(&fresh)) {
        fresh.push('x');
    }
    fresh
}

/// An id that both prefixes match, and that no entry need match for any other reason.
fn common(a: Option<&&str>, b: Option<&&str>, fresh: &str) -> Option<Path> {
    let (mut a, mut b) = (elements(a?), elements(b?));
    let mut id = String::new();
    for length in 0.. {
        let element = match (a.next(), b.next()) {
            (None, None) if length >= SHORTEST => break,
            (a, b) => meet(a.unwrap_or("*"), b.unwrap_or("*"), fresh)?,
        };
        id.push('/');
        id.push_str(&element);
    }
    Path::parse(&id).ok()
}

fn elements(text: &str) -> impl Iterator<Item = &str> {
    text.split('/').filter(|element| !element.is_empty())
}

/// An element that both elements match. Those with captures are told by how they begin and end, and what stands between
/// is put there; whether they really match is asked of the entries themselves.
fn meet(a: &str, b: &str, fresh: &str) -> Option<String> {
    let (a, b) = match (a, b) {
        ("*", "*") => return Some(fresh.to_string()),
        ("*", only) | (only, "*") => (only, only),
        both => both,
    };
    match (a.contains('{'), b.contains('{')) {
        (false, false) => (a == b).then(|| a.to_string()),
        (true, false) => Some(b.to_string()),
        (false, true) => Some(a.to_string()),
        (true, true) => {
            let (lead_a, middle_a, tail_a) = pieces(a, fresh)?;
            let (lead_b, middle_b, tail_b) = pieces(b, fresh)?;
            let lead = longer(lead_a, lead_b, |long, short| long.starts_with(short))?;
            let tail = longer(tail_a, tail_b, |long, short| long.ends_with(short))?;
            Some(format!("{lead}{middle_a}{middle_b}{tail}"))
        }
    }
}

/// What stands before the captures of an element, the captures filled and all between them, and what stands behind.
fn pieces<'a>(element: &'a str, fresh: &str) -> Option<(&'a str, String, &'a str)> {
    let (lead, rest) = element.split_once('{')?;
    let (inside, tail) = rest.rsplit_once('}')?;
    let mut middle = fresh.to_string();
    for text in inside.split('}').skip(1) {
        middle.push_str(text.split('{').next().unwrap_or_default());
        middle.push_str(fresh);
    }
    Some((lead, middle, tail))
}

fn longer<'a>(a: &'a str, b: &'a str, fits: fn(&str, &str) -> bool) -> Option<&'a str> {
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    fits(long, short).then_some(long)
}
