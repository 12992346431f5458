//! What an agent says of a service, as far as it matters here, and the members that it makes. Form: Consul's HTTP API,
//! `/v1/health/service/:service`.

use super::params::{Params, Status};
use crate::names::source::Member;
use serde::Deserialize;

/// One instance.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Instance {
    node: Node,
    service: Service,
    /// Null if there are none.
    #[serde(default)]
    checks: Option<Vec<Check>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[derive(Default)]
struct Node {
    address: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Service {
    /// Null if there are none.
    tags: Option<Vec<String>>,
    /// Empty if it is that of the node.
    address: String,
    port: u16,
    weights: Option<Weights>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Weights {
    passing: u32,
}

impl Default for Weights {
    fn default() -> Self {
        Self { passing: 1 }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Check {
    #[serde(rename = "CheckID")]
    id: String,
    #[serde(rename = "Status")]
    status: String,
}

impl Check {
    /// Maintenance is a check that fails, told by its id.
    fn status(&self) -> Status {
        match self.status.as_str() {
            "passing" => Status::Passing,
            "warning" => Status::Warning,
            _ if self.id == "_node_maintenance" || self.id.starts_with("_service_maintenance:") => {
                Status::Maintenance
            }
            _ => Status::Critical,
        }
    }
}

impl Instance {
    /// What it is to us; none if it does not count, or cannot be called.
    pub(super) fn member(self, params: &Params) -> Option<Member> {
        let checks = self.checks.unwrap_or_default();
        let status = checks.iter().map(Check::status).max().unwrap_or(Status::Passing);
        if params.health.as_ref().is_some_and(|wanted| !wanted.contains(&status)) {
            return None;
        }
        let weight = self.service.weight(params);
        let own = Some(self.service.address).filter(|own| params.prefer_service_address && !own.is_empty());
        let host = own.unwrap_or(self.node.address);
        let callable = !host.is_empty() && self.service.port != 0;
        callable.then(|| Member { weight, ..Member::new(host, self.service.port) })
    }
}

impl Service {
    fn weight(&self, params: &Params) -> f64 {
        if params.weights.is_empty() {
            return f64::from(self.weights.as_ref().map_or(1, |weights| weights.passing).max(1));
        }
        let tags: Vec<String> = self.tags.iter().flatten().map(|tag| tag.to_lowercase()).collect();
        let has = params.weights.iter().filter(|(tag, _)| tags.contains(tag)).map(|(_, weight)| *weight);
        has.reduce(f64::max).unwrap_or(1.0)
    }
}
