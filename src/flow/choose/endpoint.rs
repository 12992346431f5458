//! One address of a cluster, and what is remembered of it.

use super::Balancer;
use super::fading::{Fading, tick};
use muxgate_rpc::{Class, Failure, Flags, Request, Response, Serve, Status, Svc, Why};
use muxgate_wire::name::Path;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use tokio::time::Instant;

/// Makes what answers for an address. Given from outside: here begins the next room.
pub trait Build: Send + Sync + 'static {
    /// The service of one endpoint of the cluster `id`. Called once for each address that appears.
    fn build(&self, id: &Path, addr: SocketAddr) -> Svc;
}

impl<F: Fn(&Path, SocketAddr) -> Svc + Send + Sync + 'static> Build for F {
    fn build(&self, id: &Path, addr: SocketAddr) -> Svc {
        self(id, addr)
    }
}

/// How far a failed attempt moves the failing share to 1: a single failure is visible, five in a row are 83 %.
const FAILED: f32 = 0.3;
/// How far a success moves it to 0: three clear a single failure.
const WORKED: f32 = 0.5;
/// A failing share below this is none.
const FORGOTTEN: f32 = 0.05;
/// Seconds in which the failing share fades by 1/e: a single failure is forgotten in 5.4 s, a lasting one in 9 s. Short,
/// because accrual decides how long a dead endpoint stays out; this only keeps quick failures from looking like speed.
const FADE: f32 = 3.0;
/// A wholly failing endpoint looks as if it had so many calls more in flight.
const FAILED_CALLS: f32 = 100.0;
/// Seconds that a wholly failing endpoint seems slower (5 s: the penalty that linkerd2 uses).
const FAILED_LATENCY: f32 = 5.0;
/// Seconds that an endpoint is held to need which has calls but no answer yet: it gets one call, then nothing until
/// that is answered (Finagle's penalty).
const UNPROVEN: f32 = 1.0e6;

/// An address with its service, load and record. All of it is read and written without a lock.
#[derive(Debug)]
pub struct Endpoint {
    addr: SocketAddr,
    svc: Svc,
    /// Seconds of decay of the latency; none: latency is not measured.
    decay: Option<f32>,
    born: Instant,
    in_flight: AtomicU32,
    latency: Fading,
    failing: Fading,
}

impl Endpoint {
    /// An endpoint without a past.
    pub fn new(addr: SocketAddr, svc: Svc, balancer: &Balancer) -> Self {
        let decay = match balancer {
            Balancer::LeastLoaded => None,
            Balancer::PeakEwma { decay } => Some(decay.as_secs_f32()),
        };
        Self {
            addr,
            svc,
            decay,
            born: Instant::now(),
            in_flight: AtomicU32::new(0),
            latency: Fading::default(),
            failing: Fading::default(),
        }
    }

    /// Where it is.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Whether it takes calls, as its service says.
    pub fn status(&self) -> Status {
        self.svc.status()
    }

    /// Calls not answered yet.
    pub fn in_flight(&self) -> u32 {
        self.in_flight.load(Relaxed)
    }

    /// Peak latency in seconds, faded; none where it is not measured or nothing was answered yet.
    pub fn latency(&self) -> Option<f32> {
        let decay = self.decay?;
        (!self.latency.is_zero()).then(|| self.latency.value(self.tick(), decay))
    }

    /// The share of late attempts that failed, 0 to 1, faded.
    pub fn failing(&self) -> f32 {
        if self.failing.is_zero() {
            return 0.0;
        }
        let share = self.failing.value(self.tick(), FADE);
        if share < FORGOTTEN { 0.0 } else { share }
    }

    /// What a further call costs here, to compare with other endpoints; `share` is its weight over the mean weight.
    ///
    /// Least loaded: calls in flight. Peak EWMA: latency times (calls in flight + 1). Failures make both dearer, so that
    /// an endpoint that fails at once does not look fast and idle.
    pub fn cost(&self, share: f32) -> f32 {
        let busy = self.in_flight() as f32 / share;
        let failing = self.failing();
        let Some(decay) = self.decay else { return busy + FAILED_CALLS * failing };
        if self.latency.is_zero() {
            return (if busy > 0.0 { UNPROVEN } else { 0.0 } + FAILED_LATENCY * failing) * (busy + 1.0);
        }
        (self.latency.value(self.tick(), decay) + FAILED_LATENCY * failing) * (busy + 1.0)
    }

    /// Makes one attempt and remembers how it went. A dropped call is taken off the load and leaves no other trace.
    ///
    /// # Errors
    /// The failure of the attempt, with this address in it.
    pub async fn call(&self, request: &mut Request) -> Result<Response, Failure> {
        let started = self.decay.map(|_| Instant::now());
        let in_flight = InFlight::enter(&self.in_flight);
        let answer = self.svc.call(request).await;
        drop(in_flight);
        self.learn(&answer, started);
        answer.map_err(|failure| if failure.from().is_none() { failure.at(self.addr) } else { failure })
    }

    fn learn(&self, answer: &Result<Response, Failure>, started: Option<Instant>) {
        let Some(worked) = verdict(answer) else { return };
        if !worked || !self.failing.is_zero() {
            let (target, share) = if worked { (0.0, WORKED) } else { (1.0, FAILED) };
            self.failing.approach(target, share, FORGOTTEN, self.tick(), FADE);
        }
        let (Some(started), Some(decay)) = (started, self.decay) else { return };
        let (now, took) = (self.tick(), started.elapsed().as_secs_f32().max(f32::MIN_POSITIVE));
        // A slow failure is slowness too; a quick one says nothing good.
        if worked || took > self.latency.value(now, decay) && !self.latency.is_zero() {
            self.latency.peak(took, now, decay);
        }
    }

    fn tick(&self) -> u32 {
        tick(self.born.elapsed())
    }
}

/// Whether an attempt worked; none where the answer says nothing about the endpoint.
fn verdict(answer: &Result<Response, Failure>) -> Option<bool> {
    match answer {
        Ok(response) => match response.class {
            Class::Success => Some(true),
            Class::Failure | Class::RetryableFailure => Some(false),
            Class::Ignorable => None,
        },
        Err(failure) => {
            let silent = failure.flags().has(Flags::IGNORABLE)
                || matches!(
                    failure.why(),
                    Why::BadRequest | Why::Expired | Why::Draining | Why::Cancelled | Why::Panic
                );
            (!silent).then_some(false)
        }
    }
}

/// One call in flight, for as long as it lives.
struct InFlight<'a>(&'a AtomicU32);

impl<'a> InFlight<'a> {
    fn enter(count: &'a AtomicU32) -> Self {
        count.fetch_add(1, Relaxed);
        Self(count)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
