//! The seam between the rooms: something that answers requests, shared by reference.

use crate::{Failure, Request, Response};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Whether a call would be taken now. A synchronous read; the truth may change before the call is made, and a lost race
/// is a requeue that costs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Takes calls.
    Open,
    /// Would rather not: marked dead by accrual. May be tried when nobody else is open.
    Doubtful,
    /// Takes none now: lease, drain or limit.
    Busy,
    /// Takes none any more.
    Closed,
}

/// Answers requests. Layers implement it generically, so that a chain of them is one future without allocation; [`Svc`]
/// closes a chain into a handle where its type would otherwise spread.
///
/// The request is lent, not given: it stays where the session put it, and nothing is copied or cloned for attempts that do
/// not happen. A layer that changes it for one attempt puts back what it changed.
///
/// Dropping the future is the only way to cancel a call.
pub trait Serve: Send + Sync + 'static {
    /// Answers one request.
    fn call(&self, request: &mut Request) -> impl Future<Output = Result<Response, Failure>> + Send;

    /// Whether a call would be taken now.
    fn status(&self) -> Status {
        Status::Open
    }
}

impl<S: Serve> Serve for Arc<S> {
    fn call(&self, request: &mut Request) -> impl Future<Output = Result<Response, Failure>> + Send {
        S::call(self, request)
    }

    fn status(&self) -> Status {
        S::status(self)
    }
}

type Answer<'a> = Pin<Box<dyn Future<Output = Result<Response, Failure>> + Send + 'a>>;

trait DynServe: Send + Sync {
    fn call_boxed<'a>(&'a self, request: &'a mut Request) -> Answer<'a>;
    fn status(&self) -> Status;
}

impl<S: Serve> DynServe for S {
    fn call_boxed<'a>(&'a self, request: &'a mut Request) -> Answer<'a> {
        Box::pin(self.call(request))
    }

    fn status(&self) -> Status {
        Serve::status(self)
    }
}

/// A shared handle to any [`Serve`], and a [`tower::Service`]: one allocation a call, clones cost a reference count.
#[derive(Clone)]
pub struct Svc(Arc<dyn DynServe>);

impl Svc {
    /// Closes a chain of layers into a handle.
    pub fn new(serve: impl Serve) -> Self {
        Self(Arc::new(serve))
    }
}

impl Serve for Svc {
    async fn call(&self, request: &mut Request) -> Result<Response, Failure> {
        self.0.call_boxed(request).await
    }

    fn status(&self) -> Status {
        self.0.status()
    }
}

impl tower::Service<Request> for Svc {
    type Response = Response;
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Failure>> + Send>>;

    /// Always ready: refusal is an answer ([`Failure`]), never a wait.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let serve = Arc::clone(&self.0);
        Box::pin(async move { serve.call_boxed(&mut request).await })
    }
}

impl std::fmt::Debug for Svc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Svc({:?})", self.0.status())
    }
}
