//! A service that is asked over HTTP: where it is, how it is encrypted, who we are to it. Shared by all that ask one.

use super::{Fields, Shape, tls};
use crate::outside::http::{Credentials, Params, Tls};
use http::header::{HeaderName, HeaderValue};

/// TLS to such a service.
const TLS: Shape = Shape {
    what: "`tls` of a service that is asked",
    keys: &["commonName", "trustCertsBundle", "disableValidation", "clientAuth", "protocols"],
    strangers: &[("trustCerts", "write `trustCertsBundle`, one file with all the authorities")],
};

/// The keys `host`, `port` and `tls` of a shape.
pub(super) fn of_host_and_port(fields: &Fields<'_>, host: &str, port: u16) -> Option<Params> {
    let host = if fields.get("host").is_some() { fields.word("host")? } else { host };
    let port = if fields.get("port").is_some() {
        fields.count("port", 1..=u64::from(u16::MAX), "ports begin at 1")?
    } else {
        u64::from(port)
    };
    let bracketed =
        if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host.into() };
    let tls = encrypted(fields, host)?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    Some(Params { base: format!("{scheme}://{bracketed}:{port}"), tls, credentials: Credentials::None })
}

/// Addresses of members of one cluster.
const MAX_ADDRESSES: usize = 16;

/// The keys `host`, `port`, `addresses` and `tls` of a shape whose services are members of one cluster: one address, or a list
/// of `host:port`.
pub(super) fn of_addresses(fields: &Fields<'_>, host: &str, port: u16) -> Option<Vec<Params>> {
    if fields.get("addresses").is_none() {
        return Some(vec![of_host_and_port(fields, host, port)?]);
    }
    let help = format!("for example `addresses: [\"one.example.org:{port}\", \"two.example.org:{port}\"]`");
    for other in ["host", "port"].iter().filter(|key| fields.get(key).is_some()) {
        fields.wrong(other, format!("`addresses` stands in place of `{other}`"), "write one or the other");
    }
    let addresses = fields.words("addresses", &help)?;
    if addresses.is_empty() || addresses.len() > MAX_ADDRESSES {
        let message = format!("`addresses` has {} of them", addresses.len());
        fields.wrong("addresses", message, format!("from one to {MAX_ADDRESSES}; {help}"));
        return None;
    }
    let mut nodes = Vec::new();
    for (at, address) in addresses.iter().enumerate() {
        let Some(host) = host_of(address) else {
            fields.wrong_item("addresses", at, format!("`{address}` is no host and port"), &help);
            continue;
        };
        let tls = encrypted(fields, host)?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        nodes.push(Params { base: format!("{scheme}://{address}"), tls, credentials: Credentials::None });
    }
    (nodes.len() == addresses.len()).then_some(nodes)
}

/// The host of `host:port` or `[host]:port`.
fn host_of(address: &str) -> Option<&str> {
    let authority: http::uri::Authority = address.parse().ok()?;
    let port = authority.port_u16().filter(|port| *port != 0)?;
    let host = address.strip_suffix(&format!(":{port}"))?;
    (!host.is_empty() && !host.contains('@')).then(|| host.trim_matches(['[', ']']))
}

/// `tls`: the inner none means that there is none. The service's name is its host, if no `commonName` is given.
pub(super) fn encrypted(fields: &Fields<'_>, host: &str) -> Option<Option<Tls>> {
    if fields.get("tls").is_none() {
        return Some(None);
    }
    let help = format!("write lines with the keys {}", TLS.keys.join(", "));
    let tls = fields.section_or_word("tls", &TLS, &help)?;
    let name = if tls.get("commonName").is_some() { tls.word("commonName")? } else { host };
    Some(Some(Tls { files: tls::client_files(&tls, tls::validation(&tls))?, name: name.to_owned() }))
}

/// A text that is sent as the header `name` with each request.
pub(super) fn header(fields: &Fields<'_>, key: &str, name: &'static str) -> Option<Credentials> {
    if fields.get(key).is_none() {
        return Some(Credentials::None);
    }
    match HeaderValue::try_from(fields.word(key)?) {
        Ok(mut value) => {
            value.set_sensitive(true);
            Some(Credentials::Header(HeaderName::from_static(name), value))
        }
        Err(_) => {
            fields.wrong(key, format!("`{key}` holds characters that no header can hold"), "");
            None
        }
    }
}

/// `tokenFile`: a bearer token, which is read again for each request.
pub(super) fn token_file(fields: &Fields<'_>) -> Option<Credentials> {
    if fields.get("tokenFile").is_none() {
        return Some(Credentials::None);
    }
    Some(Credentials::TokenFile(fields.word("tokenFile")?.into()))
}
