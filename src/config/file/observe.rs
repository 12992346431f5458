//! `admin` and `telemetry`.

use super::{Fields, Shape};
use crate::config::plan::{Admin, Zipkin};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// linkerd's admin port.
const ADMIN_PORT: u16 = 9990;

/// linkerd's `shutdownGraceMs`.
const GRACE: Duration = Duration::from_secs(10);

/// Recent traces kept by default.
const RECENT_TRACES: usize = 200;

/// Most recent traces that can be kept: some 10 KB each.
const MAX_RECENT_TRACES: u64 = 10_000;

/// Where Zipkin takes spans in its version 2 format.
const SPANS_PATH: &str = "/api/v2/spans";

const ADMIN: Shape = Shape {
    what: "`admin`",
    keys: &["ip", "port", "shutdownGraceMs"],
    strangers: &[
        ("tls", "the admin server speaks plain HTTP: keep it on 127.0.0.1"),
        ("security", "the admin server has no rights to set: keep it on 127.0.0.1"),
        ("enabled", "write `admin: none` to switch it off"),
    ],
};

const TELEMETER: Shape = Shape {
    what: "an item of `telemetry`",
    keys: &["kind", "url", "sampleRate", "serviceName", "capacity"],
    strangers: &[
        ("host", "spans are sent over HTTP: write `url: http://HOST:9411`"),
        ("port", "spans are sent over HTTP: write `url: http://HOST:9411`"),
    ],
};

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Zipkin,
    Recent,
}

/// The admin server and the time a shutdown may take.
pub(super) fn admin(root: &Fields<'_>) -> (Option<Admin>, Duration) {
    let default = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), ADMIN_PORT);
    if root.is_none("admin") {
        return (None, GRACE);
    }
    let Some(fields) = root.section("admin", &ADMIN) else {
        return (Some(Admin { address: default }), GRACE);
    };
    let grace = fields.millis_or_zero("shutdownGraceMs").unwrap_or(GRACE);
    let port = fields.count("port", 0..=u16::MAX.into(), "").map_or(ADMIN_PORT, |port| port as u16);
    (Some(Admin { address: SocketAddr::new(ip(&fields), port) }), grace)
}

/// An `ip`, the loopback address by default.
pub(super) fn ip(fields: &Fields<'_>) -> IpAddr {
    let default = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let Some(text) = fields.text("ip") else { return default };
    text.parse().unwrap_or_else(|_| {
        let help = "write a numeric address: 127.0.0.1 for this host only, 0.0.0.0 for every interface";
        fields.wrong("ip", format!("`{text}` is no IP address"), help);
        default
    })
}

/// Where spans go, and how many recent traces are kept.
pub(super) fn telemetry(root: &Fields<'_>) -> (Option<Zipkin>, usize) {
    let (mut target, mut recent) = (None, RECENT_TRACES);
    let mut seen = Vec::new();
    for fields in root.list("telemetry", &TELEMETER).unwrap_or_default() {
        fields.missing("kind", "for example `kind: io.l5d.zipkin`");
        let kinds = [("io.l5d.zipkin", Kind::Zipkin), ("io.l5d.recentRequests", Kind::Recent)];
        let Some(kind) = fields.choice("kind", &kinds) else { continue };
        if seen.contains(&kind) {
            fields.wrong("kind", "this kind is there twice", "keep one of the two");
        }
        seen.push(kind);
        match kind {
            Kind::Zipkin => target = zipkin(&fields),
            Kind::Recent => {
                fields.stray(&["url", "sampleRate", "serviceName"], "io.l5d.recentRequests");
                let capacity =
                    fields.count("capacity", 1..=MAX_RECENT_TRACES, "leave the item out for the default");
                recent = capacity.map_or(RECENT_TRACES, |capacity| capacity as usize);
            }
        }
    }
    (target, recent)
}

fn zipkin(fields: &Fields<'_>) -> Option<Zipkin> {
    fields.stray(&["capacity"], "io.l5d.zipkin");
    fields.missing("url", "where Zipkin is: `url: http://127.0.0.1:9411`");
    let sample_rate = fields.ratio("sampleRate", 0.0..=1.0, "1.0 traces every call, 0.01 one of a hundred");
    let url = url(fields, fields.word("url")?)?;
    Some(Zipkin {
        url,
        sample_rate: sample_rate.unwrap_or(1.0),
        service_name: fields.word("serviceName").unwrap_or("muxgate").to_string(),
    })
}

fn url(fields: &Fields<'_>, text: &str) -> Option<http::Uri> {
    let example = "for example http://127.0.0.1:9411";
    let Ok(uri) = text.parse::<http::Uri>() else {
        fields.wrong("url", format!("`{text}` is no URL"), example);
        return None;
    };
    match uri.scheme_str() {
        Some("http") if uri.path() == "/" && uri.query().is_none() => {
            format!("{}{SPANS_PATH}", text.trim_end_matches('/')).parse().ok()
        }
        Some("http") => Some(uri),
        Some("https") => {
            fields.wrong(
                "url",
                "spans are not sent over TLS",
                "use an http:// address, such as that of a local collector",
            );
            None
        }
        _ => {
            fields.wrong(
                "url",
                format!("`{text}` does not begin with http://"),
                format!("write http://{text}"),
            );
            None
        }
    }
}
