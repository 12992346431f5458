//! What can be set.

use crate::outside::http::{self, Credentials};
use std::fmt;

/// Settings of the Kubernetes namers.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// `host`, `port`, `tls`, `tokenFile`: the API server, or a `kubectl proxy` to it.
    pub api: http::Params,
    /// `namespace`, of `io.l5d.k8s.ns` only: where all services are. Otherwise the name says it.
    pub namespace: Option<String>,
    /// `labelSelector`: the label whose value is the last element of a name.
    pub label: Option<String>,
}

impl Params {
    /// A token that everybody on the way can read is hardly meant.
    pub fn doubt(&self) -> Option<String> {
        let bare = self.api.tls.is_none() && self.api.credentials != Credentials::None;
        bare.then(|| {
            format!("the token goes to {} unencrypted: give `tls`, or leave `tokenFile` out", self.api.base)
        })
    }
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => {
                write!(f, "services in namespace {namespace} of Kubernetes at {}", self.api.base)
            }
            None => write!(f, "services of Kubernetes at {}", self.api.base),
        }
    }
}
