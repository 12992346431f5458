use super::*;
use bytes::Bytes;
use muxgate_rpc::{Payload, Purse, Reply};
use muxgate_wire::thrift::{ApplicationExceptionType, Kind, Protocol, write_head};
use parking_lot::Mutex;
use std::sync::Arc;

/// Needs 50 ms, and answers with what it is told; notes when each attempt begins, and its number.
struct Failing {
    answer: fn() -> Result<Response, Failure>,
    begun: Mutex<Vec<(Instant, u32)>>,
}

impl Failing {
    fn with(answer: fn() -> Result<Response, Failure>) -> Self {
        Self { answer, begun: Mutex::default() }
    }

    fn attempts(&self) -> usize {
        self.begun.lock().len()
    }
}

impl Serve for Failing {
    async fn call(&self, request: &mut Request) -> Result<Response, Failure> {
        self.begun.lock().push((Instant::now(), request.local.attempt));
        sleep(Duration::from_millis(50)).await;
        (self.answer)()
    }
}

fn exception() -> Result<Response, Failure> {
    let reply = Reply::Application(ApplicationExceptionType::InternalError);
    Ok(Response { contexts: Vec::new(), body: Bytes::new(), reply, class: Class::Failure })
}

fn failed() -> Result<Response, Failure> {
    Err(Failure::new(Why::Upstream, "it did not work"))
}

fn request(kind: Kind, purse: Purse) -> Request {
    let mut message = bytes::BytesMut::new();
    write_head(Protocol::Binary, kind, b"add", 1, &mut message);
    let mut request = Request::new(Payload::opaque(message.freeze()), Instant::now(), None);
    request.local.purse = Some(Arc::new(purse));
    request
}

fn rich() -> Purse {
    Purse::new(10.0, 1_000_000, Duration::from_secs(10))
}

fn jittered() -> Retries {
    let (min, max) = (Duration::from_millis(20), Duration::from_millis(100));
    Retries { classifier: Classifier::RetryableFailures, backoff: Backoff::Jittered { min, max } }
}

#[tokio::test(start_paused = true)]
async fn attempts_end_with_the_calls_time() {
    for answer in [exception as fn() -> _, failed] {
        for _ in 0..200 {
            let target = Failing::with(answer);
            let begun = Instant::now();
            let until = begun + Duration::from_millis(500);
            let mut call = request(Kind::Call, rich());
            let _ = attempts(&target, &mut call, &jittered(), Some(until)).await;
            let seen = target.begun.lock().clone();
            assert!((2..=8).contains(&seen.len()), "{seen:?}");
            let mut last = None;
            for (number, (at, attempt)) in (0..).zip(seen) {
                assert_eq!(attempt, number);
                assert!(at < until);
                let pause = last.map(|last: Instant| at - last - Duration::from_millis(50));
                let range = Duration::from_millis(20)..=Duration::from_millis(102);
                assert!(pause.is_none_or(|pause| range.contains(&pause)), "{pause:?}");
                last = Some(at);
            }
            // At once, and not after a pause that leads to nothing.
            let ended = last.map(|last| last + Duration::from_millis(52));
            assert!(ended.is_some_and(|at| Instant::now() <= at));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_does_not_fit_is_not_made() {
    let pause = Duration::from_millis(100);
    let retries = Retries { backoff: Backoff::Constant(pause), ..jittered() };
    let target = Failing::with(failed);
    let begun = Instant::now();
    let until = begun + Duration::from_millis(290);
    let mut call = request(Kind::Call, rich());
    attempts(&target, &mut call, &retries, Some(until)).await.unwrap_err();
    assert_eq!(target.attempts(), 2, "at 0 and 150 ms; the next would be at 300");
    assert!(begun.elapsed() <= Duration::from_millis(202), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn each_further_attempt_is_paid_for_and_an_empty_purse_ends_it() {
    let target = Failing::with(failed);
    let mut call = request(Kind::Call, Purse::new(0.0, 1, Duration::from_secs(3)));
    let failure = attempts(&target, &mut call, &jittered(), None).await.unwrap_err();
    assert_eq!(target.attempts(), 4);
    assert!(failure.flags().has(Flags::NON_RETRYABLE));
    let mut none = request(Kind::Call, Purse::new(0.0, 0, Duration::from_secs(3)));
    let response = attempts(&Failing::with(exception), &mut none, &jittered(), None).await.unwrap();
    assert_eq!(response.class, Class::RetryableFailure);
}

#[tokio::test(start_paused = true)]
async fn without_a_limit_there_is_an_end_too() {
    let target = Failing::with(failed);
    attempts(&target, &mut request(Kind::Call, rich()), &jittered(), None).await.unwrap_err();
    assert_eq!(target.attempts(), 1 + MAX_RETRIES as usize);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_retryable_failure_is_not_tried_again() {
    let answers: [fn() -> Result<Response, Failure>; 6] = [
        || Ok(Response::nothing()),
        || exception().map(|response| Response { class: Class::Ignorable, ..response }),
        || Err(Failure::new(Why::Upstream, "final").with(Flags::NON_RETRYABLE)),
        || Err(Failure::new(Why::BadRequest, "no call")),
        || Err(Failure::new(Why::Expired, "late")),
        || Err(Failure::new(Why::Cancelled, "nobody waits")),
    ];
    for answer in answers {
        let target = Failing::with(answer);
        let _ = attempts(&target, &mut request(Kind::Call, rich()), &jittered(), None).await;
        assert_eq!(target.attempts(), 1);
    }
    let oneway = Failing::with(failed);
    attempts(&oneway, &mut request(Kind::Oneway, rich()), &jittered(), None).await.unwrap_err();
    assert_eq!(oneway.attempts(), 1, "nobody waits for a oneway call");
    let default = Failing::with(failed);
    attempts(&default, &mut request(Kind::Call, rich()), &Retries::default(), None).await.unwrap_err();
    assert_eq!(default.attempts(), 1, "by default no failure is known to be safe to repeat");
}
