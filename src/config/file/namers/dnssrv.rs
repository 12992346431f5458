//! `io.l5d.dnssrv`.

use super::super::dns::servers;
use super::{Fields, Kind, Shape};
use crate::names::namers::configured::Discovery;
use crate::names::namers::dnssrv::Params;
use std::time::Duration;

/// Longest time between two questions, in seconds.
const MAX_REFRESH: u64 = 3600;

pub(super) const KIND: Kind = Kind {
    word: "io.l5d.dnssrv",
    shape: &Shape {
        what: "a namer",
        keys: &["kind", "prefix", "transformers", "refreshIntervalSeconds", "dnsHosts"],
        strangers: &[
            ("experimental", "nothing is experimental here: leave this out"),
            ("refreshIntervalMs", "write `refreshIntervalSeconds`"),
        ],
    },
    read,
};

fn read(fields: &Fields<'_>) -> Option<Discovery> {
    let zero = "names are asked for once a second at the most";
    let refresh = fields.count("refreshIntervalSeconds", 1..=MAX_REFRESH, zero);
    let mut params = Params { servers: servers(fields, "dnsHosts"), ..Params::default() };
    params.refresh = refresh.map_or(params.refresh, Duration::from_secs);
    Some(Discovery::DnsSrv(params))
}
