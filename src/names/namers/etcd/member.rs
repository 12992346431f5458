//! The value of one key: JSON with `host`, `port` and perhaps `weight`, or `host:port`.

use crate::names::source::Member;
use serde::Deserialize;
use std::net::Ipv6Addr;

#[derive(Deserialize)]
struct Json {
    host: String,
    port: u16,
    weight: Option<f64>,
}

/// Reads it; further keys of the JSON are somebody else's. Nothing, if it says no member.
pub(super) fn parse(value: &[u8]) -> Option<Member> {
    let text = std::str::from_utf8(value).ok()?.trim();
    let (host, port, weight) = if text.starts_with('{') {
        let Json { host, port, weight } = serde_json::from_str(text).ok()?;
        (host, port, weight.unwrap_or(1.0))
    } else {
        let (host, port) = text.rsplit_once(':')?;
        let digits = port.bytes().all(|byte| byte.is_ascii_digit());
        (host.to_owned(), port.parse().ok().filter(|_| digits)?, 1.0)
    };
    let host = bare(&host);
    let good = port != 0 && is_host(host) && weight.is_finite() && weight >= 0.0;
    good.then(|| Member { host: host.into(), port, weight })
}

/// `[::1]` is `::1`, as people know it from URLs.
fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

fn is_host(host: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    host.parse::<Ipv6Addr>().is_ok() || (!host.is_empty() && host.bytes().all(plain))
}
