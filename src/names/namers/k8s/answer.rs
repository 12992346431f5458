//! What the API server says, as far as it matters here: `EndpointSliceList`, `WatchEvent`, and in it `EndpointSlice` or
//! `Status`. Form: the API reference of `discovery.k8s.io/v1` and `meta/v1`.

use serde::Deserialize;
use std::collections::HashMap;

/// A page of a list.
#[derive(Deserialize)]
pub(super) struct List {
    #[serde(default)]
    pub metadata: ListMeta,
    /// Null in an empty list of some servers.
    #[serde(default)]
    pub items: Option<Vec<Object>>,
}

/// Where a list stands.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ListMeta {
    /// A watch from here misses nothing.
    pub resource_version: String,
    /// Empty on the last page.
    pub r#continue: String,
}

/// A line of a watch.
#[derive(Deserialize)]
pub(super) struct Event {
    pub r#type: String,
    pub object: Object,
}

/// An endpoint slice, a bookmark (only its version counts), or a status (only what is wrong counts).
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Object {
    pub metadata: Meta,
    pub address_type: String,
    pub endpoints: Option<Vec<Endpoint>>,
    pub ports: Option<Vec<Port>>,
    pub code: u16,
    pub reason: String,
    pub message: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Meta {
    pub name: String,
    pub resource_version: String,
    pub labels: Option<HashMap<String, String>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Endpoint {
    /// All are the same endpoint; by the API's rule only the first counts.
    pub addresses: Vec<String>,
    pub conditions: Option<Conditions>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Conditions {
    /// Unknown means ready.
    pub ready: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Port {
    /// Empty, or none, for the only port of a service.
    pub name: Option<String>,
    /// TCP if none.
    pub protocol: Option<String>,
    /// None if all ports are meant.
    pub port: Option<u16>,
}

impl Endpoint {
    pub(super) fn is_ready(&self) -> bool {
        self.conditions.as_ref().and_then(|conditions| conditions.ready).unwrap_or(true)
    }
}
