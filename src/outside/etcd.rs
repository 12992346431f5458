//! A client of etcd 3 over its JSON gateway: read, compare and write, follow.
//!
//! Facts about that gateway which shape this code: keys and values are base64; 64-bit numbers are strings; what is zero or
//! empty is left out; a watch is one JSON object a line; its paths begin with `/v3` since etcd 3.4, with `/v3beta` in 3.3.

mod follow;
mod json;

pub use follow::{Event, Follow, News, Snapshot};
pub use json::{KeyValue, Txn, TxnAnswer};

use super::http::{Answer, Http, HttpError, Params};
use http::header::HeaderMap;
use http::{Method, StatusCode};
use json::{Range, Ranged};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Time for the answer to a question that is cheap for the server.
pub const CHECK_WITHIN: Duration = Duration::from_millis(2500);

/// Time for the answer to anything else.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Why there is no answer, for people in its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EtcdError {
    /// What was asked for lies before the oldest revision that is kept: everything has to be read anew.
    Compacted(String),
    /// It was answered, and the answer is no: a right that we do not have, a request that is too large.
    Refused(String),
    /// It cannot be asked, or cannot answer now. Of a write it is not known whether it was done.
    Unavailable(String),
}

impl fmt::Display for EtcdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Compacted(text) | Self::Refused(text) | Self::Unavailable(text)) = self;
        f.write_str(text)
    }
}

impl std::error::Error for EtcdError {}

impl From<HttpError> for EtcdError {
    fn from(error: HttpError) -> Self {
        let later = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS];
        match error.status {
            Some(StatusCode::BAD_REQUEST) if error.text.contains("has been compacted") => {
                Self::Compacted(error.text)
            }
            Some(status) if status.is_client_error() && !later.contains(&status) => Self::Refused(error.text),
            _ => Self::Unavailable(error.text),
        }
    }
}

/// A cluster: one or more of its members' addresses.
#[derive(Debug)]
pub struct Etcd {
    nodes: Vec<Node>,
    /// The one that answered last.
    at: AtomicUsize,
}

impl Etcd {
    /// A client of the cluster whose members are at these addresses. Must be called on a runtime.
    ///
    /// # Errors
    /// Those of [`Http::open`], and no address at all.
    pub fn open(params: &[Params]) -> Result<Self, HttpError> {
        if params.is_empty() {
            return Err(HttpError { status: None, text: "etcd has no address".into() });
        }
        let node = |params| Ok(Node { http: Http::open(params)?, old: Arc::default() });
        let nodes = params.iter().map(node).collect::<Result<_, HttpError>>()?;
        Ok(Self { nodes, at: AtomicUsize::new(0) })
    }

    /// A member that answers for the keys below `prefix` right now: the one that did so last, or else the next one that does.
    /// The cluster answers through it, so it is no member that is cut off from the others.
    ///
    /// # Errors
    /// If none does: what each of them said.
    pub async fn node(&self, prefix: &[u8]) -> Result<Node, EtcdError> {
        if let [only] = self.nodes.as_slice() {
            return Ok(only.clone());
        }
        let first = self.at.load(Ordering::Relaxed);
        let mut errors = Vec::new();
        for (at, node) in self.nodes.iter().enumerate().cycle().skip(first).take(self.nodes.len()) {
            match node.count(prefix).await {
                Ok(_) => {
                    self.at.store(at, Ordering::Relaxed);
                    return Ok(node.clone());
                }
                Err(error) => errors.push(error),
            }
        }
        let text = errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        let refused = errors.iter().all(|error| matches!(error, EtcdError::Refused(_)));
        Err(if refused { EtcdError::Refused(text) } else { EtcdError::Unavailable(text) })
    }
}

/// One member of a cluster.
#[derive(Clone, Debug)]
pub struct Node {
    http: Http,
    /// Whether its paths are those of 3.3.
    old: Arc<AtomicBool>,
}

/// What a question costs nothing more to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Which cluster answered.
    pub cluster: u64,
    /// How often anything was written in it, ever.
    pub revision: u64,
    /// How many keys there are where it was asked.
    pub keys: u64,
}

impl Node {
    /// How many keys there are below a prefix: the cheapest question that the whole cluster has to agree on.
    ///
    /// # Errors
    /// No answer within [`CHECK_WITHIN`].
    pub async fn count(&self, prefix: &[u8]) -> Result<Head, EtcdError> {
        let range = Range { count_only: true, ..Range::below(prefix) };
        let answer: Ranged = self.ask("/kv/range", &range, CHECK_WITHIN).await?;
        let json::Header { cluster_id: cluster, revision } = answer.header;
        Ok(Head { cluster, revision, keys: answer.count })
    }

    /// The keys from `from` up to `to` in their order, with their values.
    ///
    /// # Errors
    /// No answer within [`ANSWER_WITHIN`].
    pub async fn range(&self, from: &[u8], to: &[u8]) -> Result<Vec<KeyValue>, EtcdError> {
        let range = Range { key: from.into(), range_end: to.into(), ..Range::default() };
        let answer: Ranged = self.ask("/kv/range", &range, ANSWER_WITHIN).await?;
        Ok(answer.kvs)
    }

    /// Compares, and then does one thing or the other, all at once.
    ///
    /// # Errors
    /// No answer within [`ANSWER_WITHIN`]: then it is not known whether it was done.
    pub async fn txn(&self, txn: &Txn) -> Result<TxnAnswer, EtcdError> {
        self.ask("/kv/txn", txn, ANSWER_WITHIN).await
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        path: &str,
        what: &impl Serialize,
        within: Duration,
    ) -> Result<T, EtcdError> {
        let body = body(what)?;
        let mut whole = self.path(path);
        let mut answer = self.post(&whole, &body, within).await?;
        if self.is_older(answer.status, &answer.body) {
            whole = self.path(path);
            answer = self.post(&whole, &body, within).await?;
        }
        self.http.expect_ok(&Method::POST, &whole, &answer)?;
        let wrong = |error| EtcdError::Unavailable(format!("POST {}{whole}: {error}", self.http.base()));
        serde_json::from_slice(&answer.body).map_err(wrong)
    }

    async fn post(&self, path: &str, body: &bytes::Bytes, within: Duration) -> Result<Answer, HttpError> {
        self.http.send(Method::POST, path, HeaderMap::new(), body.clone(), within).await
    }

    fn path(&self, path: &str) -> String {
        let version = if self.old.load(Ordering::Relaxed) { "/v3beta" } else { "/v3" };
        format!("{version}{path}")
    }

    /// Whether this answer comes from a server that does not know the paths of 3.4; they are those of 3.3 from now on. What
    /// etcd itself does not find it says in JSON.
    fn is_older(&self, status: StatusCode, body: &[u8]) -> bool {
        let unknown = status == StatusCode::NOT_FOUND && !body.starts_with(b"{");
        unknown && !self.old.swap(true, Ordering::Relaxed)
    }
}

fn body(what: &impl Serialize) -> Result<bytes::Bytes, EtcdError> {
    let text = serde_json::to_vec(what).map_err(|error| EtcdError::Refused(error.to_string()))?;
    Ok(text.into())
}

/// The first key behind all that begin with `prefix`.
fn behind(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    // All keys: etcd writes that as a zero byte.
    vec![0]
}

#[cfg(test)]
mod tests;
