//! Which name a call means.
//!
//! In comes a request with the destination its caller gave, if any; out goes one whose `dst` is the full name: the
//! prefix, then the destination or the listener's default, then, if configured, the method.

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
}

impl<S> Address<S> {
    /// Names calls for `inner`.
    pub fn new(params: &Params, inner: S) -> Self {
        Self {
            inner,
            prefix: params.prefix.clone(),
            unnamed: params.prefix.concat(&params.default),
            method_in_dst: params.method_in_dst,
        }
    }

    fn name(&self, request: &Request) -> Result<Path, Failure> {
        let name = match request.dst.is_empty() {
            true => self.unnamed.clone(),
            false => self.prefix.concat(&request.dst),
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
        name.child(request.body.method_bytes())
            .map_err(|error| Failure::new(Why::BadRequest, format!("method name in the path: {error}")))
    }
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
