//! What came of the calls: of this second, and of all.

use super::services::Service;
use hdrhistogram::Histogram;
use parking_lot::Mutex;
use std::fmt::Write as _;
use std::io::{ErrorKind, IsTerminal, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// Latencies are counted in microseconds, to two digits, up to a minute.
const HIGHEST: u64 = 60_000_000;

/// Longest failure text that is shown, in characters.
const MAX_TEXT: usize = 60;

/// What came of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// The result that the service gives.
    Result,
    /// The exception that the service gives.
    Exception,
    /// No answer of the service, and why.
    Failed(String),
    /// An answer that the service did not give.
    Wrong(String),
}

/// The calls to one service.
#[derive(Clone)]
struct Counts {
    results: u64,
    exceptions: u64,
    failed: u64,
    wrong: u64,
    last: Option<String>,
    latency: Option<Histogram<u64>>,
}

/// The calls to all services.
#[derive(Clone)]
pub(super) struct Tally([Counts; Service::ALL.len()]);

/// Counts and shows.
pub(super) struct Rates {
    second: Mutex<(Tally, Instant)>,
    all: Mutex<Tally>,
    /// Lines that the next show writes over.
    drawn: AtomicBool,
}

impl Counts {
    fn new() -> Self {
        let latency = Histogram::new_with_max(HIGHEST, 2).ok();
        Self { results: 0, exceptions: 0, failed: 0, wrong: 0, last: None, latency }
    }

    fn add(&mut self, said: &Said, took: Duration) {
        match said {
            Said::Result => self.results += 1,
            Said::Exception => self.exceptions += 1,
            Said::Failed(why) => {
                self.failed += 1;
                self.last = Some(why.clone());
            }
            Said::Wrong(why) => {
                self.wrong += 1;
                self.last = Some(why.clone());
            }
        }
        if let Some(latency) = &mut self.latency {
            latency.saturating_record(u64::try_from(took.as_micros()).unwrap_or(HIGHEST));
        }
    }

    fn calls(&self) -> u64 {
        self.results + self.exceptions + self.failed + self.wrong
    }

    fn quantile(&self, q: f64) -> f64 {
        self.latency.as_ref().map_or(0.0, |latency| latency.value_at_quantile(q) as f64 / 1000.0)
    }

    /// `100.0 % ok  p50   0.4 ms  p99   1.1 ms`, and what went wrong.
    fn line(&self) -> String {
        let share = 100.0 * self.results as f64 / self.calls().max(1) as f64;
        let (half, most) = (self.quantile(0.5), self.quantile(0.99));
        let mut line = format!("{share:5.1} % ok  p50 {half:6.1} ms  p99 {most:6.1} ms");
        for (count, what) in [(self.exceptions, "exceptions"), (self.failed, "failed"), (self.wrong, "WRONG")]
        {
            if count > 0 {
                let _ = write!(line, "  {what} {count}");
            }
        }
        if let Some(last) = &self.last {
            let text: String =
                last.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_TEXT).collect();
            let _ = write!(line, " ({text})");
        }
        line
    }
}

impl Tally {
    fn new() -> Self {
        Self(std::array::from_fn(|_| Counts::new()))
    }

    fn of(&mut self, service: Service) -> Option<&mut Counts> {
        Service::ALL
            .into_iter()
            .zip(&mut self.0)
            .find(|(other, _)| *other == service)
            .map(|(_, counts)| counts)
    }

    fn each(&self) -> impl Iterator<Item = (Service, &Counts)> {
        Service::ALL.into_iter().zip(&self.0)
    }

    /// Replies that were not what the service answered.
    pub fn wrong(&self) -> u64 {
        self.0.iter().map(|counts| counts.wrong).sum()
    }

    /// Results that the services gave.
    pub fn results(&self) -> u64 {
        self.0.iter().map(|counts| counts.results).sum()
    }

    /// All calls.
    pub fn calls(&self) -> u64 {
        self.0.iter().map(Counts::calls).sum()
    }

    /// A line a service.
    pub fn summary(&self) -> String {
        let mut out = format!("{} calls\n", self.calls());
        for (service, counts) in self.each() {
            let _ = writeln!(out, "{:9} {:6} calls  {}", service.name(), counts.calls(), counts.line());
        }
        out
    }
}

impl Rates {
    pub fn new() -> Self {
        Self {
            second: Mutex::new((Tally::new(), Instant::now())),
            all: Mutex::new(Tally::new()),
            drawn: AtomicBool::new(false),
        }
    }

    /// Counts a call that was due at a time and has its answer now.
    pub fn add(&self, service: Service, said: Said, due: Instant) {
        let took = due.elapsed();
        for tally in [&mut self.second.lock().0, &mut *self.all.lock()] {
            if let Some(counts) = tally.of(service) {
                counts.add(&said, took);
            }
        }
    }

    /// The calls so far.
    pub fn total(&self) -> Tally {
        self.all.lock().clone()
    }

    /// Shows what has come since the last second, if anything.
    pub fn show_rest(&self, elapsed: Duration) {
        if self.second.lock().0.calls() > 0 {
            self.show(elapsed);
        }
    }

    /// Writes a line a service: over the last ones on a terminal, below them elsewhere. Whether somebody may still read it.
    pub fn show(&self, elapsed: Duration) -> bool {
        let (tally, since) = std::mem::replace(&mut *self.second.lock(), (Tally::new(), Instant::now()));
        let seconds = since.elapsed().as_secs_f64().max(0.001);
        let terminal = std::io::stdout().is_terminal();
        let over = terminal && self.drawn.swap(true, Ordering::Relaxed);
        // A wrapped line would be two to write over: what does not fit is cut off. The same write switches wrapping back on,
        // so that no end of the demo leaves it off.
        let mut text = String::from(if terminal { "\x1b[?7l" } else { "" });
        if over {
            let _ = write!(text, "\x1b[{}A", Service::ALL.len());
        }
        let end = if terminal { "\x1b[K\n" } else { "\n" };
        for (service, counts) in tally.each() {
            let rate = counts.calls() as f64 / seconds;
            let _ = write!(
                text,
                "{:4} s  {:9} {rate:5.1}/s  {}{end}",
                elapsed.as_secs(),
                service.name(),
                counts.line()
            );
        }
        if terminal {
            text.push_str("\x1b[?7h");
        }
        say(&text)
    }
}

/// Writes to standard output. False when whoever read it has gone away; other errors end nothing.
pub(super) fn say(text: &str) -> bool {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    !written.is_err_and(|error| error.kind() == ErrorKind::BrokenPipe)
}
