//! The content of one file: a line for each endpoint, `host port` or `host port * weight`.

use crate::names::source::Member;
use std::net::Ipv6Addr;

/// Largest file that is read, in bytes (as in linkerd).
pub const MAX_FILE: usize = 500_000;

/// Reads a file's content: the set of its lines. `#` begins a comment anywhere, blank lines are skipped.
///
/// # Errors
/// One bad line fails the whole file; the text names the line.
pub fn parse(content: &[u8]) -> Result<Vec<Member>, String> {
    if content.len() > MAX_FILE {
        return Err(format!("more than {MAX_FILE} bytes"));
    }
    let text = std::str::from_utf8(content).map_err(|_| "not UTF-8".to_string())?;
    // Some editors begin a file with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines: Vec<Member> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<_> = line.split_whitespace().collect();
        if words.is_empty() {
            continue;
        }
        let want =
            || format!("line {}: want `host port` or `host port * weight`, got {:?}", at + 1, line.trim());
        lines.push(endpoint(&words).ok_or_else(want)?);
    }
    lines.sort_by(|a, b| (&a.host, a.port).cmp(&(&b.host, b.port)).then(a.weight.total_cmp(&b.weight)));
    lines.dedup();
    Ok(lines)
}

fn endpoint(words: &[&str]) -> Option<Member> {
    let (host, port, weight) = match words {
        [host, port] => (host, port, 1.0),
        [host, port, "*", weight] => (host, port, number(weight)?),
        _ => return None,
    };
    let digits = port.bytes().all(|b| b.is_ascii_digit());
    let port = port.parse().ok().filter(|port| digits && *port > 0)?;
    Some(Member { host: without_brackets(host).into(), port, weight })
}

/// `[::1]` is `::1`, as people know it from URLs.
fn without_brackets(host: &str) -> &str {
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    inner.filter(|inner| inner.parse::<Ipv6Addr>().is_ok()).unwrap_or(host)
}

/// A plain decimal number: neither sign nor exponent.
fn number(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    text.parse().ok().filter(|number: &f64| plain && number.is_finite())
}
