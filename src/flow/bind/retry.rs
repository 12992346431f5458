//! Trying again what failed, where the configuration says that it may be: after a pause, within the call's time, and paid for.
//!
//! A requeue (the room below) repeats at once what no service has begun; that is proved by flags. Here a call may have been done, and
//! only whoever configures the service knows that doing it twice does no harm.

use super::{Backoff, Classifier, Retries};
use muxgate_rpc::{Class, Failure, Flags, Request, Response, Serve, Why};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Most times that one call is tried again, however much time and budget there is: as many as a cluster requeues.
pub const MAX_RETRIES: u32 = 25;

/// How late a timer may fire.
const TIMER: Duration = Duration::from_millis(1);

/// Calls `target` until the answer is none to try again: it is good or final, nothing is left to pay with, or the time up to
/// `until` leaves no room for the pause. Then the last answer is given at once. An answer that could have been repeated and was not
/// paid for comes back non-retryable, as with requeues: callers above must not multiply it.
pub(super) async fn attempts(
    target: &impl Serve,
    request: &mut Request,
    retries: &Retries,
    until: Option<Instant>,
) -> Result<Response, Failure> {
    let mut pauses = Pauses::new(&retries.backoff);
    let mut left = if request.body.is_oneway() { 0 } else { MAX_RETRIES };
    loop {
        let answer = judged(retries.classifier, target.call(request).await);
        if left == 0 || !is_retryable(retries.classifier, &answer) {
            return answer;
        }
        left -= 1;
        let next = Instant::now() + pauses.next();
        let is_late = |at: Instant| until.is_some_and(|until| at >= until);
        if is_late(next + TIMER) {
            return answer;
        }
        // Nobody waits for an attempt that cannot be paid for; but only one that is made is paid for.
        let purse = request.local.purse.clone().filter(|purse| purse.can_pay());
        let Some(purse) = purse else { return answer.map_err(unpaid) };
        sleep(next - Instant::now()).await;
        // A timer may fire late, and an attempt that nobody waits for is pure load.
        if is_late(Instant::now()) {
            return answer;
        }
        if !purse.withdraw() {
            return answer.map_err(unpaid);
        }
        request.local.attempt += 1;
    }
}

fn unpaid(failure: Failure) -> Failure {
    failure.with(Flags::NON_RETRYABLE)
}

/// Classes a reply anew, for everyone above.
fn judged(classifier: Classifier, answer: Result<Response, Failure>) -> Result<Response, Failure> {
    answer.map(|mut response| {
        if classifier == Classifier::RetryableFailures && response.class == Class::Failure {
            response.class = Class::RetryableFailure;
        }
        response
    })
}

/// Whether an answer is a failure that may be tried again. Never: what must not be repeated by its flags, what no attempt can
/// change, and calls that nobody waits for any more.
fn is_retryable(classifier: Classifier, answer: &Result<Response, Failure>) -> bool {
    match (classifier, answer) {
        (Classifier::NonRetryableFailures, _) => false,
        (_, Ok(response)) => response.class == Class::RetryableFailure,
        (_, Err(failure)) if failure.flags().has(Flags::NON_RETRYABLE) => false,
        (_, Err(failure)) => match failure.why() {
            Why::Timeout
            | Why::Connect
            | Why::ConnectionLost
            | Why::Nack
            | Why::Upstream
            | Why::BadReply
            | Why::NoEndpoint
            | Why::Overload => true,
            Why::BadRequest
            | Why::NoSuchName
            | Why::NameUnavailable
            | Why::Expired
            | Why::Draining
            | Why::Cancelled
            | Why::Panic => false,
        },
    }
}

/// The pauses before each further attempt of one call.
struct Pauses<'a> {
    backoff: &'a Backoff,
    last: Duration,
}

impl<'a> Pauses<'a> {
    fn new(backoff: &'a Backoff) -> Self {
        let last = match backoff {
            Backoff::Constant(pause) => *pause,
            Backoff::Jittered { min, .. } => *min,
        };
        Self { backoff, last }
    }

    /// Jittered pauses are anything from the least to three times the one before, and at most the longest: calls that failed
    /// together do not come back together.
    fn next(&mut self) -> Duration {
        if let Backoff::Jittered { min, max } = *self.backoff {
            let most = self.last.saturating_mul(3).min(max);
            self.last = min + most.saturating_sub(min).mul_f64(rand::random());
        }
        self.last
    }
}

#[cfg(test)]
mod tests;
