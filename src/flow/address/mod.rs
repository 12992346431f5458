//! Which name a call means.
//!
//! In comes a request with the destination its caller gave, if any; out goes one whose `dst` is the full name: the
//! prefix, then the destination, the multiplexed service or the listener's default, then, if configured, the method.

mod params;

pub use params::Params;

use muxgate_rpc::{Failure, Request, Response, Serve, Status, Why};
use muxgate_wire::name::Path;

/// Names each call.
pub struct Address<S> {
    inner: S,
    prefix: Path,
    unnamed: Path,
    method_in_dst: bool,
    service_in_dst: bool,
}

impl<S> Address<S> {
    /// Names calls for `inner`.
    pub fn new(params: &Params, inner: S) -> Self {
        Self {
            inner,
            prefix: params.prefix.clone(),
            unnamed: params.prefix.concat(&params.default),
            method_in_dst: params.method_in_dst,
            service_in_dst: params.service_in_dst,
        }
    }

    fn name(&self, request: &Request) -> Result<Path, Failure> {
        let (service, method) = match self.service_in_dst {
            true => split(request.body.method_bytes()),
            false => (None, request.body.method_bytes()),
        };
        let name = match (request.dst.is_empty(), service) {
            (false, _) => self.prefix.concat(&request.dst),
            (true, Some(service)) => element(&self.prefix, service, "service")?,
            (true, None) => self.unnamed.clone(),
        };
        if !self.method_in_dst {
            return Ok(name);
        }
        if request.body.head().is_none() {
            return Err(Failure::new(
                Why::BadRequest,
                "the call's body is not a Thrift message: it has no method",
            ));
        }
        element(&name, method, "method")
    }
}

/// The service and the method of a multiplexed name, parted at the first colon (thriftmux spec, section 17).
fn split(method: &[u8]) -> (Option<&[u8]>, &[u8]) {
    let mut parts = method.splitn(2, |byte| *byte == b':');
    match (parts.next(), parts.next()) {
        (Some(service), Some(method)) => (Some(service), method),
        _ => (None, method),
    }
}

fn element(path: &Path, raw: &[u8], what: &str) -> Result<Path, Failure> {
    path.child(raw)
        .map_err(|error| Failure::new(Why::BadRequest, format!("{what} name in the path: {error}")))
}

impl<S: Serve> Serve for Address<S> {
    async fn call(&self, request: &mut Request) -> Result<Response, Failure> {
        request.dst = self.name(request)?;
        self.inner.call(request).await
    }

    fn status(&self) -> Status {
        self.inner.status()
    }
}

#[cfg(test)]
mod tests;
