//! An ensemble of ZooKeeper. Shared by all that ask one.

use super::{Fields, Shape};
use crate::outside::zk::{Auth, MAX_HOSTS, PORT, Params};
use std::net::Ipv6Addr;
use std::time::Duration;

/// One of its servers.
const HOST: Shape = Shape { what: "a server of ZooKeeper", keys: &["host", "port"], strangers: &[] };

/// Who we are.
const AUTH: Shape = Shape { what: "`authInfo`", keys: &["scheme", "auth"], strangers: &[] };

/// Sessions live this long at least, in ms: less, and a pause of any kind ends them.
const SHORTEST_SESSION: u64 = 1000;

/// And this long at most: a dead member is found for as long.
const LONGEST_SESSION: u64 = 600_000;

/// The keys `zkAddrs`, `sessionTimeoutMs` and `authInfo` of a shape.
pub(super) fn ensemble(fields: &Fields<'_>) -> Option<Params> {
    let example = "for example `zkAddrs: [{host: zk1.example.org, port: 2181}]`";
    fields.missing("zkAddrs", example);
    let (session, auth) = (session(fields), auth(fields));
    let items = fields.list("zkAddrs", &HOST)?;
    if items.is_empty() || items.len() > MAX_HOSTS {
        let help = format!("from one to {MAX_HOSTS}; {example}");
        fields.wrong("zkAddrs", format!("`zkAddrs` has {} servers", items.len()), help);
        return None;
    }
    let hosts: Vec<_> = items.iter().filter_map(host).collect();
    let mut params = Params::new((hosts.len() == items.len()).then_some(hosts)?);
    params.session = session.unwrap_or(params.session);
    params.auth = auth?;
    Some(params)
}

fn host(fields: &Fields<'_>) -> Option<(String, u16)> {
    fields.missing("host", "for example `{host: zk1.example.org, port: 2181}`");
    let port = match fields.get("port") {
        None => Some(u64::from(PORT)),
        Some(_) => fields.count("port", 1..=u64::from(u16::MAX), "ports begin at 1"),
    };
    let host = fields.word("host")?;
    let odd = |c: char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '-' | '_');
    if let Some(at) = host.find(odd).filter(|_| host.parse::<Ipv6Addr>().is_err()) {
        let help = "the port is a key of its own, and so is every further server";
        fields.in_text("host", host, at, format!("`{host}` is no host"), help);
        return None;
    }
    Some((host.to_owned(), port? as u16))
}

fn session(fields: &Fields<'_>) -> Option<Duration> {
    let millis = fields.count("sessionTimeoutMs", SHORTEST_SESSION..=LONGEST_SESSION, "")?;
    Some(Duration::from_millis(millis))
}

/// The inner none means that there is none.
fn auth(fields: &Fields<'_>) -> Option<Option<Auth>> {
    if fields.get("authInfo").is_none() {
        return Some(None);
    }
    let example = "for example `authInfo: {scheme: digest, auth: \"user:password\"}`";
    let auth = fields.section_or_word("authInfo", &AUTH, example)?;
    auth.missing("scheme", example);
    auth.missing("auth", example);
    Some(Some(Auth { scheme: auth.word("scheme")?.to_owned(), id: auth.word("auth")?.to_owned() }))
}
