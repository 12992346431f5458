//! The content of a `member_` node.

use super::Place;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a member says of itself. Only [`Status::Alive`] gets traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It is gone.
    Dead,
    /// It is not ready yet.
    Starting,
    /// It takes calls.
    Alive,
    /// It will be gone soon.
    Stopping,
    /// It takes no calls any more.
    Stopped,
    /// It is not well.
    Warning,
    /// It does not say, or something that we do not know.
    Unknown,
}

impl Status {
    fn read(status: &Value) -> Self {
        match status.as_str().unwrap_or_default() {
            "DEAD" => Self::Dead,
            "STARTING" => Self::Starting,
            "ALIVE" => Self::Alive,
            "STOPPING" => Self::Stopping,
            "STOPPED" => Self::Stopped,
            "WARNING" => Self::Warning,
            _ => Self::Unknown,
        }
    }
}

/// One address of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Address literal or host name.
    pub host: Arc<str>,
    /// From 1.
    pub port: u16,
    /// Names of additional endpoints that are at this address; none stands for the service endpoint.
    pub names: BTreeSet<Option<String>>,
}

/// One member of a server set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The node's name.
    pub id: Arc<str>,
    /// What it says of itself.
    pub status: Status,
    /// Its shard, if it has one.
    pub shard: Option<i64>,
    /// What else it says, such as its rack.
    pub metadata: BTreeMap<String, String>,
    /// Its addresses, in order, each once; none if the content cannot be read.
    pub endpoints: Vec<Endpoint>,
}

impl Member {
    /// Reads the content of the node `id`. What cannot be read is a member without endpoints, and no error of the set.
    pub fn read(id: &str, content: &[u8]) -> Self {
        let json: Value = serde_json::from_slice(content).unwrap_or_default();
        let mut places: BTreeMap<(Arc<str>, u16), BTreeSet<Option<String>>> = BTreeMap::new();
        let service = json.get("serviceEndpoint").map(|endpoint| (None, endpoint));
        let additional = json.get("additionalEndpoints").and_then(Value::as_object).into_iter().flatten();
        let additional = additional.map(|(name, endpoint)| (Some(name.clone()), endpoint));
        for (name, endpoint) in service.into_iter().chain(additional) {
            if let Some(place) = address(endpoint) {
                places.entry(place).or_default().insert(name);
            }
        }
        let metadata = json.get("metadata").and_then(Value::as_object).into_iter().flatten();
        let text = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
        Self {
            id: id.into(),
            status: json.get("status").map_or(Status::Unknown, Status::read),
            shard: json.get("shard").and_then(Value::as_i64),
            metadata: metadata.filter_map(text).collect(),
            endpoints: places
                .into_iter()
                .map(|((host, port), names)| Endpoint { host, port, names })
                .collect(),
        }
    }

    /// The addresses that are meant, if it takes calls.
    pub fn endpoints_for<'a>(&'a self, place: &'a Place) -> impl Iterator<Item = &'a Endpoint> {
        let meant = self.status == Status::Alive && place.shard.is_none_or(|shard| self.shard == Some(shard));
        self.endpoints.iter().filter(move |endpoint| meant && endpoint.names.contains(&place.endpoint))
    }
}

/// A port must be a whole number, not a text.
fn address(endpoint: &Value) -> Option<(Arc<str>, u16)> {
    let port = u16::try_from(endpoint.get("port")?.as_u64()?).ok().filter(|port| *port > 0)?;
    let host = endpoint.get("host")?.as_str().filter(|host| !host.is_empty())?;
    Some((host.into(), port))
}
