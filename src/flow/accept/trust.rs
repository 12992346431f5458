//! Whom a listener believes: what callers from outside say about anything but their call is dropped before it is read.

use muxgate_rpc::{Context, Failure, Request, Response, Serve, Status};
use muxgate_wire::pairs::Pairs;

/// Who calls at a listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Services of one's own: their traces, deadlines, contexts and delegations count, and go on.
    #[default]
    Inside,
    /// Strangers: see [`Screen`].
    Outside,
}

/// The first layer of all, in front of the span: of a call from outside it leaves the destination and the body.
///
/// Delegations would let a stranger reach any address that the gateway can; a trace would put its calls into somebody
/// else's, or force spans; a deadline would let it have its calls counted as expired; a client id or any other context could be
/// a claim that a service believes. The destination stays: it is a name, and the base table says where names lead. That holds
/// for every protocol, as all of them become one [`Request`] before this; the readers of each step over what is dropped here
/// (`Limits::destination_only`), so that nothing in it refuses the call.
pub struct Screen<S> {
    inner: S,
    trust: Trust,
}

impl<S> Screen<S> {
    /// Stands before `inner`.
    pub fn new(trust: Trust, inner: S) -> Self {
        Self { inner, trust }
    }
}

impl<S: Serve> Serve for Screen<S> {
    fn call(&self, request: &mut Request) -> impl Future<Output = Result<Response, Failure>> + Send {
        if self.trust == Trust::Outside {
            request.dtab = Pairs::default();
            request.ctx = Context::default();
        }
        self.inner.call(request)
    }

    fn status(&self) -> Status {
        self.inner.status()
    }
}
