//! `dns`, and lists of DNS servers.

use super::{Fields, Shape};
use crate::names::namers::dns::Params;
use std::net::{IpAddr, SocketAddr};

/// Where DNS servers listen.
const PORT: u16 = 53;

/// Most servers in a list.
const MAX_SERVERS: usize = 16;

const DNS: Shape = Shape {
    what: "`dns`",
    keys: &["servers", "timeoutMs"],
    strangers: &[
        ("nameservers", "write `servers: [\"127.0.0.1:5353\"]`"),
        (
            "ttl",
            "records say themselves how long they hold; hosts are asked for again after 5 s at the latest",
        ),
    ],
};

/// Who is asked about host names.
pub(super) fn dns(root: &Fields<'_>) -> Params {
    let Some(fields) = root.section("dns", &DNS) else { return Params::default() };
    let mut params = Params::default();
    params.servers = servers(&fields, "servers");
    params.timeout = fields.millis("timeoutMs").unwrap_or(params.timeout);
    params
}

/// A list of addresses, each with a port or not.
pub(super) fn servers(fields: &Fields<'_>, key: &str) -> Vec<SocketAddr> {
    let help = "write numeric addresses, for example `[\"10.0.0.2\", \"127.0.0.1:5353\"]`";
    let words = fields.words(key, help).unwrap_or_default();
    if words.len() > MAX_SERVERS {
        fields.wrong(key, format!("`{key}` has more than {MAX_SERVERS} servers"), "a few of them suffice");
    }
    let mut servers = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let address = word.parse().or_else(|_| word.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, PORT)));
        match address {
            Ok(address) if address.port() > 0 => servers.push(address),
            _ => fields.wrong_item(key, index, format!("`{word}` is no address of a DNS server"), help),
        }
    }
    servers
}
