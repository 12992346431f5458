//! What can be set.

use crate::outside::http::{self, Credentials};
use ::http::Uri;
use std::fmt;
use std::net::IpAddr;

/// Where an agent listens, if nothing is said.
pub const PORT: u16 = 8500;

/// Settings of the Consul namer.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// `host`, `port`, `tls`, `token`: the agent.
    pub agent: http::Params,
    /// `includeTag`: whether a tag stands before the service in a name.
    pub include_tag: bool,
    /// `useHealthCheck` and `healthStatuses`: instances with one of these count; none: all instances count.
    pub health: Option<Vec<Status>>,
    /// `consistencyMode`: which of the servers may answer.
    pub consistency: Consistency,
    /// `preferServiceAddress`: the address of the service comes first, and that of its node only if there is none.
    pub prefer_service_address: bool,
    /// `weights`: by tag, in lower case; the heaviest that an instance has counts. Empty: the weights that Consul has.
    pub weights: Vec<(String, f64)>,
}

/// How well an instance is: as its worst check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// All checks pass.
    Passing,
    /// One warns.
    Warning,
    /// One fails.
    Critical,
    /// An operator has taken it, or its node, out.
    Maintenance,
}

/// Who may answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Consistency {
    /// The leader, as it sees itself.
    #[default]
    Default,
    /// Any server, also one that lags or is cut off.
    Stale,
    /// The leader, after it has asked the others whether it still is.
    Consistent,
}

impl Params {
    /// A token that everybody on the way can read is hardly meant; on this host nobody can.
    pub fn doubt(&self) -> Option<String> {
        let bare = self.agent.tls.is_none() && self.agent.credentials != Credentials::None;
        (bare && !is_here(&self.agent.base)).then(|| {
            format!("the token goes to {} unencrypted: give `tls`, or leave `token` out", self.agent.base)
        })
    }
}

fn is_here(base: &str) -> bool {
    let uri: Option<Uri> = base.parse().ok();
    let host = uri.as_ref().and_then(Uri::host).unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "services of Consul at {}", self.agent.base)
    }
}
