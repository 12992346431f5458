//! Bounds one attempt, and tells the service how long its answer is waited for.

use muxgate_rpc::{Deadline, Failure, Request, Response, Serve, Status, Why};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Ends an attempt at its limit. What remains of the whole call's time is enforced above, by the route; here a timer is
/// made only when the attempt's own limit comes first.
pub struct AttemptDeadline<S> {
    inner: S,
    limit: Option<Duration>,
}

impl<S> AttemptDeadline<S> {
    /// Bounds each attempt of `inner`.
    pub fn new(limit: Option<Duration>, inner: S) -> Self {
        Self { inner, limit }
    }
}

impl<S: Serve> Serve for AttemptDeadline<S> {
    async fn call(&self, request: &mut Request) -> Result<Response, Failure> {
        let Some(limit) = self.limit else { return self.inner.call(request).await };
        let ours = Deadline::at(Instant::now() + limit);
        let (deadline, is_ours) = match request.ctx.deadline {
            Some(theirs) if !request.local.deadline_doubted => (theirs.min(ours), theirs.min(ours) == ours),
            _ => (ours, true),
        };
        if !is_ours {
            return self.inner.call(request).await;
        }
        let whole = request.ctx.deadline.replace(deadline);
        let answer = timeout_at(deadline.instant(), self.inner.call(request)).await;
        request.ctx.deadline = whole;
        answer.unwrap_or_else(|_| {
            Err(Failure::new(
                Why::Timeout,
                format!("no answer within the attempt's {} ms", limit.as_millis()),
            ))
        })
    }

    fn status(&self) -> Status {
        self.inner.status()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use muxgate_rpc::Payload;

    /// Answers after a second with the milliseconds that its caller gave it.
    struct Slow;

    impl Serve for Slow {
        async fn call(&self, request: &mut Request) -> Result<Response, Failure> {
            let left = request.ctx.deadline.map_or(0, |deadline| {
                deadline.instant().saturating_duration_since(Instant::now()).as_millis()
            });
            tokio::time::sleep(Duration::from_secs(1)).await;
            let mut response = Response::nothing();
            response.body = Bytes::from(left.to_string());
            Ok(response)
        }
    }

    fn request() -> Request {
        Request::new(Payload::opaque(Bytes::new()), Instant::now(), None)
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_ends_at_its_limit() {
        let short = AttemptDeadline::new(Some(Duration::from_millis(500)), Slow);
        assert_eq!(short.call(&mut request()).await.unwrap_err().why(), Why::Timeout);
    }

    #[tokio::test(start_paused = true)]
    async fn the_service_is_told_the_smaller_of_both_limits() {
        let long = AttemptDeadline::new(Some(Duration::from_millis(1500)), Slow);
        assert_eq!(&long.call(&mut request()).await.unwrap().body[..], b"1500");
        let mut tighter = request();
        tighter.ctx.deadline = Some(Deadline::at(Instant::now() + Duration::from_millis(1200)));
        assert_eq!(&long.call(&mut tighter).await.unwrap().body[..], b"1200");
        let mut looser = request();
        looser.ctx.deadline = Some(Deadline::at(Instant::now() + Duration::from_secs(60)));
        assert_eq!(&long.call(&mut looser).await.unwrap().body[..], b"1500");
    }
}
