use super::*;
use bytes::Bytes;
use muxgate_rpc::{Deadline, Flags, Payload};

/// Answers after a second.
struct Slow;

impl Serve for Slow {
    async fn call(&self, _: &mut Request) -> Result<Response, Failure> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(Response::nothing())
    }
}

fn request(expired: bool) -> Request {
    let mut request = Request::new(Payload::opaque(Bytes::new()), Instant::now(), None);
    let at = if expired { 0 } else { i64::MAX };
    request.ctx.deadline = Some(Deadline::from_wire(0, at, Instant::now()));
    request
}

#[tokio::test(start_paused = true)]
async fn expired_calls_are_refused_without_trying_and_must_not_be_repeated() {
    let admit = Admit::new(Pressure::default(), Slow);
    let refused = admit.call(&mut request(true)).await.unwrap_err();
    assert_eq!(refused.why(), Why::Expired);
    assert!(refused.flags().has(Flags::REJECTED.with(Flags::NON_RETRYABLE)));
    assert!(admit.call(&mut request(false)).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn clocks_that_are_wrong_do_not_stop_all_traffic() {
    let admit = Admit::new(Pressure::default(), Slow);
    let mut served = 0;
    for _ in 0..2000 {
        let mut call = request(true);
        served += usize::from(admit.check_deadline(&mut call).is_ok());
    }
    assert_eq!(served, 2000 - 1000 - 400);
}

#[tokio::test(start_paused = true)]
async fn calls_beyond_the_limit_are_nacked_and_a_dropped_call_makes_room() {
    let admit = Admit::new(Pressure::new(Some(1)), Slow);
    let first = tokio::time::timeout(Duration::from_millis(1), async {
        let (mut one, mut other) = (request(false), request(false));
        let refused = tokio::join!(admit.call(&mut one), admit.call(&mut other)).1;
        refused.unwrap_err()
    });
    assert!(first.await.is_err(), "the first call is still in progress");
    assert!(admit.call(&mut request(false)).await.is_ok(), "and makes room when it is dropped");
}
