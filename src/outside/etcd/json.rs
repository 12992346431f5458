//! What goes over the wire.

use super::behind;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A key, or a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Base64(pub Vec<u8>);

impl From<&[u8]> for Base64 {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

impl Serialize for Base64 {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        STANDARD.decode(text).map(Self).map_err(serde::de::Error::custom)
    }
}

/// A number of 64 bits: a string in JSON.
mod number {
    use super::*;

    pub fn serialize<S: Serializer>(number: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(number)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Says who answered, and when.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Header {
    #[serde(with = "number")]
    pub cluster_id: u64,
    #[serde(with = "number")]
    pub revision: u64,
}

/// One key with its value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, from = "Kv")]
pub struct KeyValue {
    /// The key.
    pub key: Vec<u8>,
    /// Its value.
    pub value: Vec<u8>,
    /// The revision in which it got this value.
    pub revision: u64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Kv {
    key: Base64,
    value: Base64,
    #[serde(with = "number")]
    mod_revision: u64,
}

impl From<Kv> for KeyValue {
    fn from(kv: Kv) -> Self {
        Self { key: kv.key.0, value: kv.value.0, revision: kv.mod_revision }
    }
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Range {
    pub key: Base64,
    pub range_end: Base64,
    #[serde(with = "number")]
    pub limit: u64,
    #[serde(with = "number")]
    pub revision: u64,
    pub count_only: bool,
}

impl Range {
    pub fn below(prefix: &[u8]) -> Self {
        Self { key: prefix.into(), range_end: Base64(behind(prefix)), ..Self::default() }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Ranged {
    pub header: Header,
    pub kvs: Vec<KeyValue>,
    pub more: bool,
    #[serde(with = "number")]
    pub count: u64,
}

/// What is done, all at once, if what is compared is as expected.
#[derive(Debug, Default, Serialize)]
pub struct Txn {
    compare: Vec<Compare>,
    success: Vec<Op>,
}

#[derive(Debug, Serialize)]
struct Compare {
    key: Base64,
    target: &'static str,
    result: &'static str,
    #[serde(with = "number")]
    mod_revision: u64,
}

#[derive(Debug, Serialize)]
enum Op {
    #[serde(rename = "request_range")]
    Read { key: Base64 },
    #[serde(rename = "request_put")]
    Put { key: Base64, value: Base64 },
    #[serde(rename = "request_delete_range")]
    Delete { key: Base64 },
}

impl Txn {
    /// Expects that a key was written last in this revision; in 0: that it is not there.
    #[must_use]
    pub fn when(mut self, key: &[u8], revision: u64) -> Self {
        let compare = Compare { key: key.into(), target: "MOD", result: "EQUAL", mod_revision: revision };
        self.compare.push(compare);
        self
    }

    /// Reads a key.
    #[must_use]
    pub fn read(mut self, key: &[u8]) -> Self {
        self.success.push(Op::Read { key: key.into() });
        self
    }

    /// Writes a key. No key may be written or deleted twice.
    #[must_use]
    pub fn put(mut self, key: &[u8], value: &[u8]) -> Self {
        self.success.push(Op::Put { key: key.into(), value: value.into() });
        self
    }

    /// Deletes a key, if it is there.
    #[must_use]
    pub fn delete(mut self, key: &[u8]) -> Self {
        self.success.push(Op::Delete { key: key.into() });
        self
    }
}

/// What became of a [`Txn`].
#[derive(Debug, Default, Deserialize)]
#[serde(default, from = "Done")]
pub struct TxnAnswer {
    /// Whether all was as expected, and so done.
    pub succeeded: bool,
    /// The revision in which that was.
    pub revision: u64,
    /// What was read, in order; none: there is no such key.
    pub read: Vec<Option<KeyValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Done {
    header: Header,
    succeeded: bool,
    responses: Vec<Response>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Response {
    response_range: Option<Ranged>,
}

impl From<Done> for TxnAnswer {
    fn from(done: Done) -> Self {
        let ranges = done.responses.into_iter().filter_map(|response| response.response_range);
        let read = ranges.map(|range| range.kvs.into_iter().next()).collect();
        Self { succeeded: done.succeeded, revision: done.header.revision, read }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Watch {
    create_request: WatchRange,
}

#[derive(Debug, Serialize)]
struct WatchRange {
    key: Base64,
    range_end: Base64,
    #[serde(with = "number")]
    start_revision: u64,
}

impl Watch {
    /// From a revision on, all keys that begin with `prefix`.
    pub fn below(prefix: &[u8], start_revision: u64) -> Self {
        let Range { key, range_end, .. } = Range::below(prefix);
        Self { create_request: WatchRange { key, range_end, start_revision } }
    }
}

/// One line of a watch.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Line {
    pub result: Option<Watched>,
    pub error: Option<Failed>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Failed {
    pub message: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Watched {
    pub header: Header,
    pub canceled: bool,
    pub cancel_reason: String,
    #[serde(with = "number")]
    pub compact_revision: u64,
    pub events: Vec<Change>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Change {
    #[serde(rename = "type")]
    pub what: What,
    pub kv: KeyValue,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) enum What {
    #[default]
    #[serde(rename = "PUT")]
    Put,
    #[serde(rename = "DELETE")]
    Delete,
}
