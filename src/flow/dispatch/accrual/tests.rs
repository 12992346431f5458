//! Every arrow of the diagram, and the machine against the rules said a second time.

use super::*;
use bytes::Bytes;
use muxgate_rpc::Payload;
use proptest::prelude::*;
use std::sync::atomic::AtomicUsize;
use tower::Layer;

/// What the endpoint behind does: a result, or nothing for ever.
type Script = Arc<Mutex<Option<Result<Class, Failure>>>>;

struct Behind(Script);

impl Serve for Behind {
    async fn call(&self, _: &mut Request) -> Result<Response, Failure> {
        let next = self.0.lock().clone();
        match next {
            Some(Ok(class)) => Ok(Response { class, ..Response::nothing() }),
            Some(Err(failure)) => Err(failure),
            None => std::future::pending().await,
        }
    }
}

#[derive(Default)]
struct Counted {
    removed: Mutex<Vec<Duration>>,
    probed: AtomicUsize,
    revived: AtomicUsize,
}

impl Events for Counted {
    fn removed(&self, wait: Duration) {
        self.removed.lock().push(wait);
    }
    fn probed(&self) {
        self.probed.fetch_add(1, Relaxed);
    }
    fn revived(&self) {
        self.revived.fetch_add(1, Relaxed);
    }
}

struct Scene {
    accrual: Accrual<Behind>,
    script: Script,
    events: Arc<Counted>,
}

const FIVE: Duration = Duration::from_secs(5);

fn scene() -> Scene {
    let (script, events) = (Script::default(), Arc::new(Counted::default()));
    let layer = AccrualLayer::new(params::Accrual::default(), Arc::clone(&events) as Arc<dyn Events>);
    let accrual = layer.seeded(3).layer(Behind(Arc::clone(&script)));
    Scene { accrual, script, events }
}

fn request() -> Request {
    Request::new(Payload::opaque(Bytes::new()), Instant::now(), None)
}

impl Scene {
    async fn sees(&self, next: Result<Class, Failure>) {
        *self.script.lock() = Some(next);
        let _ = self.accrual.call(&mut request()).await;
    }

    async fn fails(&self, why: Why) {
        self.sees(Err(Failure::new(why, "scripted"))).await;
    }

    async fn killed() -> Self {
        let scene = scene();
        for _ in 0..5 {
            assert_eq!(scene.accrual.status(), Status::Open);
            scene.fails(Why::Timeout).await;
        }
        assert_eq!(scene.accrual.status(), Status::Doubtful);
        scene
    }

    fn wait(&self) -> Duration {
        *self.events.removed.lock().last().unwrap()
    }

    /// Dead until T, whose time has come.
    async fn due() -> Self {
        let scene = Self::killed().await;
        tokio::time::advance(scene.wait()).await;
        assert_eq!(scene.accrual.status(), Status::Open);
        scene
    }
}

#[tokio::test(start_paused = true)]
async fn alive_to_dead_takes_failures_in_a_row() {
    let scene = scene();
    for _ in 0..10 {
        for _ in 0..4 {
            scene.fails(Why::Upstream).await;
        }
        scene.sees(Ok(Class::Success)).await;
    }
    assert_eq!(scene.accrual.status(), Status::Open);
    for _ in 0..4 {
        scene.sees(Ok(Class::Failure)).await;
        scene.sees(Ok(Class::Ignorable)).await;
    }
    assert_eq!(scene.accrual.status(), Status::Open);
    scene.sees(Ok(Class::RetryableFailure)).await;
    assert_eq!(scene.accrual.status(), Status::Doubtful);
    assert!((FIVE..=2 * FIVE).contains(&scene.wait()));
}

#[tokio::test(start_paused = true)]
async fn alive_to_dead_at_once_when_nobody_listens() {
    let scene = scene();
    scene.fails(Why::Connect).await;
    assert_eq!(scene.accrual.status(), Status::Doubtful);
    assert!((CONNECT_BACKOFF..=2 * CONNECT_BACKOFF).contains(&scene.wait()));
    tokio::time::advance(scene.wait()).await;
    scene.fails(Why::Connect).await;
    assert!((2 * CONNECT_BACKOFF..=4 * CONNECT_BACKOFF).contains(&scene.wait()));
}

#[tokio::test(start_paused = true)]
async fn dead_to_alive_by_a_call_sent_in_panic() {
    let scene = Scene::killed().await;
    scene.fails(Why::Timeout).await;
    assert_eq!(scene.events.removed.lock().len(), 1, "a failure in panic changes nothing");
    scene.sees(Ok(Class::Success)).await;
    assert_eq!(scene.accrual.status(), Status::Open);
    assert_eq!(scene.events.revived.load(Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn exactly_one_probe_is_out_and_its_success_revives() {
    let scene = Scene::due().await;
    *scene.script.lock() = None;
    let mut slow = request();
    let mut probe = Box::pin(scene.accrual.call(&mut slow));
    assert!(futures_util::poll!(&mut probe).is_pending());
    assert_eq!(scene.accrual.status(), Status::Doubtful);
    // The loser of the race goes through, and its failure does not count.
    scene.fails(Why::Timeout).await;
    assert_eq!(scene.events.probed.load(Relaxed), 1);
    assert_eq!(scene.events.removed.lock().len(), 1);
    drop(probe);
    scene.sees(Ok(Class::Success)).await;
    assert_eq!(scene.accrual.status(), Status::Open);
    for _ in 0..4 {
        scene.fails(Why::Timeout).await;
    }
    assert_eq!(scene.accrual.status(), Status::Open, "counts from nought again");
}

#[tokio::test(start_paused = true)]
async fn a_failed_probe_doubles_the_wait_up_to_the_largest() {
    let scene = Scene::due().await;
    for round in 1..12 {
        scene.fails(Why::Timeout).await;
        assert_eq!(scene.accrual.status(), Status::Doubtful);
        let least = (FIVE * (1 << round)).min(Duration::from_secs(300));
        assert!((least..=(least * 2).min(Duration::from_secs(300))).contains(&scene.wait()), "{round}");
        tokio::time::advance(scene.wait()).await;
    }
    scene.sees(Ok(Class::Success)).await;
    for _ in 0..5 {
        scene.fails(Why::Timeout).await;
    }
    assert!(scene.wait() <= 2 * FIVE, "a new death waits the least time again");
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_says_nothing_is_given_back() {
    let scene = Scene::due().await;
    for (given_back, why) in [Why::Cancelled, Why::Expired].into_iter().enumerate() {
        scene.fails(why).await;
        assert_eq!(scene.accrual.status(), Status::Open);
        assert_eq!(scene.events.probed.load(Relaxed), given_back + 1);
    }
    *scene.script.lock() = None;
    let mut slow = request();
    let mut probe = Box::pin(scene.accrual.call(&mut slow));
    assert!(futures_util::poll!(&mut probe).is_pending());
    assert_eq!(scene.accrual.status(), Status::Doubtful);
    drop(probe);
    assert_eq!(scene.accrual.status(), Status::Open);
}

#[tokio::test(start_paused = true)]
async fn late_answers_belong_to_their_own_life() {
    let scene = scene();
    *scene.script.lock() = None;
    let mut slow = request();
    let mut early = Box::pin(scene.accrual.call(&mut slow));
    assert!(futures_util::poll!(&mut early).is_pending());
    let ticket = Ticket { life: 0, probe: false };
    scene.fails(Why::Connect).await;
    let late = |verdict| scene.accrual.change(|machine, now| ((), machine.end(ticket, verdict, now)));
    late(Verdict::Success);
    assert_eq!(scene.accrual.status(), Status::Doubtful, "it was sent before the death");
    scene.sees(Ok(Class::Success)).await;
    assert_eq!(scene.accrual.status(), Status::Open);
    late(Verdict::Unreachable);
    assert_eq!(scene.accrual.status(), Status::Open, "it was sent in an earlier life");
}

#[test]
fn verdicts_are_evidence_only() {
    let of = |why: Why, flags| Verdict::of(&Err(Failure::new(why, "").with(flags)));
    for why in [Why::Timeout, Why::Nack, Why::ConnectionLost, Why::Upstream, Why::BadReply] {
        assert_eq!(of(why, Flags::NONE), Verdict::Failure, "{why:?}");
        assert_eq!(of(why, Flags::IGNORABLE), Verdict::Nothing, "{why:?}");
    }
    assert_eq!(of(Why::Connect, Flags::NONE), Verdict::Unreachable);
    // BC-13: a drain is no failure.
    for why in [Why::Draining, Why::Cancelled, Why::BadRequest, Why::Expired, Why::Overload, Why::Panic] {
        assert_eq!(of(why, Flags::NONE), Verdict::Nothing, "{why:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_worse_status_of_both_counts() {
    struct Shut;
    impl Serve for Shut {
        async fn call(&self, _: &mut Request) -> Result<Response, Failure> {
            Err(Failure::new(Why::Connect, "shut"))
        }
        fn status(&self) -> Status {
            Status::Busy
        }
    }
    let accrual = AccrualLayer::new(params::Accrual::default(), Arc::new(())).layer(Shut);
    assert_eq!(accrual.status(), Status::Busy);
    assert!(accrual.call(&mut request()).await.is_err());
    assert_eq!(accrual.status(), Status::Busy);
}

/// What happens to the machine.
#[derive(Clone, Debug)]
enum Step {
    Begin,
    /// The n-th oldest open call ends.
    End(usize, Verdict),
    Pass(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let verdict = prop_oneof![
        3 => Just(Verdict::Failure),
        1 => Just(Verdict::Success),
        1 => Just(Verdict::Unreachable),
        1 => Just(Verdict::Nothing),
    ];
    let step = prop_oneof![
        4 => Just(Step::Begin),
        5 => (0usize..6, verdict).prop_map(|(call, verdict)| Step::End(call, verdict)),
        1 => (0u64..15_000).prop_map(Step::Pass),
    ];
    proptest::collection::vec(step, 0..200)
}

/// The rules said a second time, without lives or tickets: it remembers when each call was begun and when the
/// endpoint last died or was revived.
struct Naive {
    clock: u64,
    turned: u64,
    dead: bool,
    until: Instant,
    probe: Option<u64>,
    row: u32,
    deaths: u32,
    base: Duration,
}

impl Naive {
    fn open(&self, now: Instant) -> bool {
        !self.dead || (self.probe.is_none() && now >= self.until)
    }

    /// The shortest wait if this end of a call takes the endpoint out of choice.
    fn end(&mut self, begun: u64, verdict: Verdict, now: Instant) -> Option<Duration> {
        if begun < self.turned {
            return None;
        }
        let probe = self.probe == Some(begun);
        let bad = matches!(verdict, Verdict::Failure | Verdict::Unreachable);
        self.row = if bad { self.row + 1 } else { self.row };
        if verdict == Verdict::Success {
            self.row = 0;
            if self.dead {
                (self.dead, self.probe, self.turned) = (false, None, self.clock);
            }
            return None;
        }
        if !self.dead && (self.row == 3 || verdict == Verdict::Unreachable) {
            self.base = Duration::from_secs(if verdict == Verdict::Failure { 2 } else { 1 });
            (self.dead, self.deaths, self.turned) = (true, 0, self.clock);
        } else if probe && bad {
            self.deaths += 1;
        } else {
            if probe {
                self.until = now;
                self.probe = None;
            }
            return None;
        }
        self.probe = None;
        Some((self.base * 2u32.pow(self.deaths.min(10))).min(Duration::from_secs(20)))
    }
}

proptest! {
    #[test]
    fn the_machine_does_what_the_rules_say(steps in steps(), seed in any::<u64>()) {
        let most = Duration::from_secs(20);
        let limits = params::Accrual { failures: 3, min_backoff: Duration::from_secs(2), max_backoff: most };
        let mut machine = Machine::new(&limits, seed);
        let mut now = Instant::now();
        let (mut naive, mut open) = (Naive {
            clock: 0, turned: 0, dead: false, until: now, probe: None, row: 0, deaths: 0,
            base: Duration::ZERO,
        }, Vec::new());
        for step in steps {
            naive.clock += 1;
            match step {
                Step::Pass(ms) => now += Duration::from_millis(ms),
                Step::Begin => {
                    let due = naive.dead && naive.open(now);
                    let (ticket, _) = machine.begin(now);
                    prop_assert_eq!(ticket.probe, due);
                    if due {
                        naive.probe = Some(naive.clock);
                    }
                    open.push((naive.clock, ticket));
                }
                Step::End(call, verdict) if call < open.len() => {
                    let (begun, ticket) = open.remove(call);
                    let least = naive.end(begun, verdict, now);
                    match (least, machine.end(ticket, verdict, now)) {
                        (Some(least), Some(Event::Removed(wait))) => {
                            prop_assert!(least <= wait && wait <= (least * 2).min(most));
                            naive.until = now + wait;
            prop_assert!(naive.dead);
                            naive.row = 0;
                        }
                        (None, Some(Event::Revived)) => prop_assert!(!naive.dead),
                        (least, event) => prop_assert_eq!((least, event), (None, None)),
                    }
                }
                Step::End(..) => {}
            }
            prop_assert_eq!(machine.is_open(now), naive.open(now));
            prop_assert_eq!(machine.calm() & 1 == 1, !naive.dead && naive.row == 0);
        }
    }
}
